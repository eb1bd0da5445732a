package foreground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	finished = 400 // runs that have ended, of 100 events each
	live     = 100 // runs that go on, of as many
	loadFor  = 10 * time.Second
	maxFor   = 3 * time.Second
)

// history has runs that have ended and events of theirs past the window, in the order of their ages.
var history = fmt.Sprintf(`
CREATE TABLE runs (id bigint PRIMARY KEY, status text NOT NULL, touched bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE run_events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), event jsonb NOT NULL);
INSERT INTO runs SELECT g, CASE WHEN g <= %[1]d THEN 'done' ELSE 'running' END FROM generate_series(1, %[1]d + %[2]d) g;
INSERT INTO run_events (run_id, created_at, event) SELECT 1 + g %% (%[1]d + %[2]d), now() - interval '60 days' + g * interval '1 second', '{"note": "sixty days ago"}' FROM generate_series(0, (%[1]d + %[2]d) * 100 - 1) g;
CREATE INDEX run_events_retention ON run_events (created_at, run_id, id);`, finished, live)

// script is what an application does: most of it to runs that go on; now and then it touches one that has ended, whose row
// the sweep locks for the length of a batch.
var script = fmt.Sprintf(`\set run random(%d, %d)
\set ended random(1, %d * 10)
BEGIN;
UPDATE runs SET touched = touched + 1 WHERE id = :run;
INSERT INTO run_events (run_id, event) VALUES (:run, '{"note": "now"}');
UPDATE runs SET touched = touched + 1 WHERE id = :ended;
SELECT count(*) FROM (SELECT FROM run_events WHERE run_id = :run ORDER BY created_at DESC LIMIT 5) e;
COMMIT;
`, finished+1, finished+live, finished)

func sweep() policy.Sweep {
	public := func(table string) policy.Name { return policy.Name{Schema: "public", Table: table} }
	s := policy.Sweep{Name: "run_events", Table: public("run_events"), Age: "created_at", Window: policy.MustWindow(30 * 24 * time.Hour),
		Guard: policy.Guard{Owner: &policy.OwnerGuard{Table: public("runs"), Key: []policy.KeyPair{{Target: "run_id", Owner: "id"}}, Column: "status", Terminal: policy.Texts("done")}}}
	s.Timeouts.Lock = lockTimeout
	return s
}

// lockTimeout is the sweep's. Nobody waits longer for the sweep than it would wait for others.
const lockTimeout = 2 * time.Second

