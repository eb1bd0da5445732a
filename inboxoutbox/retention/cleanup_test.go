package retention_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/inboxoutbox"
	store "github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// history has of each ledger what is past every window, what is within it, and what never goes.
// Ages and the order of insertion go different ways.
const history = `
insert into X.inbox (handler, event_id, state, received_at, completed_at) values
  ('h', 'young', 'completed', now() - interval '1000 days', now() - interval '6 days'),
  ('h', 'old', 'completed', now() - interval '1000 days', now() - interval '8 days'),
  ('h', 'older', 'completed', now() - interval '1000 days', now() - interval '1000 days');
insert into X.inbox (handler, event_id, received_at, lock_token, locked_until) values
  ('h', 'never taken', now() - interval '1000 days', null, null), ('h', 'lapsed', now() - interval '999 days', gen_random_uuid(), now() - interval '900 days');
insert into X.outbox (event_id, topic, body, created_at, available_at, delivered_at) values
  ('young', 't', '{}', now() - interval '1000 days', now() - interval '1000 days', now() - interval '6 days'),
  ('old', 't', '{}', now() - interval '1000 days', now() - interval '1000 days', now() - interval '8 days'),
  ('waits', 't', '{}', now() - interval '1000 days', now() - interval '1000 days', null);
insert into X.outbox (event_id, topic, body, created_at, available_at, claim_token, claimed_until) values
  ('claimed', 't', '{}', now() - interval '1000 days', now() - interval '900 days', gen_random_uuid(), now() - interval '900 days');
insert into X.leases values
  ('h', 'in force', 'w', gen_random_uuid(), now() + interval '1 hour'), ('h', 'expired', 'w', gen_random_uuid(), now() - interval '1 second'),
  ('h', 'long expired', 'w', gen_random_uuid(), now() - interval '1000 days')`

func in(schema, sql string) string {
	return strings.ReplaceAll(sql, "X.", pgx.Identifier{schema}.Sanitize()+".")
}

// cleanUp cleans up and wants no error.
func cleanUp(t *testing.T, pool *pgxpool.Pool, s inboxoutbox.Settings, o retention.CleanupOptions) retention.CleanupReport {
	t.Helper()
	r, err := retention.Cleanup(bounded(t), pool, s, o)
	must(t, err)
	return r
}

// says compares the report with a text in which times, durations and fingerprints are left out.
func says(t *testing.T, r retention.CleanupReport, want string) {
	t.Helper()
	got := r.String()
	for _, c := range []struct{ from, to string }{
		{`\d{4}-\d\d-\d\dT[\d:.]+Z`, "TIME"}, {` in \d[\d.]*(µs|ms|s) `, " in A WHILE "}, {`policy [0-9a-f]{12}`, "policy FINGERPRINT"}, {`by \S+\n`, "by ROLE\n"},
	} {
		got = regexp.MustCompile(c.from).ReplaceAllString(got, c.to)
	}
	if got != want {
		t.Errorf("report\n%s\nwant\n%s", got, want)
	}
}

const head = "inbox_outbox in schema %s, policy FINGERPRINT recorded TIME by ROLE\n"

