package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/connections"
)

func isInput(err error) bool    { return errors.Is(err, connections.ErrInput) }
func isNotFound(err error) bool { return errors.Is(err, connections.ErrNotFound) }

// end commits or rolls back.
func end(t *testing.T, tx pgx.Tx, commits bool) {
	t.Helper()
	if commits {
		must(t, tx.Commit(bounded(t)))
	} else {
		must(t, tx.Rollback(bounded(t)))
	}
}

var ends = map[string]bool{"commits": true, "rolls back": false}

// Two create the same connection: the second waits, and is told so, or creates it where the first one gave up.
func TestTheSecondCreationWaitsForTheFirst(t *testing.T) {
	for name, commits := range ends {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			one, conn := begin(t, db), db.Conn(t)
			create(t, one, "t", "c")
			d := draft("t", "c")
			d.Name = "second"
			done := db.Beside(t, conn, func() error { _, err := store(conn).Create(bounded(t), d); return err })
			end(t, one, commits)
			if err := <-done; errors.Is(err, connections.ErrExists) != commits || !commits && err != nil {
				t.Errorf("the second: %v", err)
			}
			if got, want := db.Text(t, `select name from connections`), map[bool]string{true: "n", false: "second"}[commits]; got != want {
				t.Errorf("there is the one named %s", got)
			}
		})
	}
}

// Two revoke at once: the second waits, and is told the time of the first.
func TestTheSecondRevocationIsToldTheFirstTime(t *testing.T) {
	for name, commits := range ends {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			create(t, db.Conn(t), "t", "c")
			one, conn := begin(t, db), db.Conn(t)
			first, err := store(one).Revoke(bounded(t), "t", "c")
			must(t, err)
			var second time.Time
			done := db.Beside(t, conn, func() (err error) {
				second, err = store(conn).Revoke(bounded(t), "t", "c")
				return err
			})
			end(t, one, commits)
			must(t, <-done)
			if second.Equal(first) != commits || second.Before(first) {
				t.Errorf("the first at %s, the second at %s", first, second)
			}
			if third, err := store(conn).Revoke(bounded(t), "t", "c"); err != nil || !third.Equal(second) {
				t.Errorf("the third at %s, %v", third, err)
			}
		})
	}
}

// An update that waits for a revocation finds nothing any more, and puts no secret back; where the revocation was given up, it
// is made.
func TestAnUpdateBesideARevocation(t *testing.T) {
	for name, commits := range ends {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			create(t, db.Conn(t), "t", "c")
			one, conn := begin(t, db), db.Conn(t)
			_, err := store(one).Revoke(bounded(t), "t", "c")
			must(t, err)
			secret := connections.NewSecret([]byte("put back"))
			done := db.Beside(t, conn, func() error {
				_, err := store(conn).Update(bounded(t), "t", "c", connections.Change{Secret: &secret})
				return err
			})
			end(t, one, commits)
			if err := <-done; isNotFound(err) != commits || !commits && err != nil {
				t.Errorf("the update: %v", err)
			}
			if n := db.Int(t, `select count(*) from connections where (revoked_at is null) = (secret is not null)`); n != 1 {
				t.Error("a revoked one has a secret, or one that is not has none")
			}
		})
	}
}

// A revocation that waits for an update comes after it, and removes the secret that it brought.
func TestARevocationBesideAnUpdate(t *testing.T) {
	for name, commits := range ends {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			create(t, db.Conn(t), "t", "c")
			one, conn := begin(t, db), db.Conn(t)
			secret := connections.NewSecret([]byte("new"))
			var at time.Time
			// The row is held when the revocation begins, and updated while that waits: it takes its time when the wait is over.
			_, err := one.Exec(bounded(t), `select from connections for update`)
			must(t, err)
			done := db.Beside(t, conn, func() (err error) {
				at, err = store(conn).Revoke(bounded(t), "t", "c")
				return err
			})
			updated, err := store(one).Update(bounded(t), "t", "c", connections.Change{Secret: &secret})
			must(t, err)
			end(t, one, commits)
			must(t, <-done)
			if commits && at.Before(updated.Updated) {
				t.Errorf("revoked at %s, updated at %s", at, updated.Updated)
			}
			if n := db.Int(t, `select count(*) from connections where revoked_at is not null and secret is null`); n != 1 {
				t.Error("the secret is there")
			}
		})
	}
}

// Who gets a connection does not wait for a revocation; he has it before the commit, and never after.
func TestGetBesideARevocation(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	create(t, conn, "t", "c")
	tx := begin(t, db)
	_, err := store(tx).Revoke(bounded(t), "t", "c")
	must(t, err)
	if _, err := store(tx).Get(bounded(t), "t", "c"); !isNotFound(err) {
		t.Errorf("get in the transaction: %v", err)
	}
	if c, err := store(conn).Get(bounded(t), "t", "c"); err != nil || c.Secret.IsZero() {
		t.Errorf("get before the commit: %v", err)
	}
	must(t, tx.Commit(bounded(t)))
	if _, err := store(conn).Get(bounded(t), "t", "c"); !isNotFound(err) {
		t.Errorf("get after the commit: %v", err)
	}
	if l, err := store(conn).List(bounded(t), "t", connections.Page{}); err != nil || len(l.Connections) != 0 {
		t.Errorf("list after the commit: %+v, %v", l, err)
	}
}

// Under a stricter isolation the one that comes second is told to do it again.
func TestAConflictIsSaid(t *testing.T) {
	db := installed.New(t)
	create(t, db.Conn(t), "t", "c")
	tx, err := db.Conn(t).BeginTx(bounded(t), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	defer tx.Rollback(t.Context())
	if _, err := store(tx).Get(bounded(t), "t", "c"); err != nil {
		t.Fatal(err)
	}
	_, err = store(db.Conn(t)).Revoke(bounded(t), "t", "c")
	must(t, err)
	if _, err := store(tx).Revoke(bounded(t), "t", "c"); !errors.Is(err, connections.ErrConflict) {
		t.Error(err)
	}
}