// TestDrainBesideTheApplication drains with pauses while pgbench uses the same tables at half of the rate that it reaches by
// itself. None of its transactions fails, none waits for the sweep as long as the sweep's lock timeout, and all that is due
// goes. The rate that is kept and the latencies are said, and not asserted.
func TestDrainBesideTheApplication(t *testing.T) {
	if testing.Short() {
		t.Skip("what is noticed of a sweep does not depend on the server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	db := pgtest.New(t)
	db.Exec(t, history)
	db.Exec(t, "VACUUM (ANALYZE)")
	bench := newBench(t, db)
	most := bench.run(ctx, t, maxFor, 0)
	rate := most.tps / 2
	alone := bench.run(ctx, t, maxFor, rate)

	conn := db.Conn(t)
	arms, err := postgres.Open(ctx, postgres.Conn(conn), sweep(), postgres.Options{OneSweeper: true})
	if err != nil {
		t.Fatal(err)
	}
	due := int(db.Int(t, "SELECT count(*) FROM run_events e JOIN runs r ON r.id = e.run_id WHERE r.status = 'done' AND e.created_at < now() - interval '30 days'"))
	watch := watchWaits(ctx, t, db, conn.PgConn().PID())
	loaded := make(chan load, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		loaded <- bench.run(ctx, t, loadFor, rate)
	}()
	<-started
	bench.until(ctx, t, db) // it is at work
	removed, batches := 0, 0
	var report drain.Report
	// Rows whose run the application holds at that moment are left with an honest stop; the next drain finds them.
	for range 5 {
		server, err := postgres.Identify(ctx, postgres.Conn(conn))
		if err != nil {
			t.Fatal(err)
		}
		report, err = drain.Run(ctx, arms[0], sweep().Window.Cutoff(server.Now), drain.Bounds{Limit: 500, Pause: 50 * time.Millisecond, Rows: drain.NoCeiling})
		if err != nil {
			t.Fatal(err)
		}
		removed, batches = removed+report.Removed, batches+report.Batches
		if report.Drained() {
			break
		}
	}
	beside := <-loaded
	longest, waits := watch()
	if !report.Drained() || removed != due {
		t.Errorf("the drain ended %s with %d of %d rows removed", report.Stop, removed, due)
	}
	if beside.failed != "0" || beside.done == 0 {
		t.Errorf("of %d transactions of the application %s failed", beside.done, beside.failed)
	}
	if longest >= lockTimeout {
		t.Errorf("the application waited %s for the sweep; its lock timeout is %s", longest, lockTimeout)
	}
	t.Logf("%d rows in %d batches, the slowest %s; the application had %.0f of %.0f transactions a second (%.0f %%), its maximum is %.0f; p99 %.1f ms beside %.1f ms alone; it was seen to wait for the sweep %d times, at most %s",
		removed, batches, report.SlowestBatch.Round(time.Millisecond), beside.tps, rate, 100*beside.tps/rate, most.tps, beside.p99, alone.p99, waits, longest.Round(time.Millisecond))
}

// TestWaitsAreSeen proves the watch: a session that waits for another one is seen, and for how long.
func TestWaitsAreSeen(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE t AS SELECT 1 AS id")
	holder, waiter := db.Conn(t), db.Conn(t)
	watch := watchWaits(ctx, t, db, holder.PgConn().PID())
	if _, err := holder.Exec(ctx, "BEGIN; SELECT FROM t FOR UPDATE", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if _, err := waiter.Exec(ctx, "SET lock_timeout = '300ms'"); err != nil {
		t.Fatal(err)
	}
	if _, err := waiter.Exec(ctx, "UPDATE t SET id = 2"); err == nil {
		t.Fatal("it did not wait")
	}
	if longest, waits := watch(); waits == 0 || longest < 100*time.Millisecond || longest > 10*time.Second {
		t.Errorf("%d waits were seen, the longest of %s", waits, longest)
	}
}

// watchWaits looks again and again at who waits for a backend. What it returns ends it, and says the longest wait that was
// seen and how often one was.
func watchWaits(ctx context.Context, t *testing.T, db *pgtest.DB, backend uint32) func() (longest time.Duration, seen int) {
	t.Helper()
	conn := db.Conn(t)
	ctx, cancel := context.WithCancel(ctx)
	var longest, seen atomic.Int64
	ended := make(chan error, 1)
	go func() {
		poll := time.NewTicker(3 * time.Millisecond)
		defer poll.Stop()
		for {
			var waited float64
			err := conn.QueryRow(ctx, `
				SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), -1)::float8
				FROM pg_locks l WHERE NOT l.granted AND l.waitstart IS NOT NULL AND $1 = ANY (pg_blocking_pids(l.pid))`, int32(backend)).Scan(&waited)
			switch {
			case ctx.Err() != nil:
				ended <- nil
				return
			case err != nil:
				ended <- err
				return
			case waited >= 0:
				seen.Add(1)
				longest.Store(max(longest.Load(), int64(waited*float64(time.Second))))
			}
			select {
			case <-poll.C:
			case <-ctx.Done():
				ended <- nil
				return
			}
		}
	}()
	return func() (time.Duration, int) {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("look at who waits: %v", err)
		}
		return time.Duration(longest.Load()), int(seen.Load())
	}
}

// quantile is the value below which a part q of the values lies.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// environment is ours without what would send pgbench elsewhere.
func environment(c *pgx.ConnConfig) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "PG") || strings.HasPrefix(e, "DATABASE_URL=") })
	return append(env, "PGHOST="+c.Host, fmt.Sprintf("PGPORT=%d", c.Port), "PGUSER="+c.User, "PGPASSWORD="+c.Password, "PGDATABASE="+c.Database)
}

func scriptFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "application.sql")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
