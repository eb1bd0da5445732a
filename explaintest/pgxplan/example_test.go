package pgxplan_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// connect makes a database with the tables of the example.
func connect(t *testing.T) *pgx.Conn {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE run_events (tenant_id text NOT NULL, run_id text NOT NULL, sequence int NOT NULL, created_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, run_id, sequence));
CREATE INDEX run_events_retention ON run_events (created_at, tenant_id, run_id)`)
	return db.Conn(t)
}

func TestSweepOfEvents(t *testing.T) {
	ctx, conn := t.Context(), connect(t) // a database of the test's own, with its tables
	if err := pgxplan.Fill(ctx, conn, "run_events", `
INSERT INTO run_events SELECT 'tenant-1', 'run-' || g / 20, g % 20, timestamptz '2026-01-01' + g * interval '1 minute'
  FROM generate_series($1::bigint, $2::bigint) g`); err != nil {
		t.Fatal(err)
	}
	after := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	sweep := pgxplan.Statement{
		SQL: `DELETE FROM run_events d WHERE d.ctid = ANY (ARRAY(
  SELECT e.ctid FROM run_events e WHERE e.created_at >= $1 AND e.created_at < $2 ORDER BY e.created_at LIMIT $3))`,
		Args:    []any{after, after.Add(24 * time.Hour), 100},
		Analyze: true, // executed, and rolled back
	}
	byIndex := []explaintest.Rule{
		explaintest.UsesIndex("public.run_events", "run_events_retention").RangeOn("created_at"),
		explaintest.NoSeqScan("run_events"),
		explaintest.NoSort(),
		explaintest.MaxRowsRemovedByFilter(0),
	}
	pgxplan.Assert(ctx, t, conn, sweep, append(byIndex, // its custom and its generic plan
		explaintest.NodeType("run_events", "Tid Scan").DeleteSide(),
		explaintest.MaxBuffers(300),
	)...)
	pgxplan.AssertControl(ctx, t, conn, "run_events_retention", sweep, byIndex...) // without the index each must fail
}
