package retention_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/internal/pgtest"
)

var (
	weekly = inboxoutbox.Settings{}
	hourly = inboxoutbox.Settings{InboxWindow: time.Hour, OutboxWindow: time.Hour}
	yearly = inboxoutbox.Settings{InboxWindow: 365 * day, OutboxWindow: 365 * day, Batch: 100}
)

// agree agrees and wants this to be done.
func agree(t *testing.T, db retention.DB, schema string, s inboxoutbox.Settings, o retention.Options, want retention.Action) retention.Agreement {
	t.Helper()
	a, err := retention.Agree(bounded(t), db, schema, s, o)
	must(t, err)
	if a.Action != want {
		t.Fatalf("%s, want %s", a.Action, want)
	}
	if a.Policy.Fingerprint != s.Fingerprint() || a.Policy.Fields.Settings() != s.WithDefaults() {
		t.Errorf("the policy is %+v", a.Policy)
	}
	return a
}

// recorded wants these settings to be recorded.
func recorded(t *testing.T, db retention.DB, schema string, want inboxoutbox.Settings) retention.Policy {
	t.Helper()
	p, ok, err := retention.ReadPolicy(bounded(t), db, schema)
	must(t, err)
	if !ok || p.Fingerprint != want.Fingerprint() || p.Fields.Settings() != want.WithDefaults() {
		t.Errorf("recorded %+v, %t", p, ok)
	}
	return p
}

func TestTheFirstPolicyIsRecordedAndThenAgreesOn(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for _, schema := range []string{"", odd} {
		if p, ok, err := retention.ReadPolicy(bounded(t), conn, schema); ok || err != nil {
			t.Errorf("before: %+v, %v", p, err)
		}
		a := agree(t, conn, schema, yearly, retention.Options{}, retention.Recorded)
		if role := conn.Config().User; a.Policy.By != role || time.Since(a.Policy.At).Abs() > time.Minute || a.Policy.At.Location() != time.UTC {
			t.Errorf("recorded by %q at %s", a.Policy.By, a.Policy.At)
		}
		again := agree(t, conn, schema, yearly, retention.Options{Replace: true, Yes: true, By: "another"}, retention.Same)
		if p := recorded(t, conn, schema, yearly); p.By != a.Policy.By || !p.At.Equal(a.Policy.At) || !again.Policy.At.Equal(p.At) {
			t.Errorf("recorded again: %+v", p)
		}
	}
	db.Exec(t, `delete from inbox_outbox.settings`)
	if a := agree(t, conn, "", weekly, retention.Options{By: "a deploy"}, retention.Recorded); a.Policy.By != "a deploy" {
		t.Errorf("recorded by %q", a.Policy.By)
	}
	agree(t, conn, "", weekly.WithDefaults(), retention.Options{}, retention.Same)
}

func TestAnotherPolicyIsRefusedWithTheDifference(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	agree(t, conn, "", yearly, retention.Options{By: "me"}, retention.Recorded)
	_, err := retention.Agree(bounded(t), conn, "", weekly, retention.Options{Yes: true}) // yes alone replaces nothing
	var different *retention.DifferenceError
	if !errors.As(err, &different) {
		t.Fatal(err)
	}
	want := `[{batch 100 5000} {inbox_window 365d 7d} {outbox_window 365d 7d}]`
	if got := fmt.Sprint(fieldsOf(different.Fields)); got != want {
		t.Errorf("differs by %s, want %s", got, want)
	}
	if different.Recorded.By != "me" || different.Schema != "inbox_outbox" {
		t.Errorf("%+v", different)
	}
	for _, text := range []string{`schema "inbox_outbox"`, "by me", "inbox_window: recorded 365d, given 7d", "--replace-policy"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("no %s in %v", text, err)
		}
	}
	recorded(t, conn, "", yearly)
}

