package main

import (
	"strings"
	"testing"
)

// byStateSweep has no window that is one duration.
const byStateSweep = `
  jobs:
    table: jobs
    age: finished_at
    window: {done: 7d, failed: 7d, cancelled: 7d}
    guard: {state: state, terminal: [done, failed, cancelled]}
`

// TestWindow: the flag's window is in force in the one sweep that is meant, for the plan and for the sweep, and is said to be.
func TestWindow(t *testing.T) {
	db := tables.New(t)
	addRun(t, db, 1, "completed", 80, 10)
	addRun(t, db, 2, "completed", 50, 20)
	db.Exec(t, "INSERT INTO jobs (state, finished_at) SELECT 'done', now() - interval '10 days' FROM generate_series(1, 5)")
	policy := policyOf(eventsSweep, byStateSweep)
	const says = "run_events: window 60d by --window is in force, in place of the file's 30d"

	o := invocation{args: []string{"plan", "--window", "60d"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, "would remove 15 rows in this run", says)
	contains(t, o.stderr, says)
	r := invocation{args: []string{"sweep", "--dry-run", "--window", "60d", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	if e := sweepOf(t, r, "run_events").Arms[0]; e.Due != 10 || *e.Window != 60*86400 {
		t.Errorf("%+v %+v", e, e.ArmPlan)
	}

	o = invocation{args: []string{"sweep", "--window", "60d"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, says)
	contains(t, o.stderr, says)
	if n := db.Int(t, "SELECT count(*) FROM run_events"); n != 20 {
		t.Errorf("%d events are left", n)
	}
	// Windows by state stay.
	if n := jobsLeft(t, db); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
	r = invocation{args: []string{"sweep", "--window", "49d", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	if w := r.Window; w == nil || w.Sweep != "run_events" || w.Seconds != 49*86400 || w.Replaced != 30*86400 {
		t.Errorf("%+v", w)
	}
	if n := db.Int(t, "SELECT count(*) FROM run_events"); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// TestWindowOfOwners: what one sweep says of another's window is about the window in force.
func TestWindowOfOwners(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, "CREATE INDEX runs_age ON runs (finished_at, tenant, id)")
	const runs = `
  runs:
    table: runs
    age: finished_at
    window: {completed: 40d, failed: 40d, cancelled: 40d}
    guard: {state: status, terminal: [completed, failed, cancelled]}
`
	for window, early := range map[string]bool{"30d": false, "60d": true} {
		o := invocation{args: []string{"sweep", "--window", window}, env: at(db), policy: policyOf(runs, eventsSweep)}.run(t).must(t, exitDone)
		if got := strings.Contains(o.stderr, "runs keeps its rows for 40d"); got != early {
			t.Errorf("%s: %s", window, o.stderr)
		}
	}
}

// TestWindowRefused: a window that would say more than it was asked for is refused before the server is.
func TestWindowRefused(t *testing.T) {
	ofSelf := strings.ReplaceAll(strings.Replace(eventsSweep, "run_events:", "others:", 1), "table: run_events", "table: others")
	for _, c := range []struct{ args, policy, want string }{
		{"sweep --window 60d", policyOf(eventsSweep, jobsSweep), "--window is for one sweep, and run_events, jobs have a window that it would replace; write --only run_events or --only jobs"},
		{"plan --window 60d --only others,run_events", policyOf(eventsSweep, jobsSweep, ofSelf), "--window is for one sweep, and run_events, others have a window that it would replace; write --only run_events or --only others"},
		{"sweep --window 60d --only jobs", policyOf(eventsSweep, byStateSweep), "--window: no chosen sweep has a window that is one duration, and others are not replaced; write --only run_events"},
		{"sweep --window 60d", policyOf(byStateSweep), "--window: prunectl.yaml has no window that is one duration, and others are not replaced; leave it out"},
		{"sweep --window 60d", policyOf(strings.Replace(jobsSweep, "7d", "never", 1)), "--window: prunectl.yaml has no window that is one duration, and others are not replaced; leave it out"},
		{"sweep --window 59min", policyOf(jobsSweep), "--window: 59min is below the floor of 1h; lengthen it, or write floor: 59min in this sweep"},
		{"sweep --dry-run --window 59min", policyOf(jobsSweep), "--window: 59min is below the floor of 1h; lengthen it, or write floor: 59min in this sweep"},
		{"sweep --window never", policyOf(jobsSweep), "--window: never would keep all rows, and a sweep that removes nothing needs no run; write --skip NAME"},
		{"plan --window at_once", policyOf(jobsSweep), "--window: at_once would take every row that nothing protects, however young; only the policy file may say that"},
		{"sweep --window 0d", policyOf(jobsSweep), `--window: "0d" is zero; write a duration above zero`},
		{"sweep --window 90", policyOf(jobsSweep), `--window: "90" has no unit; write 90d, 90h or 90min`},
		{"sweep --window 5000ms", policyOf(jobsSweep), `--window: "5000ms": a window has whole seconds; write it in s, min, h, d or w`},
		{"status --window 60d", policyOf(jobsSweep), "unknown flag --window; write prunectl status --help"},
		{"check --window 60d", policyOf(jobsSweep), "unknown flag --window; write prunectl check --help"},
	} {
		o := invocation{args: strings.Fields(c.args), policy: c.policy}.run(t).must(t, exitUsage)
		if o.stderr != "prunectl: "+c.want+"\n" || o.stdout != "" {
			t.Errorf("%s\nstderr: %sstdout: %swant: prunectl: %s", c.args, o.stderr, o.stdout, c.want)
		}
	}
}