func TestACleanupRemovesWhatIsOverAndNothingElse(t *testing.T) {
	for _, schema := range []string{"inbox_outbox", odd} {
		t.Run(schema, func(t *testing.T) {
			db := installed.New(t)
			pool := db.Pool(t)
			db.Exec(t, in(schema, history))
			r := cleanUp(t, pool, weekly, retention.CleanupOptions{Schema: schema, By: "me"})
			if got := db.Text(t, in(schema, `
select (select string_agg(event_id, ', ' order by event_id) from X.inbox) || ' | ' || (select string_agg(event_id, ', ' order by event_id) from X.outbox)
    || ' | ' || (select string_agg(partition, ', ' order by partition) from X.leases)`)); got != "lapsed, never taken, young | claimed, waits, young | in force" {
				t.Errorf("left are %s", got)
			}
			if !r.Drained() || r.Action != retention.Recorded || r.Policy.By != "me" {
				t.Errorf("report %+v", r)
			}
			want := fmt.Sprintf(head, pgx.Identifier{schema}.Sanitize()) +
				`inbox: 2 removed, 0 due left, 2 not completed (since TIME), 1 within the window of 7d; drained; 1 batches in A WHILE through inbox_retention, cutoff TIME
outbox: 1 removed, 0 due left, 2 not delivered (since TIME), 1 within the window of 7d; drained; 1 batches in A WHILE through outbox_retention, cutoff TIME
leases: 2 removed, 0 due left, 1 in force; drained; 1 batches in A WHILE through leases_expiry, cutoff TIME`
			says(t, r, want)
			if inbox := r.Ledgers[0]; time.Since(inbox.Oldest) < 999*day || time.Since(inbox.Cutoff.Time().Add(week)).Abs() > time.Minute {
				t.Errorf("the oldest is since %s, the cutoff %s", inbox.Oldest, inbox.Cutoff)
			}
			again := cleanUp(t, pool, weekly, retention.CleanupOptions{Schema: schema})
			if again.Action != retention.Same {
				t.Errorf("the second time %s", again.Action)
			}
			says(t, again, fmt.Sprintf(head, pgx.Identifier{schema}.Sanitize())+
				`inbox: 0 removed, 0 due left, 2 not completed (since TIME), 1 within the window of 7d; drained, for nothing was due; 0 batches in A WHILE through inbox_retention, cutoff TIME
outbox: 0 removed, 0 due left, 2 not delivered (since TIME), 1 within the window of 7d; drained, for nothing was due; 0 batches in A WHILE through outbox_retention, cutoff TIME
leases: 0 removed, 0 due left, 1 in force; drained, for nothing was due; 0 batches in A WHILE through leases_expiry, cutoff TIME`)
		})
	}
}

// "0 removed" alone says nothing: empty, young, unfinished, without a usable time, and left to
// others are told apart.
func TestNothingRemovedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ fill, inbox string }{
		"empty": {`select 1`, "inbox: 0 removed, 0 due left, 0 not completed, 0 within the window of 7d; drained, for nothing was due;"},
		"young": {`insert into inbox_outbox.inbox (handler, event_id, state, completed_at) values ('h', 'e', 'completed', now())`,
			"inbox: 0 removed, 0 due left, 0 not completed, 1 within the window of 7d; drained, for nothing was due;"},
		"unfinished": {`insert into inbox_outbox.inbox (handler, event_id, received_at) values ('h', 'e', '2020-02-03Z')`,
			"inbox: 0 removed, 0 due left, 1 not completed (since 2020-02-03T00:00:00Z), 0 within the window of 7d; drained, for nothing was due;"},
		"no usable time": {`insert into inbox_outbox.inbox (handler, event_id, state, completed_at) values ('h', 'e', 'completed', '0001-01-01')`,
			"inbox: 0 removed, 0 due left, 0 not completed, 0 within the window of 7d, 1 without a usable time; drained, for nothing was due;"},
	} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, c.fill)
			r := cleanUp(t, db.Pool(t), weekly, retention.CleanupOptions{})
			if !strings.Contains(r.String(), "\n"+c.inbox) {
				t.Errorf("report\n%s\nwant\n%s", r, c.inbox)
			}
		})
	}
}

