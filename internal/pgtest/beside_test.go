package pgtest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// locks locks the first row of a clone of rows on conn, and gives up after a while.
func locks(t *testing.T, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "select from rows where id = 1 for update")
		return err
	})
}

// TestBeside: it returns while f waits, and f ends as the other transaction lets it.
func TestBeside(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		db := rows.New(t)
		tx, err := db.Conn(t).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "delete from rows where id = 1"); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		conn := db.Conn(t)
		done := db.Beside(t, conn, func() error {
			time.Sleep(200 * time.Millisecond) // there is time to return too early
			err := locks(t, conn)
			var n int
			if e := conn.QueryRow(t.Context(), "select count(*) from rows where id = 1").Scan(&n); e != nil || n == 0 {
				return errors.Join(err, e, gone)
			}
			return err
		})
		select {
		case err := <-done:
			t.Fatalf("it ended while the row was locked: %v", err)
		default:
		}
		if waits := db.Text(t, "select cardinality(pg_blocking_pids($1)) > 0", int64(conn.PgConn().PID())); waits != "t" {
			t.Error("it does not wait yet")
		}
		if n := db.Int(t, "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"); n != 2 {
			t.Errorf("%d sessions beside this one: Beside left its own", n)
		}
		end := tx.Rollback
		if deleted {
			end = tx.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; errors.Is(err, gone) != deleted || !deleted && err != nil {
			t.Errorf("deleted %t: it ended with %v", deleted, err)
		}
	}
}

// TestWaiting: what does not wait is an error, and says how it ended.
func TestWaiting(t *testing.T) {
	db := rows.New(t)
	conn, broken := db.Conn(t), errors.New("broken")
	within, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for _, c := range []struct {
		says string
		is   error
		ctx  context.Context
		f    func() error
	}{
		{"it did not wait, and ended without an error", nil, t.Context(), func() error { return locks(t, conn) }},
		{"it did not wait, and ended with broken", broken, t.Context(), func() error { return broken }},
		{"deadline exceeded", context.DeadlineExceeded, within, func() error { <-t.Context().Done(); return nil }}, // its session is idle
	} {
		done, err := db.Waiting(c.ctx, conn, c.f)
		if done != nil || err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v instead of %q", err, c.says)
		}
	}
}

// envBeside has TestBesideNothing do what fails a test, in a process of its own.
const envBeside = "PGTEST_BESIDE"

func TestBesideNothing(t *testing.T) {
	if os.Getenv(envBeside) != "" {
		db := rows.New(t)
		conn := db.Conn(t)
		<-db.Beside(t, conn, func() error { return locks(t, conn) })
		return
	}
	if out, err := again(t, "TestBesideNothing", envBeside+"=1"); err == nil || !strings.Contains(out, "pgtest: it did not wait, and ended without an error") {
		t.Errorf("a race that was none passed: %v\n%s", err, out)
	}
}
