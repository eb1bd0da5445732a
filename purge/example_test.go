package purge_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
	"github.com/prunectl/prunectl/purge"
)

// An application removes a customer that has left: it looks whether nothing is forgotten, removes, and keeps the proof.
func Example() {
	var (
		ctx    = context.Background()
		pool   *pgxpool.Pool // of the application
		stop   chan struct{} // closed when the application is to end
		public = func(table string) policy.Name { return policy.Name{Schema: "public", Table: table} }
	)
	rows := policy.Purge{
		Name: "tenant",
		Key:  "tenant_id",
		Tables: []policy.PurgeTable{
			{Table: public("run_events")}, // refers to runs, so it goes before them
			{Table: public("runs")},
			{Table: public("orders"), Children: []policy.Child{{Table: public("order_lines"), Key: []policy.ChildKey{{Parent: "id", Child: "order_id"}}}}},
		},
		Exclude: []policy.Exclusion{{Table: public("audit_log"), Reason: "kept for ten years by law"}},
	}
	db := postgres.Pool(pool)
	found, err := postgres.InspectPurge(ctx, db, rows, "acme")
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range found.Checks {
		log.Printf("%s: %s: %s; %s", c.Result, c.Key, c.Detail, c.Fix)
	}
	remover, err := found.Open(db) // not where a check refuses it: nothing was touched then
	if err != nil {
		log.Fatal(err)
	}
	bounds := purge.BoundsOf(rows)
	bounds.Stop = stop
	report, err := purge.Run(ctx, remover, bounds)
	for _, s := range report.Steps {
		log.Printf("%s: %d removed, %d of them late, %d left", s.Table, s.Removed, s.Late, s.Left.Rows)
	}
	switch {
	case err != nil:
		log.Fatal(err) // what was committed before is counted, and gone
	case !report.Proved():
		log.Fatalf("not everything is gone: %s; run it again", report.Stop)
	}
	log.Printf("nothing was left at %s, when all tables were looked at in one snapshot", report.Proof.At)
}
