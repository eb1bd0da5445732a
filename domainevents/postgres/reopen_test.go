package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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
			waiting := beside(t, db, conn, func() (err error) {
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
			waiting := beside(t, db, conn, func() (err error) {
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

// within lets a Store's own transaction run within one that the test holds open.
type within struct{ tx pgx.Tx }

func (w within) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) { return w.tx.Begin(ctx) }

// The worker gives a second delivery up while the first one is requeued: the event stays parked, in either order.
func TestADeadLetterBesideARequeue(t *testing.T) {
	prepare := func(t *testing.T) (*pgtest.DB, domainevents.Claim) {
		db := installed.New(t)
		record(t, db.Conn(t), domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("a", "b")...)
		all := claim(t, db.Conn(t), "w", 2, "1/a", "1/b")
		must(t, store.Dead(t.Context(), db.Conn(t), all[0].Claim, "x"))
		wants(t, db, "1/a:dead 1/b:claimed parked 1")
		return db, all[1].Claim
	}
	t.Run("the requeue first", func(t *testing.T) {
		db, c := prepare(t)
		first, _ := begin(t, db)
		requeue(t, within{first}, domainevents.Filter{}, "1/a ")
		conn := db.Conn(t)
		waiting := beside(t, db, conn, func() error { return store.Dead(bounded(t), conn, c, "x") })
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:pending 1/b:dead parked 1")
	})
	t.Run("the dead letter first", func(t *testing.T) {
		db, c := prepare(t)
		first, _ := begin(t, db)
		must(t, store.Dead(bounded(t), first, c, "x"))
		conn := db.Conn(t)
		waiting := beside(t, db, conn, func() error {
			_, err := store.Requeue(bounded(t), conn, domainevents.Filter{Event: 1, Receiver: "a", Limit: 1})
			return err
		})
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:pending 1/b:dead parked 1")
	})
	t.Run("the requeue first, and given up", func(t *testing.T) {
		db, c := prepare(t)
		first, _ := begin(t, db)
		requeue(t, within{first}, domainevents.Filter{}, "1/a ")
		conn := db.Conn(t)
		waiting := beside(t, db, conn, func() error { return store.Dead(bounded(t), conn, c, "x") })
		must(t, first.Rollback(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:dead 1/b:dead parked 1")
	})
}

// The only dead letter is requeued while another session, without the event's lock, makes a dead letter of the next.
func TestTheMarkFollowsWhoeverComesLast(t *testing.T) {
	db := installed.New(t)
	record(t, db.Conn(t), domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("a", "b")...)
	db.Exec(t, `update domain_event_deliveries set status = 'dead', finished_at = now() where receiver = 'a'`)
	const kill, revive = `update domain_event_deliveries set status = 'dead', finished_at = now() where receiver = 'b'`,
		`update domain_event_deliveries set status = 'pending', finished_at = null where receiver = 'a'`
	for i, c := range []struct{ first, second string }{{kill, revive}, {revive, kill}} {
		db.Exec(t, `update domain_event_deliveries set status = case receiver when 'a' then 'dead' else 'pending' end, finished_at = case receiver when 'a' then now() end`)
		wants(t, db, "1/a:dead 1/b:pending parked 1")
		tx, _ := begin(t, db)
		exec(t, tx, 1, c.first)
		conn := db.Conn(t)
		waiting := beside(t, db, conn, func() error { _, err := conn.Exec(bounded(t), c.second); return err })
		must(t, tx.Commit(t.Context()))
		must(t, <-waiting)
		if wants(t, db, "1/a:pending 1/b:dead parked 1"); t.Failed() {
			t.Fatalf("order %d", i)
		}
	}
}

// takeParent, recheck and take are what a sweep does to one event, in three statements of one transaction.
const (
	takeParent = `select id from domain_events where id = 1 for update skip locked`
	recheck    = `
delete from domain_event_deliveries d
 where d.event_id = 1 and d.status in ('succeeded', 'dead', 'orphaned', 'cancelled')
   and not exists (select from domain_event_deliveries o where o.event_id = 1 and o.status not in ('succeeded', 'dead', 'orphaned', 'cancelled'))`
	take = `delete from domain_events e where e.id = 1 and not exists (select from domain_event_deliveries d where d.event_id = e.id)`
)

// Either the sweep finds the event owed, or the requeue finds it gone: what is reported as reopened is there.
func TestRequeueAndReplayBesideASweep(t *testing.T) {
	for name, reopen := range map[string]func(*testing.T, postgres.Beginner) (int, bool, error){
		"requeue": func(t *testing.T, db postgres.Beginner) (int, bool, error) {
			done, err := store.Requeue(bounded(t), db, domainevents.Filter{Limit: 10})
			return len(done.Reopened), len(done.Gone) > 0, err
		},
		"requeue of the event": func(t *testing.T, db postgres.Beginner) (int, bool, error) {
			done, err := store.Requeue(bounded(t), db, domainevents.Filter{Event: 1, Limit: 10})
			return len(done.Reopened), len(done.Gone) > 0, err
		},
		"replay": func(t *testing.T, db postgres.Beginner) (int, bool, error) {
			done, err := store.Replay(bounded(t), db, 1)
			if errors.Is(err, domainevents.ErrGone) {
				return 0, true, nil
			}
			return len(done.Reopened), false, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("the sweep first", func(t *testing.T) {
				db := withDead(t, 1, domainevents.Default, "a", "b")
				sweep, _ := begin(t, db)
				exec(t, sweep, 1, takeParent)
				conn := db.Conn(t)
				var n int
				var gone bool
				waiting := beside(t, db, conn, func() (err error) {
					n, gone, err = reopen(t, conn)
					return err
				})
				exec(t, sweep, 2, recheck)
				exec(t, sweep, 1, take)
				must(t, sweep.Commit(t.Context()))
				must(t, <-waiting)
				if n != 0 || !gone {
					t.Errorf("%d reopened, gone %t", n, gone)
				}
			})
			t.Run("the sweep first, and given up", func(t *testing.T) {
				db := withDead(t, 1, domainevents.Default, "a", "b")
				sweep, _ := begin(t, db)
				exec(t, sweep, 1, takeParent)
				conn := db.Conn(t)
				var n int
				var gone bool
				waiting := beside(t, db, conn, func() (err error) {
					n, gone, err = reopen(t, conn)
					return err
				})
				exec(t, sweep, 2, recheck)
				must(t, sweep.Rollback(t.Context()))
				must(t, <-waiting)
				if n != 2 || gone {
					t.Errorf("%d reopened, gone %t", n, gone)
				}
				wants(t, db, "1/a:pending 1/b:pending")
			})
			t.Run("the reopening first", func(t *testing.T) {
				db := withDead(t, 1, domainevents.Default, "a", "b")
				first, _ := begin(t, db)
				if n, gone, err := reopen(t, within{first}); err != nil || n != 2 || gone {
					t.Fatalf("%d reopened, gone %t, %v", n, gone, err)
				}
				sweep, _ := begin(t, db)
				exec(t, sweep, 0, takeParent) // passed over
				must(t, first.Commit(t.Context()))
				exec(t, sweep, 1, takeParent)
				exec(t, sweep, 0, recheck) // owed
				exec(t, sweep, 0, take)
				must(t, sweep.Commit(t.Context()))
				wants(t, db, "1/a:pending 1/b:pending")
			})
		})
	}
}

// A worker gives a delivery up while a sweep holds the event: it waits, the sweep finds it owed, and both end well.
func TestADeadLetterBesideASweep(t *testing.T) {
	db := installed.New(t)
	record(t, db.Conn(t), domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("a", "b")...)
	all := claim(t, db.Conn(t), "w", 2, "1/a", "1/b")
	must(t, store.Succeed(t.Context(), db.Conn(t), all[0].Claim))
	sweep, _ := begin(t, db)
	exec(t, sweep, 1, takeParent)
	conn := db.Conn(t)
	waiting := beside(t, db, conn, func() error { return store.Dead(bounded(t), conn, all[1].Claim, "x") })
	exec(t, sweep, 0, recheck)
	exec(t, sweep, 0, take)
	must(t, sweep.Commit(t.Context()))
	must(t, <-waiting)
	wants(t, db, "1/a:succeeded 1/b:dead parked 1")
}

// The other order: the sweep passes over the event while the dead letter is being made of it.
func TestASweepBesideADeadLetter(t *testing.T) {
	db := installed.New(t)
	record(t, db.Conn(t), domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("a")...)
	c := claim(t, db.Conn(t), "w", 1, "1/a")[0].Claim
	tx, _ := begin(t, db)
	must(t, store.Dead(bounded(t), tx, c, "x"))
	sweep, _ := begin(t, db)
	exec(t, sweep, 0, takeParent)
	must(t, tx.Commit(t.Context()))
	wants(t, db, "1/a:dead parked 1")
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

// A replay and a worker that gives one of its deliveries up: neither waits for the other in a ring.
func TestAReplayBesideADeadLetter(t *testing.T) {
	prepare := func(t *testing.T) (*pgtest.DB, domainevents.Claim) {
		db := installed.New(t)
		record(t, db.Conn(t), domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("a", "b")...)
		all := claim(t, db.Conn(t), "w", 2, "1/a", "1/b")
		must(t, store.Succeed(t.Context(), db.Conn(t), all[0].Claim))
		return db, all[1].Claim
	}
	t.Run("the replay first", func(t *testing.T) {
		db, c := prepare(t)
		first, _ := begin(t, db)
		exec(t, first, 1, takeParent)
		conn := db.Conn(t)
		waiting := beside(t, db, conn, func() error { return store.Dead(bounded(t), conn, c, "x") })
		// The dead letter holds its delivery and waits for the event. The replay, which has the event, must not wait for it.
		done, err := store.Replay(bounded(t), within{first}, 1)
		must(t, err)
		if len(done.Reopened) != 1 || done.Underway != 1 {
			t.Errorf("replayed %+v", done)
		}
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:pending 1/b:dead parked 1")
	})
	t.Run("the dead letter first", func(t *testing.T) {
		db, c := prepare(t)
		first, _ := begin(t, db)
		must(t, store.Dead(bounded(t), first, c, "x"))
		conn := db.Conn(t)
		waiting := beside(t, db, conn, func() error { _, err := store.Replay(bounded(t), conn, 1); return err })
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:pending 1/b:pending")
	})
}

// Two who delete at once remember receivers in one order, and the newest success of both is kept.
func TestTwoWhoDeleteAtOnceRememberTheNewest(t *testing.T) {
	for _, newest := range []int{1, 2} {
		db := installed.New(t)
		conn := db.Conn(t)
		record(t, conn, domainevents.Draft{}, to("a", "b", "c")...)
		record(t, conn, domainevents.Draft{}, to("c", "b", "a")...)
		db.Exec(t, `update domain_event_deliveries set status = 'succeeded', finished_at = case event_id when $1 then '2026-01-02Z'::timestamptz else '2026-01-01Z' end`, newest)
		first, _ := begin(t, db)
		exec(t, first, 3, `delete from domain_event_deliveries where event_id = 1`)
		second := db.Conn(t)
		waiting := beside(t, db, second, func() error {
			_, err := second.Exec(bounded(t), `delete from domain_event_deliveries where event_id = 2`)
			return err
		})
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		if got := db.Text(t, `select string_agg(receiver || to_char(last_success at time zone 'UTC', 'DD'), ' ' order by receiver) from domain_event_receivers`); got != "a02 b02 c02" {
			t.Errorf("event %d is the newest: remembered %q", newest, got)
		}
	}
}

// The deliveries of the two have their receivers in opposite orders. A third session holds the one in the middle until both
// are on their way: each would have what the other needs next, were they not remembered in the order of their keys.
func TestDeletesInDifferentOrdersDoNotDeadlock(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	record(t, conn, domainevents.Draft{}, to("a", "m", "z")...)
	record(t, conn, domainevents.Draft{}, to("z", "m", "a")...)
	db.Exec(t, `
update domain_event_deliveries set status = 'succeeded', finished_at = now() + event_id * interval '1 hour';
insert into domain_event_receivers select r, '2026-01-01Z' from unnest(array['a', 'm', 'z']) r`)
	middle, _ := begin(t, db)
	exec(t, middle, 1, `select from domain_event_receivers where receiver = 'm' for update`)
	var ends []<-chan error
	for id := 1; id <= 2; id++ {
		c := db.Conn(t)
		ends = append(ends, beside(t, db, c, func() error {
			_, err := c.Exec(bounded(t), `delete from domain_event_deliveries where event_id = $1`, id)
			return err
		}))
	}
	must(t, middle.Rollback(t.Context()))
	for _, end := range ends {
		must(t, <-end)
	}
	if n := db.Int(t, `select count(*) from domain_event_receivers where last_success > now() + interval '90 minutes'`); n != 3 {
		t.Errorf("%d receivers have their newest success", n)
	}
}

func TestQuietIsTheLaterOfWhatIsRememberedAndWhatIsThere(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	record(t, conn, domainevents.Draft{}, to("both", "living", "gone", "dead")...)
	record(t, conn, domainevents.Draft{}, to("both", "living", "fresh")...)
	db.Exec(t, `
update domain_event_deliveries set status = 'succeeded', finished_at = '2026-01-01Z';
update domain_event_deliveries set finished_at = '2026-01-03Z' where event_id = 2;
update domain_event_deliveries set finished_at = '2026-01-09Z' where receiver = 'fresh';
update domain_event_deliveries set status = 'dead' where receiver = 'dead';
delete from domain_event_receivers;
insert into domain_event_receivers values ('both', '2026-01-05Z'), ('gone', '2026-01-02Z'), ('fresh', '2026-01-01Z')`)
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for since, want := range map[int]string{
		1: "", 2: "", 3: "gone2 ", 4: "gone2 living3 ", 5: "gone2 living3 ", 6: "gone2 living3 both5 ", 9: "gone2 living3 both5 ", 10: "gone2 living3 both5 fresh9 ",
	} {
		quiet, err := store.Quiet(bounded(t), conn, day(since))
		must(t, err)
		got := ""
		for _, r := range quiet {
			got += fmt.Sprint(r.Name, r.LastSuccess.Day(), " ")
		}
		if got != want {
			t.Errorf("since day %d: %q, want %q", since, got, want)
		}
	}
}

func TestHealthCountsUpToItsBound(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	if h, err := store.Health(bounded(t), conn, 5); err != nil || h.Owed != (domainevents.Count{}) || !h.OldestOwed.IsZero() || len(h.Unknown) != 0 {
		t.Errorf("of nothing: %+v, %v", h, err)
	}
	db.Exec(t, `
insert into domain_events (type, payload, recorded_at, retention_policy)
select 'x', '{}', '2026-01-01Z'::timestamptz + n * interval '1 day', (array['SUCCEEDED', 'SETTLED', 'LATER', 'never', null])[1 + n % 5] from generate_series(0, 19) n;
insert into domain_event_deliveries (event_id, receiver) select id, 'owed' from domain_events where id > 3;
insert into domain_event_deliveries (event_id, receiver, status, claimed_by, claimed_at, claimed_until)
select id, 'claimed', 'claimed', 'w', now(), now() + (id - 6.5) * interval '1 hour' from domain_events where id between 3 and 10;
insert into domain_event_deliveries (event_id, receiver, status, finished_at)
select id, 'ended', (array['dead', 'orphaned', 'succeeded', 'cancelled'])[1 + id % 4], now() from domain_events`)
	// 17 pending and 8 claimed, 4 of them lapsed; 10 dead letters, of which 2 are of the 4 under SUCCEEDED (1, 6, 11, 16).
	h, err := store.Health(bounded(t), conn, 100)
	must(t, err)
	parked := int(db.Int(t, `select count(*) from domain_events where parked`))
	if h.Owed != (domainevents.Count{N: 25}) || h.Dead != (domainevents.Count{N: 10}) || h.Lapsed != (domainevents.Count{N: 4}) || h.Parked != (domainevents.Count{N: parked}) || parked != 2 {
		t.Errorf("health %+v, %d parked", h, parked)
	}
	if !h.OldestOwed.Equal(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)) || h.OldestOwed.Location() != time.UTC {
		t.Errorf("the oldest owed is of %s", h.OldestOwed)
	}
	if len(h.Unknown) != 2 || h.Unknown["LATER"] != 4 || h.Unknown["never"] != 4 || h.UnknownAtLeast {
		t.Errorf("unknown %v, at least %t", h.Unknown, h.UnknownAtLeast)
	}
	h, err = store.Health(bounded(t), conn, 1)
	must(t, err)
	one := domainevents.Count{N: 1, AtLeast: true}
	if h.Owed != one || h.Dead != one || h.Lapsed != one || h.Parked != one || !h.UnknownAtLeast {
		t.Errorf("health up to 1: %+v", h)
	}
	if h, err = store.Health(bounded(t), conn, 25); err != nil || h.Owed.AtLeast {
		t.Errorf("health up to what there is: %+v, %v", h, err)
	}
}