func fieldsOf(all []inboxoutbox.Difference) (plain []struct{ Setting, Recorded, Given string }) {
	for _, d := range all {
		plain = append(plain, struct{ Setting, Recorded, Given string }(d))
	}
	return plain
}

func TestALongerWindowIsReplacedWithoutAYes(t *testing.T) {
	conn := installed.New(t).Conn(t)
	agree(t, conn, "", weekly, retention.Options{By: "old"}, retention.Recorded)
	a := agree(t, conn, "", yearly, retention.Options{Replace: true, By: "new"}, retention.Replaced)
	if a.Before == nil || a.Before.By != "old" || a.Policy.By != "new" || len(a.Fields) != 3 || a.Due != nil {
		t.Errorf("%+v", a)
	}
	if p := recorded(t, conn, "", yearly); p.By != "new" || p.At.Before(a.Before.At) {
		t.Errorf("recorded %+v", p)
	}
	// What is no window needs none either.
	other := yearly
	other.Batch, other.CleanupInterval, other.Replay.Manual = 7, time.Minute, 30*day
	agree(t, conn, "", other, retention.Options{Replace: true}, retention.Replaced)
}

// A shorter window first says how many rows become due by it: those between the two windows, and
// of these only what is finished.
func TestAShorterWindowNeedsAYes(t *testing.T) {
	for _, schema := range []string{"inbox_outbox", odd} {
		t.Run(schema, func(t *testing.T) {
			db := installed.New(t)
			conn := db.Conn(t)
			agree(t, conn, schema, weekly, retention.Options{}, retention.Recorded)
			db.Exec(t, strings.ReplaceAll(`
insert into X.inbox (handler, event_id, state, completed_at) select 'old', g::text, 'completed', now() - interval '8 days' from generate_series(1, 3) g;
insert into X.inbox (handler, event_id, state, completed_at) select 'between', g::text, 'completed', now() - interval '3 days' from generate_series(1, 5) g;
insert into X.inbox (handler, event_id, state, completed_at) select 'young', g::text, 'completed', now() - interval '30 minutes' from generate_series(1, 7) g;
insert into X.inbox (handler, event_id, received_at) select 'pending', g::text, now() - interval '3 days' from generate_series(1, 11) g;
insert into X.outbox (event_id, topic, body, delivered_at) select 'old' || g, 't', '{}', now() - interval '8 days' from generate_series(1, 2) g;
insert into X.outbox (event_id, topic, body, delivered_at) select 'between' || g, 't', '{}', now() - interval '3 days' from generate_series(1, 4) g;
insert into X.outbox (event_id, topic, body, created_at) select 'waits' || g, 't', '{}', now() - interval '3 days' from generate_series(1, 6) g`,
				"X.", pgx.Identifier{schema}.Sanitize()+"."))
			for _, c := range []struct {
				settings inboxoutbox.Settings
				want     string
			}{
				{hourly, "5 rows of inbox become due by it; 4 rows of outbox become due by it"},
				{inboxoutbox.Settings{InboxWindow: time.Hour, OutboxWindow: 8 * day}, "5 rows of inbox become due by it"},
				{inboxoutbox.Settings{OutboxWindow: 5 * day}, "0 rows of outbox become due by it"}, // shorter all the same
			} {
				_, err := retention.Agree(bounded(t), conn, schema, c.settings, retention.Options{Replace: true})
				var needs *retention.NeedsYesError
				if !errors.As(err, &needs) || !strings.Contains(err.Error(), "; "+c.want+": say yes to that (--yes)") {
					t.Errorf("%+v: %v", c.settings, err)
				}
				recorded(t, conn, schema, weekly)
			}
			a := agree(t, conn, schema, hourly, retention.Options{Replace: true, Yes: true}, retention.Replaced)
			if len(a.Due) != 2 || a.Due[0] != (retention.Due{Ledger: "inbox", Rows: inboxoutbox.Count{N: 5}, Longer: week, Now: time.Hour}) ||
				a.Due[1].Rows.N != 4 {
				t.Errorf("due %+v", a.Due)
			}
			recorded(t, conn, schema, hourly)
		})
	}
}

