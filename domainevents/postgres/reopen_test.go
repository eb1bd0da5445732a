package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// withDead is a database with n events of a retention, with a dead delivery to each receiver.
func withDead(t *testing.T, n int, r domainevents.Retention, receivers ...string) *pgtest.DB {
	t.Helper()
	db := installed.New(t)
	conn := db.Conn(t)
	for range n {
		record(t, conn, domainevents.Draft{Retention: r}, to(receivers...)...)
	}
	db.Exec(t, `update domain_event_deliveries set status = 'dead', finished_at = now(), attempts = 9, last_error = 'why'`)
	return db
}

func requeue(t *testing.T, db postgres.Beginner, f domainevents.Filter, want string) domainevents.Requeued {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	done, err := store.Requeue(bounded(t), db, f)
	must(t, err)
	if got := brief(done); got != want {
		t.Errorf("requeue %+v: %q, want %q", f, got, want)
	}
	return done
}

func brief(r domainevents.Requeued) (s string) {
	for _, o := range r.Reopened {
		s += fmt.Sprintf("%d/%s ", o.Event, o.Receiver)
	}
	if len(r.Gone) > 0 {
		s += fmt.Sprintf("gone %d", r.Gone)
	}
	return s
}

func TestRequeueReopensTheDeadLettersThatAreAskedFor(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for i := range 3 {
		record(t, conn, domainevents.Draft{Type: fmt.Sprint("type", i%2), Retention: domainevents.UntilSucceeded}, to("a", "b", "c", "d")...)
	}
	const kill = `
update domain_event_deliveries set status = case receiver when 'a' then 'dead' when 'b' then 'orphaned' when 'c' then 'succeeded' else 'cancelled' end,
       finished_at = now(), attempts = 9`
	for _, c := range []struct {
		f    domainevents.Filter
		want string
	}{
		{domainevents.Filter{}, "1/a 1/b 2/a 2/b 3/a 3/b "},
		{domainevents.Filter{Limit: 3}, "1/a 1/b 2/a "},
		{domainevents.Filter{Receiver: "b"}, "1/b 2/b 3/b "},
		{domainevents.Filter{Receiver: "b", Limit: 2}, "1/b 2/b "},
		{domainevents.Filter{Type: "type0"}, "1/a 1/b 3/a 3/b "},
		{domainevents.Filter{Type: "type0", Receiver: "a", Limit: 1}, "1/a "},
		{domainevents.Filter{Event: 2}, "2/a 2/b "},
		{domainevents.Filter{Event: 2, Receiver: "a"}, "2/a "},
		{domainevents.Filter{Event: 2, Type: "type0"}, ""},
		{domainevents.Filter{Event: 2, Type: "type1", Limit: 1}, "2/a "},
		{domainevents.Filter{Receiver: "c"}, ""},
		{domainevents.Filter{Type: "other"}, ""},
		{domainevents.Filter{Event: 99}, "gone [99]"},
	} {
		db.Exec(t, kill)
		done := requeue(t, conn, c.f, c.want)
		for _, r := range done.Reopened {
			if n := db.Int(t, `select count(*) from domain_event_deliveries where id = $1 and event_id = $2 and receiver = $3 and status = 'pending' and attempts = 0 and finished_at is null and due_at <= now()`,
				r.Delivery, r.Event, r.Receiver); n != 1 {
				t.Errorf("%+v is not owed", r)
			}
		}
		if n := db.Int(t, `select count(*) from domain_event_deliveries where status = 'pending'`); n != int64(len(done.Reopened)) {
			t.Errorf("%+v: %d are pending, %d reported", c.f, n, len(done.Reopened))
		}
		if n := db.Int(t, `
select count(*) from domain_events e
 where e.parked <> exists (select from domain_event_deliveries d where d.event_id = e.id and d.status in ('dead', 'orphaned'))`); n != 0 {
			t.Errorf("%+v: %d events are parked wrongly", c.f, n)
		}
	}
}

func TestRequeueOfOneOfTwoDeadLettersKeepsTheEventParked(t *testing.T) {
	db := withDead(t, 1, domainevents.UntilSucceeded, "a", "b")
	wants(t, db, "1/a:dead 1/b:dead parked 1")
	requeue(t, db.Conn(t), domainevents.Filter{Receiver: "a"}, "1/a ")
	wants(t, db, "1/a:pending 1/b:dead parked 1")
	requeue(t, db.Conn(t), domainevents.Filter{Receiver: "b"}, "1/b ")
	wants(t, db, "1/a:pending 1/b:pending")
}

