package main

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// history is one of every kind: due, held, orphans, undated and young.
func history(t *testing.T, db *pgtest.DB) {
	addRun(t, db, 1, "waiting_approval", 190, 150)
	addRun(t, db, 2, "completed", 80, 40)
	addRun(t, db, 3, "failed", 3, 7)
	addEvents(t, db, 9, 60, 5) // behind what is due, so that batches of due rows are full
	db.Exec(t, "INSERT INTO run_events SELECT 't1', 2, 1000 + g, NULL FROM generate_series(1, 3) g")
	addJobs(t, db, 25)
}

// TestPlanIsTheSweep: the plan counts what the sweep removes, writes nothing, and does not say that it did.
func TestPlanIsTheSweep(t *testing.T) {
	policy := policyOf(with(with(eventsSweep, "batch: {limit: 10}"), "ceiling: {batches: 3}"), with(jobsSweep, "ceiling: {rows: 20}"))
	db := tables.New(t)
	history(t, db)
	all := func() int64 {
		return db.Int(t, "SELECT (SELECT count(*) FROM run_events) + (SELECT count(*) FROM jobs)")
	}
	before := all()
	// A session that cannot write proves it; a plan works there.
	env := []string{"DATABASE_URL=" + readOnly(t, db)}
	for _, args := range []string{"plan", "sweep --dry-run", "sweep --dry-run --max-time 1min --busy-ok --fail-fast --detailed-exitcode"} {
		code := exitDone
		if strings.Contains(args, "detailed") {
			code = exitMore
		}
		o := invocation{args: append(strings.Fields(args), "-o", "json"), env: env, policy: policy}.run(t).must(t, code)
		r := o.document(t)
		e, j := sweepOf(t, r, "run_events"), sweepOf(t, r, "jobs")
		if e.Arms[0].Due != 40 || e.Arms[0].ThisRun != 30 || *e.Held != 150 || e.Orphan != 5 || *e.Undated != 3 || e.Removed != 0 {
			t.Errorf("%s: %+v %+v", args, e, e.Arms[0].ArmPlan)
		}
		if j.Arms[0].Due != 25 || j.Arms[0].ThisRun != 20 {
			t.Errorf("%s: %+v", args, j.Arms[0].ArmPlan)
		}
		text := invocation{args: strings.Fields(args), env: env, policy: policy}.run(t).must(t, code)
		contains(t, text.stdout, "nothing was removed; prunectl sweep would remove at most 50 rows in this run",
			"run_events: 150 held by 1 owner in state waiting_approval", "run_events: 5 kept as orphans", "run_events: 3 kept as undated: created_at is null",
			"run_events: one run is not enough: 40 are due and it removes 30 at most")
		lacks(t, text.both(), " removed=", "drained", "REMOVED")
	}
	if n := all(); n != before {
		t.Fatalf("%d rows are left of %d", n, before)
	}

	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	if e, j := sweepOf(t, r, "run_events"), sweepOf(t, r, "jobs"); e.Removed != 30 || j.Removed != 20 {
		t.Errorf("removed %d and %d", e.Removed, j.Removed)
	}
	if n := all(); n != before-50 {
		t.Errorf("%d rows are left of %d", n, before)
	}
	// What is left is planned and swept by the next.
	r = invocation{args: []string{"plan", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	if e, j := sweepOf(t, r, "run_events"), sweepOf(t, r, "jobs"); e.Arms[0].Due != 10 || j.Arms[0].Due != 5 {
		t.Errorf("due %d and %d", e.Arms[0].Due, j.Arms[0].Due)
	}
	r = invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	if e, j := sweepOf(t, r, "run_events"), sweepOf(t, r, "jobs"); e.Removed != 10 || !e.Drained || j.Removed != 5 || !j.Drained {
		t.Errorf("%+v\n%+v", e, j)
	}
}

// TestPlanAsOf: plan and sweep have the same cutoff for the same --as-of, and the same rows.
func TestPlanAsOf(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, `INSERT INTO jobs (state, finished_at) SELECT 'done', timestamptz '2020-01-01 00:00Z' + g * interval '1 day' FROM generate_series(0, 29) g`)
	policy := policyOf(jobsSweep)
	args := []string{"--as-of", "2020-01-17T00:00:00+00:00", "-o", "json"}
	plan := invocation{args: append([]string{"plan"}, args...), env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	sweep := invocation{args: append([]string{"sweep"}, args...), env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	p, s := sweepOf(t, plan, "jobs").Arms[0], sweepOf(t, sweep, "jobs").Arms[0]
	// The row at the cutoff itself stays.
	if p.Due != 9 || s.Removed != 9 || !p.Cutoff.Equal(*s.Cutoff) || p.Cutoff.Format("2006-01-02") != "2020-01-10" {
		t.Errorf("plan %+v %+v, sweep %+v", p, p.ArmPlan, s)
	}
	if !plan.AsOf.Equal(*sweep.AsOf) || plan.Now.Equal(*plan.AsOf) {
		t.Errorf("as of %v, now %v", plan.AsOf, plan.Now)
	}
}

// TestCountLimit: a count that stops says so.
func TestCountLimit(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 30)
	o := invocation{args: []string{"plan", "--count-limit", "10", "--sql"}, env: at(db), policy: policyOf(jobsSweep)}.run(t).must(t, exitDone)
	contains(t, o.stdout, ">= 10", "would remove at least 10 rows", "DELETE FROM ONLY", "-- jobs")
	r := invocation{args: []string{"plan", "--count-limit", "10", "--sql", "-o", "json"}, env: at(db), policy: policyOf(jobsSweep)}.run(t).must(t, exitDone).document(t)
	if a := sweepOf(t, r, "jobs").Arms[0]; a.Due != 10 || !a.DueIsFloor || len(a.Statements) == 0 {
		t.Errorf("%+v", a.ArmPlan)
	}
}