func TestWhatBecomesDueIsCountedUpToABound(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	agree(t, conn, "", weekly, retention.Options{}, retention.Recorded)
	db.Exec(t, `insert into inbox_outbox.inbox (handler, event_id, state, completed_at) select 'h', g::text, 'completed', now() - interval '2 days' from generate_series(1, $1) g`,
		retention.CountBound+1)
	_, err := retention.Agree(bounded(t), conn, "", hourly, retention.Options{Replace: true})
	if err == nil || !strings.Contains(err.Error(), "more than 100000 rows of inbox become due by it; 0 rows of outbox") {
		t.Error(err)
	}
}

// insert records settings as another process does, within tx.
func insert(t *testing.T, tx pgx.Tx, s inboxoutbox.Settings) {
	t.Helper()
	_, err := tx.Exec(bounded(t), `insert into inbox_outbox.settings (fingerprint, settings, recorded_by) values ($1, $2, 'the first')`, s.Fingerprint(), s.Fields())
	must(t, err)
}

// Two processes come with the first policy at once: the second waits, and sees what the first
// one did.
func TestTheSecondToRecordSeesTheFirst(t *testing.T) {
	for name, c := range map[string]struct {
		second  inboxoutbox.Settings
		commits bool
		o       retention.Options
		want    retention.Action // "" for a difference
	}{
		"the same":             {second: weekly, commits: true, want: retention.Same},
		"another":              {second: yearly, commits: true},
		"another, in place":    {second: yearly, commits: true, o: retention.Options{Replace: true}, want: retention.Replaced},
		"the first gave it up": {second: yearly, want: retention.Recorded},
	} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			tx, err := db.Conn(t).Begin(bounded(t))
			must(t, err)
			insert(t, tx, weekly)
			conn := db.Conn(t)
			var a retention.Agreement
			done := db.Beside(t, conn, func() (err error) {
				a, err = retention.Agree(bounded(t), conn, "", c.second, c.o)
				return err
			})
			if c.commits {
				must(t, tx.Commit(bounded(t)))
			} else {
				must(t, tx.Rollback(bounded(t)))
			}
			err = <-done
			var different *retention.DifferenceError
			switch {
			case c.want == "" && errors.As(err, &different):
				recorded(t, conn, "", weekly)
			case c.want == "" || err != nil || a.Action != c.want:
				t.Errorf("%s, %v", a.Action, err)
			default:
				recorded(t, conn, "", c.second)
			}
		})
	}
}

// Two processes replace the policy at once: the second compares with what the first one wrote,
// and asks for a yes to what is shorter than that.
func TestTheSecondToReplaceSeesTheFirst(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	agree(t, conn, "", hourly, retention.Options{}, retention.Recorded)
	one := begin(t, db)
	_, err := one.Exec(bounded(t), `update inbox_outbox.settings set fingerprint = $1, settings = $2, recorded_by = 'the first'`, yearly.Fingerprint(), yearly.Fields())
	must(t, err)
	done := db.Beside(t, conn, func() error { // longer than what it saw, shorter than what is
		_, err := retention.Agree(bounded(t), conn, "", weekly, retention.Options{Replace: true})
		return err
	})
	must(t, one.Commit(bounded(t)))
	var needs *retention.NeedsYesError
	if err := <-done; !errors.As(err, &needs) || needs.Recorded.By != "the first" {
		t.Errorf("the second: %v", err)
	}
	recorded(t, conn, "", yearly)
}

func begin(t *testing.T, db *pgtest.DB) pgx.Tx {
	t.Helper()
	tx, err := db.Conn(t).Begin(bounded(t))
	must(t, err)
	return tx
}