// Whatever isolation the role or the database has by default.
func TestRequeueSeesWhatWasCommittedWhileItWaited(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			db := withDead(t, 1, domainevents.UntilSucceeded, "a", "b")
			first, _ := begin(t, db)
			exec(t, first, 1, `select from domain_events where id = 1 for update`)
			exec(t, first, 1, `update domain_event_deliveries set status = 'succeeded' where receiver = 'a'`)
			conn := db.Conn(t, func(c *pgx.ConnConfig) { c.RuntimeParams["default_transaction_isolation"] = level })
			var done domainevents.Requeued
			waiting := db.Beside(t, conn, func() (err error) {
				done, err = store.Requeue(bounded(t), conn, domainevents.Filter{Limit: 10})
				return err
			})
			must(t, first.Commit(t.Context()))
			must(t, <-waiting)
			if got := brief(done); got != "1/b " {
				t.Errorf("reopened %q", got)
			}
			wants(t, db, "1/a:succeeded 1/b:pending")
		})
	}
}

func TestTwoRequeuesAtOnceReopenEachDeadLetterOnce(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := withDead(t, 2, domainevents.UntilSucceeded, "a")
			first, _ := begin(t, db)
			requeue(t, within{first}, domainevents.Filter{Limit: 1}, "1/a ")
			conn := db.Conn(t)
			var done domainevents.Requeued
			waiting := db.Beside(t, conn, func() (err error) {
				done, err = store.Requeue(bounded(t), conn, domainevents.Filter{Limit: 10})
				return err
			})
			want := "1/a 2/a "
			if commits {
				want = "2/a "
				must(t, first.Commit(t.Context()))
			} else {
				must(t, first.Rollback(t.Context()))
			}
			must(t, <-waiting)
			if got := brief(done); got != want {
				t.Errorf("the second reopened %q, want %q", got, want)
			}
			wants(t, db, "1/a:pending 2/a:pending")
		})
	}
}

func TestReplayReopensEveryDeliveryButThoseUnderWay(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	record(t, conn, domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("cancelled", "claimed", "dead", "failed", "orphaned", "pending", "succeeded")...)
	record(t, conn, domainevents.Draft{}, to("succeeded")...)
	for _, s := range domainevents.Terminal() {
		db.Exec(t, `update domain_event_deliveries set status = receiver, finished_at = now(), attempts = 3 where receiver = $1`, string(s))
	}
	db.Exec(t, `update domain_event_deliveries set status = 'failed', due_at = now() + interval '1 hour' where receiver = 'failed'`)
	db.Exec(t, `update domain_event_deliveries set status = 'claimed', claimed_by = 'w', claimed_at = now(), claimed_until = now() where receiver = 'claimed'`)
	done, err := store.Replay(bounded(t), conn, 1)
	must(t, err)
	if len(done.Reopened) != 6 || done.Underway != 1 || done.Reopened[0].Receiver != "cancelled" || done.Reopened[0].Event != 1 {
		t.Errorf("replayed %+v", done)
	}
	wants(t, db, "1/cancelled:pending 1/claimed:claimed 1/dead:pending 1/failed:pending 1/orphaned:pending 1/pending:pending 1/succeeded:pending 2/succeeded:succeeded")
	if n := db.Int(t, `select count(*) from domain_event_deliveries where event_id = 1 and status = 'pending' and due_at <= now() and attempts = 0`); n != 6 {
		t.Errorf("%d are due", n)
	}
	// The success that was there is not forgotten.
	if got := db.Text(t, `select string_agg(receiver, ',') from domain_event_receivers`); got != "succeeded" {
		t.Errorf("remembered %q", got)
	}
	if done, err := store.Replay(bounded(t), conn, 99); !errors.Is(err, domainevents.ErrGone) || len(done.Reopened) != 0 {
		t.Errorf("replay of nothing: %+v, %v", done, err)
	}
	record(t, conn, domainevents.Draft{})
	if done, err := store.Replay(bounded(t), conn, 3); err != nil || len(done.Reopened) != 0 || done.Underway != 0 {
		t.Errorf("replay without deliveries: %+v, %v", done, err)
	}
}
