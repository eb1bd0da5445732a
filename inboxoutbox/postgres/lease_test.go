package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// expire lets all leases end.
func expire(t *testing.T, db *pgtest.DB) {
	t.Helper()
	db.Exec(t, `update inbox_outbox.leases set expires_at = now() - interval '1 second'`)
}

func TestAPartitionHasOneHolder(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	mine := acquire(t, conn, "p", "w", true)
	if mine.Handler != "h" || mine.Partition != "p" || mine.Holder != "w" || mine.Token == "" || time.Until(mine.ExpiresAt) < 30*time.Second ||
		mine.ExpiresAt.Location() != time.UTC {
		t.Errorf("lease %+v", mine)
	}
	acquire(t, conn, "q", "v", true)
	other := acquire(t, conn, "p", "v", false)
	if other.Holder != "w" || other.Token != "" || !other.ExpiresAt.Equal(mine.ExpiresAt) {
		t.Errorf("lease %+v", other)
	}
	acquire(t, conn, "p", "w", false) // the name alone is nobody: an earlier run may still be at work
	if _, ok, err := store.Acquire(bounded(t), conn, "g", "p", "v", time.Minute); err != nil || !ok {
		t.Errorf("of another handler: %t, %v", ok, err)
	}
	renewed, err := store.Renew(bounded(t), conn, mine, time.Hour)
	must(t, err)
	if renewed.Token != mine.Token || time.Until(renewed.ExpiresAt) < 50*time.Minute {
		t.Errorf("lease %+v", renewed)
	}
	must(t, store.Return(bounded(t), conn, mine)) // the token is the same
	acquire(t, conn, "p", "v", true)
}

// An expired lease is lost, whether somebody took it, it was removed, or neither.
func TestAnExpiredLeaseIsLost(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	lost := func(l inboxoutbox.Lease) {
		t.Helper()
		if _, err := store.Renew(bounded(t), conn, l, time.Minute); !errors.Is(err, inboxoutbox.ErrClaimLost) {
			t.Errorf("renew: %v", err)
		}
	}
	old := acquire(t, conn, "p", "w", true)
	expire(t, db)
	lost(old)
	taken := acquire(t, conn, "p", "v", true)
	lost(old)
	if err := store.Return(bounded(t), conn, old); !errors.Is(err, inboxoutbox.ErrClaimLost) {
		t.Errorf("return: %v", err)
	}
	wants(t, db, "lease:p:v")
	must(t, store.Return(bounded(t), conn, taken))
	lost(taken)
	wants(t, db, "")
	gone := acquire(t, conn, "p", "w", true)
	db.Exec(t, `delete from inbox_outbox.leases`)
	lost(gone)
}

// Two acquire an expired lease at once: the second waits for the first one, and has it only
// where that one gave up.
func TestOfTwoWhoAcquireOneHasIt(t *testing.T) {
	for _, expired := range []bool{false, true} {
		for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
			t.Run(name, func(t *testing.T) {
				db := installed.New(t)
				if expired {
					acquire(t, db.Conn(t), "p", "old", true)
					expire(t, db)
				}
				one, conn := begin(t, db), db.Conn(t)
				acquire(t, one, "p", "w", true)
				var ok bool
				done := db.Beside(t, conn, func() (err error) {
					_, ok, err = store.Acquire(bounded(t), conn, "h", "p", "v", time.Minute)
					return err
				})
				want := "lease:p:w"
				if commits {
					must(t, one.Commit(bounded(t)))
				} else {
					must(t, one.Rollback(bounded(t)))
					want = "lease:p:v"
				}
				must(t, <-done)
				if ok == commits {
					t.Errorf("the second has it: %t", ok)
				}
				wants(t, db, want)
			})
		}
	}
}

// The lease is being taken when its old holder, to whom it still looks his own, comes to renew or
// return it.
func TestALateHolderBesideANewOne(t *testing.T) {
	for name, late := range map[string]func(conn postgres.DB, l inboxoutbox.Lease) error{
		"renew": func(conn postgres.DB, l inboxoutbox.Lease) error {
			_, err := store.Renew(bounded(t), conn, l, time.Minute)
			return err
		},
		"return": func(conn postgres.DB, l inboxoutbox.Lease) error { return store.Return(bounded(t), conn, l) },
	} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			l := acquire(t, db.Conn(t), "p", "w", true)
			one, conn := begin(t, db), db.Conn(t)
			_, err := one.Exec(bounded(t), `update inbox_outbox.leases set expires_at = clock_timestamp() - interval '1 second'`)
			must(t, err)
			acquire(t, one, "p", "v", true)
			done := db.Beside(t, conn, func() error { return late(conn, l) })
			must(t, one.Commit(bounded(t)))
			if err := <-done; !errors.Is(err, inboxoutbox.ErrClaimLost) {
				t.Errorf("late: %v", err)
			}
			wants(t, db, "lease:p:v")
		})
	}
}

// A lease that expires while its holder waits to renew it is lost.
func TestALeaseIsJudgedWhenTheWaitIsOver(t *testing.T) {
	db := installed.New(t)
	l := acquire(t, db.Conn(t), "p", "w", true)
	one, conn := begin(t, db), db.Conn(t)
	_, err := one.Exec(bounded(t), `select from inbox_outbox.leases for update`)
	must(t, err)
	done := db.Beside(t, conn, func() error { _, err := store.Renew(bounded(t), conn, l, time.Minute); return err })
	_, err = one.Exec(bounded(t), `update inbox_outbox.leases set expires_at = clock_timestamp()`) // after the other began
	must(t, err)
	must(t, one.Commit(bounded(t)))
	if err := <-done; !errors.Is(err, inboxoutbox.ErrClaimLost) {
		t.Errorf("renew: %v", err)
	}
}

func TestALeaseThatCannotBeIsRefused(t *testing.T) {
	conn := installed.New(t).Conn(t)
	for _, c := range []struct {
		handler, holder string
		hold            time.Duration
	}{{"", "w", time.Minute}, {"h", "", time.Minute}, {"h", "w", 0}, {"h", "w", -time.Minute}, {"h", "w", time.Microsecond}} {
		if _, _, err := store.Acquire(bounded(t), conn, c.handler, "p", c.holder, c.hold); !errors.Is(err, inboxoutbox.ErrClaim) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := store.Renew(bounded(t), conn, acquire(t, conn, "p", "w", true), 0); !errors.Is(err, inboxoutbox.ErrClaim) {
		t.Errorf("renew: %v", err)
	}
}
