package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
)

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
		waiting := db.Beside(t, conn, func() error { return store.Dead(bounded(t), conn, c, "x") })
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:pending 1/b:dead parked 1")
	})
	t.Run("the dead letter first", func(t *testing.T) {
		db, c := prepare(t)
		first, _ := begin(t, db)
		must(t, store.Dead(bounded(t), first, c, "x"))
		conn := db.Conn(t)
		waiting := db.Beside(t, conn, func() error {
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
		waiting := db.Beside(t, conn, func() error { return store.Dead(bounded(t), conn, c, "x") })
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
		waiting := db.Beside(t, conn, func() error { _, err := conn.Exec(bounded(t), c.second); return err })
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
				waiting := db.Beside(t, conn, func() (err error) {
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
				waiting := db.Beside(t, conn, func() (err error) {
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
	waiting := db.Beside(t, conn, func() error { return store.Dead(bounded(t), conn, all[1].Claim, "x") })
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
		waiting := db.Beside(t, conn, func() error { return store.Dead(bounded(t), conn, c, "x") })
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
		waiting := db.Beside(t, conn, func() error { _, err := store.Replay(bounded(t), conn, 1); return err })
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		wants(t, db, "1/a:pending 1/b:pending")
	})
}
