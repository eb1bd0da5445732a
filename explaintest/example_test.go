package explaintest_test

import (
	"fmt"

	"github.com/prunectl/prunectl/explaintest"
)

// A plan as any driver, or psql -At, gives it: the text of EXPLAIN (FORMAT JSON, VERBOSE).
const plan = `[{"Plan": {
  "Node Type": "ModifyTable", "Operation": "Delete", "Schema": "public", "Relation Name": "run_events", "Alias": "d", "Total Cost": 8.2, "Plan Rows": 0,
  "Plans": [
    {"Node Type": "Limit", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1 (returns $0)", "Total Cost": 8.1, "Plan Rows": 100, "Plans": [
      {"Node Type": "Index Scan", "Parent Relationship": "Outer", "Index Name": "run_events_retention",
       "Schema": "public", "Relation Name": "run_events", "Alias": "e", "Total Cost": 81, "Plan Rows": 1440,
       "Index Cond": "(e.created_at < $1)"}]},
    {"Node Type": "Tid Scan", "Parent Relationship": "Outer", "TID Cond": "(d.ctid = ANY ($0))",
     "Schema": "public", "Relation Name": "run_events", "Alias": "d", "Total Cost": 0.1, "Plan Rows": 100}]
}}]`

func Example() {
	p, err := explaintest.Parse([]byte(plan))
	if err != nil {
		fmt.Println(err)
		return
	}
	retention := explaintest.UsesIndex("run_events", "run_events_retention").Columns("created_at", "tenant_id", "run_id")
	err = explaintest.Check(p,
		explaintest.NodeType("run_events", "Tid Scan").DeleteSide(),
		explaintest.NoSeqScan("public.run_events"),
		explaintest.NoSort(),
		retention.BoundOn("created_at"),
		retention.RangeOn("created_at"),
	)
	fmt.Println(err)
	// Output:
	// the plan breaks a rule
	// run_events is read through the index run_events_retention, bounded on created_at at both ends
	//   [1] the index run_events_retention is read by the condition (e.created_at < $1): created_at has no lower bound
	//       look at this: without one the scan begins, or goes on, where nothing is wanted: among dead entries at the head, or rows that are kept
	//
	//      Delete on public.run_events d  (cost=8.20 rows=0)
	//        InitPlan 1 (returns $0)
	//        ->  Limit  (cost=8.10 rows=100)
	// [1]>         ->  Index Scan using run_events_retention on public.run_events e  (cost=81.00 rows=1440)
	//                    Index Cond: (e.created_at < $1)
	//        ->  Tid Scan on public.run_events d  (cost=0.10 rows=100)
	//              TID Cond: (d.ctid = ANY ($0))
}
