package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// lapse lets the leases of a worker end.
func lapse(t *testing.T, db *pgtest.DB, worker string) {
	t.Helper()
	db.Exec(t, `update domain_event_deliveries set claimed_until = now() - interval '1 second' where claimed_by = $1`, worker)
}

func TestTheOldestDueIsClaimedFirst(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for range 6 {
		record(t, conn, domainevents.Draft{}, to("a")...)
	}
	db.Exec(t, `
update domain_event_deliveries set due_at = now() + interval '1 hour' where event_id = 1;
update domain_event_deliveries set due_at = now() - interval '1 minute' where event_id = 2;
update domain_event_deliveries set due_at = now() - interval '3 minutes', status = 'failed' where event_id = 3;
update domain_event_deliveries set status = 'claimed', claimed_by = 'gone', claimed_at = now(), claimed_until = now() - interval '2 minutes' where event_id = 4;
update domain_event_deliveries set status = 'claimed', claimed_by = 'busy', claimed_at = now(), claimed_until = now() + interval '1 hour' where event_id = 5;
update domain_event_deliveries set status = 'dead', finished_at = now() where event_id = 6`)
	claim(t, conn, "w", 1, "3/a")
	claim(t, conn, "w", 1, "4/a")
	claim(t, conn, "w", 10, "2/a")
	claim(t, conn, "w", 10)
	lapse(t, db, "w")
	db.Exec(t, `update domain_event_deliveries set claimed_until = now() - event_id * interval '1 second' where claimed_by = 'w'`)
	all := claim(t, conn, "v", 2, "4/a", "3/a")
	if all[0].Attempts != 2 {
		t.Errorf("attempts %d", all[0].Attempts)
	}
}

// What one worker is claiming is passed over by the next, and not waited for.
func TestTwoWorkersClaimDifferentDeliveries(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for range 4 {
		record(t, conn, domainevents.Draft{}, to("a")...)
	}
	tx, _ := begin(t, db)
	claim(t, tx, "v", 2, "1/a", "2/a")
	claim(t, conn, "w", 10, "3/a", "4/a")
	must(t, tx.Rollback(t.Context()))
	claim(t, conn, "w", 10, "1/a", "2/a")
}

func TestEachAcknowledgementEndsTheClaim(t *testing.T) {
	soon := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	for status, acknowledge := range map[domainevents.Status]func(*testing.T, *pgtest.DB, domainevents.Claim) error{
		domainevents.Succeeded: func(t *testing.T, db *pgtest.DB, c domainevents.Claim) error {
			return store.Succeed(t.Context(), db.Conn(t), c)
		},
		domainevents.Failed: func(t *testing.T, db *pgtest.DB, c domainevents.Claim) error {
			return store.Fail(t.Context(), db.Conn(t), c, soon, "why")
		},
		domainevents.Dead: func(t *testing.T, db *pgtest.DB, c domainevents.Claim) error {
			return store.Dead(t.Context(), db.Conn(t), c, "why")
		},
		domainevents.Orphaned: func(t *testing.T, db *pgtest.DB, c domainevents.Claim) error {
			return store.Orphan(t.Context(), db.Conn(t), c, "why")
		},
		domainevents.Cancelled: func(t *testing.T, db *pgtest.DB, c domainevents.Claim) error {
			return store.Cancel(t.Context(), db.Conn(t), c, "why")
		},
	} {
		t.Run(string(status), func(t *testing.T) {
			db := installed.New(t)
			record(t, db.Conn(t), domainevents.Draft{}, to("a")...)
			c := claim(t, db.Conn(t), "w", 1, "1/a")[0].Claim
			wrong := c
			wrong.At = c.At.Add(time.Microsecond)
			if err := acknowledge(t, db, wrong); !errors.Is(err, domainevents.ErrClaimLost) {
				t.Errorf("another time: %v", err)
			}
			wrong = c
			wrong.By = "v"
			if err := acknowledge(t, db, wrong); !errors.Is(err, domainevents.ErrClaimLost) {
				t.Errorf("another worker: %v", err)
			}
			wants(t, db, "1/a:claimed")
			must(t, acknowledge(t, db, c))
			wants(t, db, "1/a:"+string(status))
			if err := acknowledge(t, db, c); !errors.Is(err, domainevents.ErrClaimLost) {
				t.Errorf("twice: %v", err)
			}
			if status == domainevents.Failed {
				claim(t, db.Conn(t), "w", 1)
				if got := db.Int(t, `select count(*) from domain_event_deliveries where due_at = $1 and last_error = 'why'`, soon); got != 1 {
					t.Error("it is due at another time, or has no error")
				}
			} else if n := db.Int(t, `select count(*) from domain_event_deliveries where finished_at > now() - interval '1 minute'`); n != 1 {
				t.Error("it has no end")
			}
		})
	}
}

// A lapsed lease is the worker's until somebody takes it, and never again after that.
func TestALapsedLeaseCannotOverwriteItsNewOwner(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	record(t, conn, domainevents.Draft{}, to("a", "b")...)
	old := claim(t, conn, "w", 2, "1/a", "1/b")
	lapse(t, db, "w")
	must(t, store.Succeed(t.Context(), conn, old[1].Claim)) // nobody took it

	taken := claim(t, conn, "w", 2, "1/a") // by the same name
	if err := store.Dead(t.Context(), conn, old[0].Claim, "late"); !errors.Is(err, domainevents.ErrClaimLost) {
		t.Errorf("late: %v", err)
	}
	wants(t, db, "1/a:claimed 1/b:succeeded")
	must(t, store.Succeed(t.Context(), conn, taken[0].Claim))
	if err := store.Dead(t.Context(), conn, old[0].Claim, "late"); !errors.Is(err, domainevents.ErrClaimLost) {
		t.Errorf("too late: %v", err)
	}
	wants(t, db, "1/a:succeeded 1/b:succeeded")
}

// The new claim is taken but not committed when the late acknowledgement comes: it waits, and is refused, or holds where
// the new one gave up.
func TestALateAcknowledgementBesideANewClaim(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			record(t, db.Conn(t), domainevents.Draft{}, to("a")...)
			late := claim(t, db.Conn(t), "w", 1, "1/a")[0].Claim
			lapse(t, db, "w")
			tx, _ := begin(t, db)
			claim(t, tx, "v", 1, "1/a")

			conn := db.Conn(t)
			done := db.Beside(t, conn, func() error { return store.Succeed(bounded(t), conn, late) })
			if commits {
				must(t, tx.Commit(t.Context()))
				if err := <-done; !errors.Is(err, domainevents.ErrClaimLost) {
					t.Errorf("late: %v", err)
				}
				wants(t, db, "1/a:claimed")
			} else {
				must(t, tx.Rollback(t.Context()))
				must(t, <-done)
				wants(t, db, "1/a:succeeded")
			}
		})
	}
}

// The acknowledgement came first: a claim passes over it and finds nothing after.
func TestAClaimBesideALateAcknowledgement(t *testing.T) {
	db := installed.New(t)
	record(t, db.Conn(t), domainevents.Draft{}, to("a")...)
	late := claim(t, db.Conn(t), "w", 1, "1/a")[0].Claim
	lapse(t, db, "w")
	tx, _ := begin(t, db)
	must(t, store.Succeed(t.Context(), tx, late))
	claim(t, db.Conn(t), "v", 1)
	must(t, tx.Commit(t.Context()))
	claim(t, db.Conn(t), "v", 1)
	wants(t, db, "1/a:succeeded")
}
