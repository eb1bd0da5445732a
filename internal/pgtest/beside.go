package pgtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Beside steps a race: it runs f in the background and returns once the session
// of conn, on which f works, waits for another one. What f ends with comes on
// the channel, and nothing after it. The test fails where f ends without
// having waited, and where it has not waited within a minute.
//
// It looks from a connection of its own, which is closed when Beside returns.
// f needs an end of its own: a context with a deadline, or a lock timeout.
func (d *DB) Beside(t testing.TB, conn *pgx.Conn, f func() error) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	done, err := d.Waiting(ctx, conn, f)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return done
}

// Waiting is [DB.Beside] where it is no failure of the test that f does not
// wait: that is an error here, which wraps the one that f ended with, and so is
// the end of ctx. The channel is nil beside an error, and f may still run.
func (d *DB) Waiting(ctx context.Context, conn *pgx.Conn, f func() error) (<-chan error, error) {
	watch, err := pgx.Connect(ctx, d.DSN)
	if err != nil {
		return nil, err
	}
	defer closeConn(watch)
	done := make(chan error, 1)
	pid := conn.PgConn().PID() // before f has the connection
	go func() { done <- f() }()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		var waits bool
		if err := watch.QueryRow(ctx, "select cardinality(pg_blocking_pids($1)) > 0", int64(pid)).Scan(&waits); err != nil {
			return nil, fmt.Errorf("see whether it waits: %w", err)
		}
		if waits {
			return done, nil
		}
		select {
		case err := <-done:
			if err == nil {
				return nil, errors.New("it did not wait, and ended without an error")
			}
			return nil, fmt.Errorf("it did not wait, and ended with %w", err)
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("it never waited: %w", ctx.Err())
		}
	}
}
