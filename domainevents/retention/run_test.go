package retention_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/domainevents/retention"
	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
)

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes an event with a delivery in each status, and returns its id.
func put(t *testing.T, pool *pgxpool.Pool, schema string, age time.Duration, retention string, statuses ...domainevents.Status) (id int64) {
	t.Helper()
	in := pgx.Identifier{schema}.Sanitize()
	var word *string
	var seconds *int
	if n := 0; retention != "" {
		if _, err := fmt.Sscan(retention, &n); err == nil {
			seconds = &n
		} else {
			word = &retention
		}
	}
	must(t, pool.QueryRow(t.Context(), `insert into `+in+`.domain_events (type, payload, recorded_at, retention_policy, retention_seconds)
values ('x', '{}', now() - $1::bigint * interval '1 microsecond', $2, $3) returning id`, age.Microseconds(), word, seconds).Scan(&id))
	for i, s := range statuses {
		_, err := pool.Exec(t.Context(), `insert into `+in+`.domain_event_deliveries (event_id, receiver, status, finished_at, claimed_by, claimed_at, claimed_until)
values ($1, $2, $3, case when $4 then now() - $5::bigint * interval '1 microsecond' end,
        case when $3 = 'claimed' then 'w' end, case when $3 = 'claimed' then now() end, case when $3 = 'claimed' then now() end)`,
			id, fmt.Sprint("r", i), string(s), s.Terminal(), age.Microseconds())
		must(t, err)
	}
	return id
}

// The rules: what is declared, and when the event goes.
func TestEachEventGoesByWhatItDeclared(t *testing.T) {
	const day = 24 * time.Hour
	const succeeded, dead, orphaned, cancelled = domainevents.Succeeded, domainevents.Dead, domainevents.Orphaned, domainevents.Cancelled
	type statuses = []domainevents.Status
	owed := []statuses{{domainevents.Pending}, {succeeded, domainevents.Claimed}, {domainevents.Failed, dead}}
	done := []statuses{{}, {succeeded}, {succeeded, cancelled}}
	letters := []statuses{{dead}, {succeeded, orphaned}}
	for _, schema := range []string{"public", odd} {
		t.Run(schema, func(t *testing.T) {
			db := installed.New(t)
			pool := db.Pool(t)
			want := map[int64]bool{} // gone
			add := func(gone bool, age time.Duration, retention string, cases ...statuses) {
				for _, c := range cases {
					want[put(t, pool, schema, age, retention, c...)] = gone
				}
			}
			for _, r := range []string{"", "60", "8640000", "SUCCEEDED", "SETTLED", "LATER"} {
				add(false, 1000*day, r, owed...) // under no rule
			}
			for _, r := range []string{"", "LATER"} { // an unknown word is no word
				add(false, 89*day, r, append(done, letters...)...)
				add(true, 91*day, r, append(done, letters...)...)
			}
			add(false, 30*time.Second, "60", append(done, letters...)...)
			add(true, 90*time.Second, "60", append(done, letters...)...)
			add(false, 99*day, "8640000", append(done, letters...)...) // longer than the default one
			add(true, 101*day, "8640000", append(done, letters...)...)
			add(true, time.Second, "SUCCEEDED", done...)
			add(false, 89*day, "SUCCEEDED", letters...)
			add(true, 91*day, "SUCCEEDED", letters...)
			add(true, time.Second, "SETTLED", append(done, letters...)...)

			r, err := retention.Run(bounded(t), pool, retention.Options{Schema: schema})
			must(t, err)
			rows, err := pool.Query(t.Context(), `select id from `+pgx.Identifier{schema}.Sanitize()+`.domain_events`)
			must(t, err)
			left, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			must(t, err)
			there := map[int64]bool{}
			for _, id := range left {
				there[id] = true
			}
			for id, gone := range want {
				if there[id] == gone {
					t.Errorf("event %d: gone %t, want %t", id, !there[id], gone)
				}
			}
			for _, s := range r.Sweeps {
				if !s.Drained() {
					t.Errorf("sweep %s: %s", s.Name, s.Stop)
				}
			}
			if r.Unknown["LATER"] != 8 || len(r.Unknown) != 1 || r.UnknownAtLeast {
				t.Errorf("unknown %v", r.Unknown)
			}
			got := map[string]string{}
			for _, a := range r.Arms {
				got[a.Name] = fmt.Sprintf("%d events, %d deliveries, %d owed, %d parked", a.Events, a.Deliveries, a.Owed, a.Parked.N)
			}
			for name, line := range map[string]string{
				// by window: 5 each of "" and LATER, 2 parked; owed: 3 each of "", LATER, SUCCEEDED and SETTLED
				"domain_events":            "12 events, 15 deliveries, 12 owed, 0 parked",
				"domain_events own window": "10 events, 12 deliveries, 6 owed, 0 parked",
				"domain_events_succeeded":  "3 events, 3 deliveries, 2 owed, 3 parked",
				"domain_events_settled":    "5 events, 6 deliveries, 3 owed, 0 parked",
			} {
				if got[name] != line {
					t.Errorf("%s: %s, want %s", name, got[name], line)
				}
			}
			again, err := retention.Run(bounded(t), pool, retention.Options{Schema: schema})
			must(t, err)
			for _, a := range again.Arms {
				if a.Events+a.Deliveries > 0 {
					t.Errorf("the second run removed %d events and %d deliveries by %s", a.Events, a.Deliveries, a.Name)
				}
			}
		})
	}
}