// Of 130 that are due somebody holds 80: the others go, and the report says how many did not.
func TestWhatOthersHoldIsSteppedOverAndReported(t *testing.T) {
	for ledger, c := range map[string]struct{ fill, hold string }{
		"inbox": {`insert into inbox_outbox.inbox (handler, event_id, state, completed_at)
select 'h', g::text, 'completed', now() - interval '30 days' + g * interval '1 minute' from generate_series(1, 130) g`,
			`select from inbox_outbox.inbox where event_id::int % 13 < 8 for update`},
		"outbox": {`insert into inbox_outbox.outbox (event_id, topic, body, delivered_at)
select g::text, 't', '{}', now() - interval '30 days' + g * interval '1 minute' from generate_series(1, 130) g`,
			`select from inbox_outbox.outbox where event_id::int % 13 < 8 for update`},
		"leases": {`insert into inbox_outbox.leases
select 'h', g::text, 'w', gen_random_uuid(), now() - g * interval '1 minute' from generate_series(1, 130) g`,
			`select from inbox_outbox.leases where partition::int % 13 < 8 for update`},
	} {
		t.Run(ledger, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, c.fill)
			tx := begin(t, db)
			tag, err := tx.Exec(bounded(t), c.hold)
			must(t, err)
			if tag.RowsAffected() != 80 {
				t.Fatalf("%d are held", tag.RowsAffected())
			}
			r := cleanUp(t, db.Pool(t), weekly, retention.CleanupOptions{})
			must(t, tx.Rollback(bounded(t)))
			if n := db.Int(t, `select count(*) from inbox_outbox.`+ledger); n != 80 {
				t.Errorf("%d are left", n)
			}
			for _, l := range r.Ledgers {
				switch {
				case l.Name != ledger && !l.Report.Drained():
					t.Errorf("%s", l)
				case l.Name == ledger && (l.Report.Removed != 50 || l.Report.Locked != 80 || l.Report.Stop != drain.StopLocked || l.Left.N != 80 || r.Drained() ||
					!strings.HasPrefix(l.String(), ledger+": 50 removed, 80 locked by others, 80 due left, ") || !strings.Contains(l.String(), "; not drained: locked;")):
					t.Errorf("%s", l)
				}
			}
			if r := cleanUp(t, db.Pool(t), weekly, retention.CleanupOptions{}); !r.Drained() {
				t.Errorf("after they are let go: %s", r)
			}
		})
	}
}

// A lease that is acquired while the cleanup comes stays its new holder's.
func TestALeaseThatIsBeingTakenStays(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `insert into inbox_outbox.leases values ('h', 'p', 'old', gen_random_uuid(), now() - interval '1 hour')`)
	s := store.New(store.Options{})
	tx := begin(t, db)
	l, ok, err := s.Acquire(bounded(t), tx, "h", "p", "new", time.Hour)
	if err != nil || !ok {
		t.Fatal(l, err)
	}
	r := cleanUp(t, db.Pool(t), weekly, retention.CleanupOptions{})
	if r.Ledgers[2].Report.Removed != 0 || r.Ledgers[2].Report.Locked != 1 {
		t.Errorf("%s", r.Ledgers[2])
	}
	must(t, tx.Commit(bounded(t)))
	_, err = s.Renew(bounded(t), db.Conn(t), l, time.Hour)
	must(t, err)
}

// Until its row is removed, a completed event is recognised; then it comes in as new.
func TestARemovedRowLetsTheEventInAgain(t *testing.T) {
	db := installed.New(t)
	pool, s := db.Pool(t), store.New(store.Options{})
	handle := func() inboxoutbox.Outcome {
		t.Helper()
		var r inboxoutbox.Receipt
		must(t, pgx.BeginFunc(bounded(t), pool, func(tx pgx.Tx) (err error) {
			if r, err = s.Receive(bounded(t), tx, "h", "e", time.Minute); err != nil || r.Outcome != inboxoutbox.New {
				return err
			}
			return s.Complete(bounded(t), tx, r.Lock)
		}))
		return r.Outcome
	}
	if o := handle(); o != inboxoutbox.New {
		t.Error(o)
	}
	db.Exec(t, `update inbox_outbox.inbox set completed_at = now() - interval '6 days'`)
	cleanUp(t, pool, weekly, retention.CleanupOptions{})
	if o := handle(); o != inboxoutbox.CompletedBefore {
		t.Error(o)
	}
	db.Exec(t, `update inbox_outbox.inbox set completed_at = now() - interval '8 days'`)
	cleanUp(t, pool, weekly, retention.CleanupOptions{})
	if o := handle(); o != inboxoutbox.New {
		t.Error(o)
	}
}

