package postgres_test

import (
	"testing"

	"github.com/prunectl/prunectl/eventlog/postgres"
	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
)

// TestPlans: every statement of the log is a probe or one range of the primary keys, in the custom and in the generic
// plan, and none is without them.
func TestPlans(t *testing.T) {
	ctx, conn := t.Context(), withRun.New(t).Conn(t)
	for table, fill := range map[string]string{
		"runs": `INSERT INTO runs (tenant_id, id, status) SELECT 'tenant', 'run-' || g, 'running' FROM generate_series($1::bigint, $2::bigint) g`,
		"run_events": `INSERT INTO run_events (tenant_id, run_id, sequence, type, event)
  SELECT 'tenant', 'run-' || g / 100, 1 + g % 100, 'step', '{}' FROM generate_series($1::bigint, $2::bigint) g`,
	} {
		if err := pgxplan.Fill(ctx, conn, table, fill); err != nil {
			t.Fatal(err)
		}
	}
	events := explaintest.UsesIndex("public.run_events", "run_events_pkey")
	runs := explaintest.UsesIndex("public.runs", "runs_pkey").BoundOn("tenant_id").BoundOn("id")
	noScan := explaintest.NoSeqScan
	add, list, latest := postgres.Statements("public")
	for name, c := range map[string]struct {
		sql   string
		args  []any
		rules []explaintest.Rule
	}{
		"append":          {add, []any{"tenant", "run-7", int64(1), []string{"step"}, []string{"{}"}}, []explaintest.Rule{runs, noScan("runs"), noScan("run_events")}},
		"list after":      {list, []any{"tenant", "run-7", int64(40), int64(10)}, []explaintest.Rule{events.BoundOn("tenant_id").BoundOn("run_id").BoundOn("sequence"), noScan("run_events")}},
		"latest sequence": {latest, []any{"tenant", "run-7"}, []explaintest.Rule{runs, events.BoundOn("tenant_id").BoundOn("run_id"), noScan("runs"), noScan("run_events")}},
	} {
		t.Run(name, func(t *testing.T) {
			st := pgxplan.Statement{SQL: c.sql, Args: c.args}
			pgxplan.Assert(ctx, t, conn, st, append(c.rules, explaintest.NoSort())...)
		})
	}
	// The control: without the key of the events there is no such range.
	pgxplan.AssertControl(ctx, t, conn, "run_events_pkey", pgxplan.Statement{SQL: list, Args: []any{"tenant", "run-7", int64(40), int64(10)}}, events.BoundOn("sequence"))
}
