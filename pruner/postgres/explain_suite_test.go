package postgres

import (
	"context"
	"testing"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
)

// TestPlansThroughExplaintest holds batches to rules that anybody can write, executed, custom and generic: it is also what a
// user of explaintest does, on the hardest statements that we have. TestPlans is stricter.
func TestPlansThroughExplaintest(t *testing.T) {
	conn := specimenDB.New(t).Conn(t)
	mustExec(t, conn, specimenRows(20_000))
	for _, relation := range []string{"run_events", "tasks", "lines", `"Audit-Log"."Run ""Events"""`} {
		if err := pgxplan.Enough(t.Context(), conn, relation); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, conn, "VACUUM ANALYZE")
	rules := map[string]struct {
		relation, index string
		equal           []string
		age             string
	}{
		"owner":      {"public.run_events", "run_events_retention", nil, "created_at"},
		"owner_gate": {"run_events", "run_events_retention", nil, "created_at"},
		"state_arm":  {"tasks", "tasks_finished", []string{"state"}, "finished_at"},
		"none_gate":  {"lines", "lines_age", nil, "created_at"},
		"quoted":     {`"Audit-Log"."Run ""Events"""`, `"Audit-Log"."Idx.Created At"`, nil, "createdAt"},
	}
	seen := 0
	for _, sp := range specimens() {
		r, ok := rules[sp.name]
		if !ok {
			continue
		}
		seen++
		t.Run(sp.name, func(t *testing.T) {
			arm := sp.open(t, Conn(conn))
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			st := arm.settingsSQL()
			mustExec(t, conn, st.inline(map[string]string{argStatementTimeout: "30000", argLockTimeout: "500"}))

			const limit = 500
			batch := arm.render(shape{})
			explained := pgxplan.Statement{SQL: batch.sql, Analyze: true}
			for _, a := range batch.args {
				explained.Args = append(explained.Args, planValues(arm, limit)[a])
			}
			byIndex := explaintest.UsesIndex(r.relation, r.index).BoundOn(r.equal...).RangeOn(r.age)
			cheap := explaintest.MaxBuffers(6 * limit)
			pgxplan.Assert(t.Context(), t, tx, explained, byIndex, cheap,
				explaintest.NodeType(r.relation, "Tid Scan").DeleteSide(),
				explaintest.NodeType(r.relation, "Index Scan", "Index Only Scan").ReadSide(),
				explaintest.NoSeqScan(r.relation), explaintest.NoSort().On(r.relation).ReadSide(), explaintest.NoJIT(),
			)
			if arm.owner != nil {
				pgxplan.Assert(t.Context(), t, tx, explained, explaintest.UsesIndex("public.runs", "runs_pkey").BoundOn("tenant_id", "id"), explaintest.NoSeqScan("runs"))
			}
			pgxplan.AssertControl(t.Context(), t, tx, r.index, explained, byIndex)
		})
	}
	if seen != len(rules) {
		t.Errorf("%d of %d specimens were looked at", seen, len(rules))
	}
}