// A program that comes with another policy sweeps nothing.
func TestAProgramThatIsRefusedSweepsNothing(t *testing.T) {
	db := installed.New(t)
	pool := db.Pool(t)
	db.Exec(t, in("inbox_outbox", history))
	agree(t, pool, "", yearly, retention.Options{}, retention.Recorded)
	before := db.Text(t, `select (select count(*) from inbox_outbox.inbox) || ' ' || (select count(*) from inbox_outbox.outbox) || ' ' || (select count(*) from inbox_outbox.leases)`)
	_, err := retention.Cleanup(bounded(t), pool, weekly, retention.CleanupOptions{})
	var different *retention.DifferenceError
	if !errors.As(err, &different) {
		t.Errorf("cleanup: %v", err)
	}
	if after := db.Text(t, `select (select count(*) from inbox_outbox.inbox) || ' ' || (select count(*) from inbox_outbox.outbox) || ' ' || (select count(*) from inbox_outbox.leases)`); after != before {
		t.Errorf("there are %s, before %s", after, before)
	}
	recorded(t, pool, "", yearly)
	if _, err := retention.Cleanup(bounded(t), pool, inboxoutbox.Settings{Batch: -1}, retention.CleanupOptions{}); !errors.Is(err, inboxoutbox.ErrSettings) {
		t.Errorf("unusable settings: %v", err)
	}
	if r, err := retention.Cleanup(bounded(t), pool, weekly, retention.CleanupOptions{Schema: "nowhere"}); !errors.Is(err, retention.ErrNotInstalled) || r.Drained() {
		t.Errorf("nowhere: %v", err)
	}
}

func TestACeilingLeavesTheYoungestForTheNextTime(t *testing.T) {
	db := installed.New(t)
	pool := db.Pool(t)
	db.Exec(t, `insert into inbox_outbox.inbox (handler, event_id, state, completed_at)
select 'h', g::text, 'completed', now() - g * interval '1 day' from generate_series(8, 37) g`)
	r := cleanUp(t, pool, weekly, retention.CleanupOptions{Budget: policy.Budget{Rows: 10}})
	if l := r.Ledgers[0]; l.Report.Removed != 10 || l.Left.N != 20 || r.Drained() || !strings.Contains(l.String(), "; not drained: budget of rows;") {
		t.Errorf("%s", l)
	}
	if n := db.Int(t, `select max(event_id::int) from inbox_outbox.inbox`); n != 27 {
		t.Errorf("the oldest that is left is of %d days", n)
	}
}

// One ledger that can not be swept does not keep the others from it, and says why.
func TestOneLedgerThatFailsDoesNotStopTheOthers(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, in("inbox_outbox", history)+`; drop index inbox_outbox.inbox_retention`)
	r, err := retention.Cleanup(bounded(t), db.Pool(t), weekly, retention.CleanupOptions{})
	if err == nil || !strings.Contains(err.Error(), "sweep inbox: ") || !strings.Contains(err.Error(), "inbox_retention") || strings.Contains(err.Error(), "outbox: ") {
		t.Errorf("cleanup: %v", err)
	}
	if l := r.Ledgers[0]; l.Report.Stop != drain.StopRefused || l.Report.Removed != 0 || l.Left.N != 2 || !strings.Contains(l.String(), "; not drained: refused: ") {
		t.Errorf("%s", l)
	}
	if r.Drained() || r.Ledgers[1].Report.Removed != 1 || r.Ledgers[2].Report.Removed != 2 {
		t.Errorf("%s", r)
	}
}

// Another sweeper at work on a ledger: that one is left to it.
func TestALedgerThatIsBeingSweptIsBusy(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, in("inbox_outbox", history))
	arms, err := postgres.Open(bounded(t), postgres.Pool(db.Pool(t)), retention.Sweeps("", weekly)[0], postgres.Options{OneSweeper: true})
	must(t, err)
	var lock string
	for _, s := range arms[0].Statements() {
		lock += regexp.MustCompile(`pg_try_advisory_xact_lock\(-?\d+\)`).FindString(s.SQL)
	}
	tx := begin(t, db)
	var got bool
	must(t, tx.QueryRow(bounded(t), `select `+lock).Scan(&got))
	r, err := retention.Cleanup(bounded(t), db.Pool(t), weekly, retention.CleanupOptions{})
	must(t, tx.Rollback(bounded(t)))
	if err != nil || !got || r.Ledgers[0].Report.Stop != drain.StopBusy || r.Ledgers[0].Left.N != 2 || r.Drained() || !r.Ledgers[1].Report.Drained() {
		t.Errorf("%s, %v", r, err)
	}
}
