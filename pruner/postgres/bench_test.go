package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// runEvents is the guarded sweep of run events, with a window of 30 days.
func runEvents() policy.Sweep {
	return policy.Sweep{
		Name: "run_events", Table: policy.Name{Schema: "public", Table: "run_events"}, Age: "created_at", Window: policy.MustWindow(30 * 24 * time.Hour),
		Guard: policy.Guard{Owner: &policy.OwnerGuard{
			Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "tenant_id", Owner: "tenant_id"}, {Target: "run_id", Owner: "id"}},
			Column: "status", Terminal: policy.Texts("completed", "failed", "cancelled"),
		}},
	}
}

// population makes runs x 100 events in age order, 2 % of the runs live, 55 % of the events past the window.
func population(runs int) string {
	return fmt.Sprintf(`
CREATE TABLE runs (tenant_id text, id text, status text NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE run_events (tenant_id text, run_id text, sequence int, type text NOT NULL, event jsonb, created_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, run_id, sequence));
INSERT INTO runs SELECT 'tenant-' || g %% 20, 'run-' || lpad(g::text, 8, '0'), CASE WHEN g %% 50 = 0 THEN 'running' WHEN g %% 3 = 0 THEN 'failed' ELSE 'completed' END FROM generate_series(0, %[1]d - 1) g;
INSERT INTO run_events
SELECT 'tenant-' || r %% 20, 'run-' || lpad(r::text, 8, '0'), s, 'step', jsonb_build_object('step', s, 'note', repeat('x', 60)), now() - interval '66.6 days' + (b * 5000 + s * 50 + o) * (interval '66.6 days' / (%[1]d * 100))
  FROM (SELECT b * 50 + o AS r, s, b, o FROM generate_series(0, %[1]d / 50 - 1) b, generate_series(1, 100) s, generate_series(0, 49) o) x ORDER BY b, s, o;
CREATE INDEX run_events_retention ON run_events (created_at, tenant_id, run_id, sequence);`, runs)
}

const unbounded = `DELETE FROM run_events e USING runs r WHERE r.tenant_id = e.tenant_id AND r.id = e.run_id AND e.created_at < $1 AND r.status IN ('completed', 'failed', 'cancelled')`

// BenchmarkDrain compares draining 1.1 of 2 million guarded run events in batches of 5,000 with one unbounded DELETE of
// the same rows, each on a fresh clone: go test ./pruner/postgres -run xxx -bench Drain -benchtime 5x
func BenchmarkDrain(b *testing.B) {
	ctx := context.Background()
	srv := pgtest.Own(b, pgserver.Options{Durable: true, Settings: []string{"shared_buffers=1GB", "max_wal_size=8GB", "autovacuum=off", "checkpoint_timeout=1h"}})
	admin := connect(b, srv.DSN("postgres"))
	mustExec(b, admin, "CREATE DATABASE pop")
	pop := connect(b, srv.DSN("pop"))
	mustExec(b, pop, population(20000))
	mustExec(b, pop, "VACUUM ANALYZE")
	_ = pop.Close(ctx)
	now := time.Now()
	cutoff := runEvents().Window.Cutoff(now)
	clone := func(b *testing.B) *pgx.Conn {
		b.StopTimer()
		defer b.StartTimer()
		mustExec(b, admin, "DROP DATABASE IF EXISTS clone WITH (FORCE)")
		mustExec(b, admin, "CREATE DATABASE clone TEMPLATE pop")
		c := connect(b, srv.DSN("clone"))
		mustExec(b, c, "CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm('run_events'), pg_prewarm('run_events_retention'), pg_prewarm('run_events_pkey'), pg_prewarm('runs'), pg_prewarm('runs_pkey')")
		mustExec(b, c, "CHECKPOINT")
		return c
	}
	one := func(b *testing.B) (int, time.Duration) {
		c := clone(b)
		start := time.Now()
		tag, err := c.Exec(ctx, unbounded, cutoff.Time())
		if err != nil {
			b.Fatal(err)
		}
		return int(tag.RowsAffected()), time.Since(start)
	}
	engine := func(b *testing.B, limit int) (int, time.Duration, time.Duration) {
		c := clone(b)
		arms, err := Open(ctx, Conn(c), runEvents(), Options{OneSweeper: true})
		if err != nil {
			b.Fatal(err)
		}
		removed, slowest := 0, time.Duration(0)
		start := time.Now()
		for batch := (pruner.Batch{Cutoff: cutoff, Limit: limit}); ; {
			t := time.Now()
			res, err := arms[0].Prune(ctx, batch)
			if err != nil {
				b.Fatal(err)
			}
			slowest = max(slowest, time.Since(t))
			removed += res.Removed
			if res.End {
				return removed, time.Since(start), slowest
			}
			batch.After = res.Next
		}
	}
	for _, limit := range []int{5000, 20000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			var ratios []float64
			var worst time.Duration
			var rows int
			for b.Loop() {
				n, alone := one(b)
				m, took, slowest := engine(b, limit)
				if n != m {
					b.Fatalf("one DELETE removed %d rows, the engine %d", n, m)
				}
				rows = m
				ratios = append(ratios, alone.Seconds()/took.Seconds())
				worst = max(worst, slowest)
				b.Logf("one DELETE %v, engine %v, ratio %.2f, slowest batch %v", alone, took, ratios[len(ratios)-1], slowest)
			}
			b.ReportMetric(median(ratios), "of-one-DELETE")
			b.ReportMetric(float64(worst.Milliseconds()), "ms/slowest-batch")
			b.ReportMetric(float64(rows), "rows")
		})
	}
}
