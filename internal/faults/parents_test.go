package faults

import (
	"fmt"

	"github.com/prunectl/prunectl/internal/report"
)

// The sweeps of rows that others refer to.
const (
	runsSweep = `
  runs:
    table: runs
    age: finished_at
    window: 30d
    guard: {state: status, terminal: [completed, failed, cancelled]}
    index: runs_age
    batch: {limit: 100}
`
	countRuns = "select (select count(*) from runs) + (select count(*) from run_events)"
)

var (
	// Runs that go when no event is left, or with their events.
	runsAfterEvents = with(runsSweep, "guard: {state: status, terminal: [completed, failed, cancelled], owed: {table: run_events, key: {tenant: tenant, id: run_id}}}")
	runsWithEvents  = with(runsSweep, "children: [{table: run_events, key: {tenant: tenant, id: run_id}}]")

	capped   = with(eventsSweep, "ceiling: {batches: 1}")
	billed   = with(runsSweep, "batch: {limit: 10}")
	referred = with(unguarded("pd", "pd_age"), "batch: {limit: 5}")
	cascade  = with(unguarded("pr", "pr_age"), "batch: {limit: 5000}")
)

// parents are faults of what becomes of a row, and of those that refer to it.
var parents = []fault{
	{
		file: "parents-wait-for-capped-children", query: countEvents, answer: "527", rows: countRuns,
		steps: []step{
			ledger("runs", "run_events"),
			sql("insert into runs values ('t1', 11, 'completed', now() - interval '90 days', now() - interval '90 days')"),
			run{name: "planned", args: "plan", policy: capped + runsAfterEvents, outcome: outcome{sweep: "run_events", stop: report.Planned, due: 527, thisRun: 100},
				also: []outcome{{sweep: "runs", stop: report.Planned, due: 1, thisRun: 1, held: 10}}, left: 538},
			// The oldest events are those of run 1. A run that has none waits for nobody.
			run{name: "the first", policy: capped + runsAfterEvents, outcome: outcome{sweep: "run_events", stop: report.Ceiling, by: report.ByBatches, removed: 100, batches: 1},
				also: []outcome{{sweep: "runs", stop: report.Drained, removed: 1, held: 10}}, left: 437, checked: each(inBatches(100), heldIn(1, "owed", "", 10, 90))},
			fact{"select count(*) from runs", "10"},
			capAgain(337, 0), capAgain(237, 0), capAgain(137, 0), capAgain(36, 1), // the last of run 1's, and run 1 itself
			run{name: "the last", policy: capped + runsAfterEvents, outcome: outcome{sweep: "run_events", stop: report.Drained, removed: 27, batches: 1},
				also: []outcome{{sweep: "runs", stop: report.Drained, removed: 9}}, checked: inBatches(100)},
		},
	},
	{
		file: "parents-before-children", as: "the events by a sweep of their own", query: countOfRuns, answer: "10 30", rows: countRuns,
		steps: []step{
			run{policy: runsSweep + eventsSweep, outcome: outcome{sweep: "runs", stop: report.Drained, removed: 10}, also: []outcome{{sweep: "run_events", stop: report.Drained, removed: 30}}},
		},
	},
	{
		file: "parents-before-children", as: "when no event is left", query: countOfRuns, answer: "10 30", rows: countRuns,
		steps: []step{
			run{name: "planned", args: "plan", policy: runsAfterEvents + eventsSweep, outcome: outcome{sweep: "runs", stop: report.Planned, held: 10}, also: []outcome{{sweep: "run_events", stop: report.Planned, due: 30, thisRun: 30}}, left: 40},
			run{name: "alone", args: "sweep --only runs", policy: runsAfterEvents + eventsSweep, outcome: outcome{stop: report.Drained, held: 10}, left: 40, checked: heldBy("owed", "", 10, 90)},
			run{name: "in the table", args: "sweep --only runs -o table", policy: runsAfterEvents + eventsSweep, left: 40, says: []string{"runs: 10 held as owed by rows of public.run_events, the oldest from"}},
			run{policy: runsAfterEvents + eventsSweep, outcome: outcome{sweep: "runs", stop: report.Drained, removed: 10}, also: []outcome{{sweep: "run_events", stop: report.Drained, removed: 30}}},
		},
	},
	{
		file: "parents-before-children", as: "with them", query: countOfRuns, answer: "10 30", rows: countRuns,
		steps: []step{
			ledger("runs", "run_events"),
			run{name: "planned", args: "plan", policy: with(runsWithEvents, "batch: {limit: 10}"), outcome: outcome{stop: report.Planned, due: 10, thisRun: 10}, left: 40},
			run{policy: with(runsWithEvents, "batch: {limit: 10}"), outcome: outcome{stop: report.Drained, removed: 10, children: 30}, checked: inBatches(10)},
		},
	},
	{
		file: "younger-child-still-refers", query: `select count(*) from runs r where not exists (select 1 from bills b where (b.tenant, b.run_id) = (r.tenant, r.id))`, answer: "15",
		rows: "select (select count(*) from runs) + (select count(*) from bills)",
		steps: []step{
			run{name: "seen before", args: "check", policy: billed, outcome: outcome{stop: report.Checked}, left: 25, says: []string{"bills_tenant_run_id_fkey of public.bills: a row that is still referenced is stuck, and reported"}},
			run{name: "nothing is said of them", policy: billed, code: 1, outcome: outcome{stop: report.Stuck, removed: 15, stuck: 5}, left: 10, says: []string{"bills_tenant_run_id_fkey", "public.bills"}},
			run{name: "and again", policy: billed, code: 1, outcome: outcome{stop: report.Stuck, stuck: 5}, left: 10, says: []string{"bills_tenant_run_id_fkey", "public.bills"}},
			run{name: "stepped over", policy: with(billed, "guard: {state: status, terminal: [completed, failed, cancelled], owed: {table: bills, key: {tenant: tenant, id: run_id}}}"),
				outcome: outcome{stop: report.Drained, held: 5}, left: 10, checked: heldBy("owed", "", 5, 90), says: []string{"bills_run of public.bills finds what refers to a row"}},
			run{name: "or gone with the runs", policy: with(billed, "children: [{table: bills, key: {tenant: tenant, id: run_id}}]"), outcome: outcome{stop: report.Drained, removed: 5, children: 5}},
		},
	},
	{
		file: "younger-child-still-refers", as: "by a key that restricts", query: `select count(*) from bills`, answer: "5", rows: "select (select count(*) from runs) + (select count(*) from bills)",
		steps: []step{
			// Some servers say so by another SQLSTATE.
			sql("alter table bills drop constraint bills_tenant_run_id_fkey; alter table bills add constraint bills_of_runs foreign key (tenant, run_id) references runs on delete restrict"),
			run{policy: billed, code: 1, outcome: outcome{stop: report.Stuck, removed: 15, stuck: 5}, left: 10, says: []string{"bills_of_runs", "public.bills"}},
			run{name: "in the table", args: "sweep -o table", policy: billed, code: 1, left: 10, says: []string{"runs: 5 stuck on bills_of_runs from public.bills"}},
		},
	},
	{
		file: "constraint-that-speaks-at-commit", query: "select count(*) from pd where at < now() - interval '30 days'", answer: "10", rows: "select (select count(*) from pd) + (select count(*) from cd)",
		steps: []step{
			ledger("pd", "cd"),
			// Checked in the batch, not at its commit, so the row is found that cannot go.
			run{policy: referred, code: 1, outcome: outcome{stop: report.Stuck, removed: 9, stuck: 1}, left: 2, checked: inBatches(5),
				says: []string{"cd_pd_id_fkey", "public.cd", "1 deferrable keys; checked in each batch, not at commit"}},
			fact{"select string_agg(id::text, ',') from pd", "7"},
			run{name: "it may stay", policy: with(referred, "guard: {owed: {table: cd, key: {id: pd_id}}}"), outcome: outcome{stop: report.Drained, held: 1}, left: 2,
				says: []string{"no index of public.cd leads with (pd_id); each row of public.pd scans it, which is small now"}, checked: heldBy("owed", "", 1, 90)},
			run{name: "or goes with what refers to it", policy: with(referred, "children: [{table: cd, key: {id: pd_id}}]"), outcome: outcome{stop: report.Drained, removed: 1, children: 1}, checked: inBatches(5)},
		},
	},
	{
		file: "cascade-without-an-index", as: "accepted", query: countCascade, answer: "2000 300000", rows: "select count(*) from pr",
		steps: []step{
			run{name: "all that is wrong at once", policy: cascade, params: "statement_timeout=5000", code: 4, outcome: outcome{stop: report.Refused}, left: 2000, says: []string{
				"chd_pr_id_fkey of public.chd (pr_id) has no index; each row removed from public.pr scans it",
				"rows of public.chd go with their row of public.pr by chd_pr_id_fkey (ON DELETE CASCADE), and the table is in neither children nor cascades"},
				checked: fixes},
			run{name: "planned", args: "plan", policy: cascade, code: 4, outcome: outcome{stop: report.Refused}, left: 2000,
				says: []string{"name public.chd in children, so that its rows are counted, or in cascades, to accept that they are not"}, lacks: []string{"has no index"}},
			run{policy: with(cascade, "cascades: [chd]"), params: "statement_timeout=5000", outcome: outcome{stop: report.Drained, removed: 2000}},
			fact{countCascade, "0 0"},
			run{name: "no cascade leads there", args: "check", policy: with(cascade, "cascades: [chd, pg_catalog.pg_class]"), outcome: outcome{stop: report.Checked},
				says: []string{"no ON DELETE CASCADE leads from what the sweep removes to pg_catalog.pg_class"}},
		},
	},
	{
		file: "cascade-without-an-index", as: "children", query: countCascade, answer: "2000 300000", rows: "select (select count(*) from pr) + (select count(*) from chd)",
		steps: []step{
			ledger("pr", "chd"),
			run{name: "without the index", policy: with(cascade, "children: [{table: chd, key: {id: pr_id}}]"), code: 4, outcome: outcome{stop: report.Refused}, left: 302000,
				says: []string{"no index of public.chd leads with (pr_id); each row of public.pr scans it"}, checked: fixes},
			run{name: "in both lists", policy: with(cascade, "children: [{table: chd, key: {id: pr_id}}]", "cascades: [chd]"), code: 2, left: 302000, says: []string{"public.chd is in children already"}},
			run{policy: with(cascade, "children: [{table: chd, key: {id: pr_id}}]"), params: "statement_timeout=5000", outcome: outcome{stop: report.Drained, removed: 2000, children: 300000}, checked: inBatches(5000)},
		},
	},
}

// capAgain is one more run that reaches the ceiling, and takes the runs that have no event left.
func capAgain(left, runs int) run {
	return run{name: fmt.Sprintf("down to %d", left), policy: capped + runsAfterEvents, outcome: outcome{sweep: "run_events", stop: report.Ceiling, by: report.ByBatches, removed: 100, batches: 1},
		also: []outcome{{sweep: "runs", stop: report.Drained, removed: runs, held: 10 - runs}}, left: left, checked: inBatches(100)}
}

const (
	countOfRuns  = "select (select count(*) from runs) || ' ' || (select count(*) from run_events)"
	countCascade = "select count(*) || ' ' || (select count(*) from chd) from pr"
)