// What was in the way is removed by hand while it is waited for.
func TestAPolicyThatIsGoneIsRecordedAnew(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	agree(t, conn, "", hourly, retention.Options{}, retention.Recorded)
	one := begin(t, db)
	_, err := one.Exec(bounded(t), `delete from inbox_outbox.settings`)
	must(t, err)
	var a retention.Agreement
	done := db.Beside(t, conn, func() (err error) {
		a, err = retention.Agree(bounded(t), conn, "", weekly, retention.Options{})
		return err
	})
	must(t, one.Commit(bounded(t)))
	must(t, <-done)
	if a.Action != retention.Recorded {
		t.Error(a.Action)
	}
	recorded(t, conn, "", weekly)
}

func TestAgreeSaysWhatStandsInItsWay(t *testing.T) {
	if _, err := retention.Agree(bounded(t), nil, "", inboxoutbox.Settings{Batch: -1}, retention.Options{}); !errors.Is(err, inboxoutbox.ErrSettings) {
		t.Errorf("unusable settings: %v", err)
	}
	db := installed.New(t)
	conn := db.Conn(t)
	_, errAgree := retention.Agree(bounded(t), conn, "nowhere", weekly, retention.Options{})
	_, _, errRead := retention.ReadPolicy(bounded(t), conn, "nowhere")
	for way, err := range map[string]error{"agree": errAgree, "read": errRead} {
		if !errors.Is(err, retention.ErrNotInstalled) || !strings.Contains(err.Error(), `schema "nowhere": run prunectl migrate up --component inbox_outbox`) {
			t.Errorf("%s: %v", way, err)
		}
	}
	db.Exec(t, `insert into inbox_outbox.settings (fingerprint, settings, recorded_by) values (repeat('a', 64), '{"inbox_window": "long"}', 'somebody')`)
	if _, err := retention.Agree(bounded(t), conn, "", weekly, retention.Options{Replace: true, Yes: true}); err == nil || !strings.Contains(err.Error(), "by somebody can not be read") {
		t.Errorf("settings of somebody's: %v", err)
	}
}

// Who only agrees, reads; the deploy that records may write.
func TestToAgreeTakesTheRightToRead(t *testing.T) {
	pgtest.Role(t, "inboxretention_reader", "login")
	db := installed.New(t)
	db.Exec(t, `grant usage on schema inbox_outbox to inboxretention_reader; grant select on inbox_outbox.settings to inboxretention_reader`)
	agree(t, db.Conn(t), "", weekly, retention.Options{}, retention.Recorded)
	conn, err := pgx.Connect(t.Context(), db.DSNAs("inboxretention_reader"))
	must(t, err)
	defer conn.Close(t.Context())
	agree(t, conn, "", weekly, retention.Options{}, retention.Same)
}

func TestAnAgreementIsALineForPeople(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	db.Exec(t, `insert into inbox_outbox.outbox (event_id, topic, body, delivered_at) values ('e', 't', '{}', now() - interval '2 hours')`)
	line := func(a retention.Agreement, want string) {
		t.Helper()
		a.Policy.At = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		if got := a.String(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	o := retention.Options{Replace: true, Yes: true, By: "me"}
	const week, hour = "policy 9e8bfaa110f6 recorded 2026-01-02T03:04:05Z by me", "policy HOUR recorded 2026-01-02T03:04:05Z by me"
	line(agree(t, conn, "", weekly, o, retention.Recorded), "recorded: "+week)
	line(agree(t, conn, "", weekly, o, retention.Same), "nothing to do: "+week)
	line(agree(t, conn, "", hourly, o, retention.Replaced), "replaced: "+strings.Replace(hour, "HOUR", hourly.Fingerprint()[:12], 1)+
		"; inbox_window: recorded 7d, given 1h; outbox_window: recorded 7d, given 1h; 0 rows of inbox become due by it; 1 rows of outbox become due by it")
	line(agree(t, conn, "", weekly, o, retention.Replaced), "replaced: "+week+"; inbox_window: recorded 1h, given 7d; outbox_window: recorded 1h, given 7d")
}