func TestAShorterWindowShortensTheDefaultOneAlone(t *testing.T) {
	pool := installed.New(t).Pool(t)
	short := put(t, pool, "public", 2*time.Hour, "", domainevents.Succeeded)
	own := put(t, pool, "public", 2*time.Hour, "86400", domainevents.Succeeded)
	r, err := retention.Run(bounded(t), pool, retention.Options{Window: policy.MustWindow(time.Hour)})
	must(t, err)
	var left []int64
	must(t, pool.QueryRow(t.Context(), `select array_agg(id) from domain_events`).Scan(&left))
	if len(left) != 1 || left[0] != own {
		t.Errorf("%d are left, want %d without %d; %+v", left, own, short, r.Arms)
	}
}

// What the sweep deletes it has remembered.
func TestTheSweepRemembersTheNewestSuccess(t *testing.T) {
	pool := installed.New(t).Pool(t)
	put(t, pool, "public", 3*time.Hour, "60", domainevents.Succeeded, domainevents.Cancelled)
	put(t, pool, "public", time.Hour, "SETTLED", domainevents.Succeeded, domainevents.Succeeded)
	put(t, pool, "public", 2*time.Hour, "SUCCEEDED", domainevents.Succeeded)
	_, err := retention.Run(bounded(t), pool, retention.Options{})
	must(t, err)
	store := events.New(events.Options{})
	for ago, want := range map[time.Duration]string{30 * time.Minute: "r0 r1 ", 90 * time.Minute: ""} {
		quiet, err := store.Quiet(bounded(t), pool, time.Now().Add(-ago))
		must(t, err)
		got := ""
		for _, r := range quiet {
			got += r.Name + " "
		}
		if got != want {
			t.Errorf("quiet for %s: %q, want %q", ago, got, want)
		}
	}
}

// A requeue beside the sweep: the sweep passes over what is held, and says that it did.
func TestTheSweepPassesOverAnEventThatIsBeingReopened(t *testing.T) {
	pool := installed.New(t).Pool(t)
	held := put(t, pool, "public", 2*time.Hour, "60", domainevents.Dead)
	put(t, pool, "public", 2*time.Hour, "60", domainevents.Dead)
	tx, err := pool.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `select from domain_events where id = $1 for update`, held)
	must(t, err)
	r, err := retention.Run(bounded(t), pool, retention.Options{})
	must(t, err)
	must(t, tx.Rollback(t.Context()))
	if r.Sweeps[0].Stop != drain.StopLocked || r.Sweeps[0].Locked != 1 || r.Sweeps[0].Removed != 1 {
		t.Errorf("report %+v", r.Sweeps[0].Report)
	}
}

func TestARunWithoutTheTablesSaysSo(t *testing.T) {
	pool := installed.New(t).Pool(t)
	_, err := retention.Run(bounded(t), pool, retention.Options{Schema: "nowhere"})
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("run: %v", err)
	}
}
