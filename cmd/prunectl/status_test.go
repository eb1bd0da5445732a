package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// TestStatus: the backlog is that of the plan, asked by a role that may only read, and is nothing once it is swept.
func TestStatus(t *testing.T) {
	pgtest.Role(t, "command_reader", "login")
	db := tables.New(t)
	history(t, db)
	db.Exec(t, "GRANT SELECT ON run_events, runs, jobs TO command_reader")
	as := []string{"DATABASE_URL=" + readOnly(t, &pgtest.DB{DSN: db.DSNAs("command_reader")})}
	policy := policyOf(eventsSweep, jobsSweep)

	r := invocation{args: []string{"status", "-o", "json"}, env: as, policy: policy}.run(t).must(t, exitDone).document(t)
	plan := invocation{args: []string{"plan", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	for _, name := range []string{"run_events", "jobs"} {
		s, p := sweepOf(t, r, name), sweepOf(t, plan, name)
		if s.Stop != report.Counted || s.Due != p.Arms[0].Due || *s.Held != *p.Held || s.Orphan != p.Orphan || *s.Undated != *p.Undated || s.DueIsFloor || s.Due == 0 {
			t.Errorf("status %+v %+v, plan %+v %+v", s, s.Backlog, p, p.Arms[0].ArmPlan)
		}
	}
	e, j := sweepOf(t, r, "run_events"), sweepOf(t, r, "jobs")
	// The due events are 80.5 days old, less some minutes; the held ones 190.5.
	days := func(seconds float64) int { return int(math.Round(seconds / 86400 * 2)) }
	if got := days(*e.Overdue); got != 2*50+1 {
		t.Errorf("events are overdue by %d half days", got)
	}
	if got := days(r.Now.Sub(*e.OldestHeld).Seconds()); got != 2*190+1 {
		t.Errorf("the oldest held event is %d half days old", got)
	}
	if got := days(*j.Overdue); got != 2*23+1 || j.OldestHeld != nil {
		t.Errorf("jobs are overdue by %d half days, held %v", got, j.OldestHeld)
	}

	if o := (invocation{args: []string{"status", "--detailed-exitcode", "--only", "jobs"}, env: as, policy: policy}.run(t).must(t, exitMore)); !strings.Contains(o.stderr, "exit 3") {
		t.Error(o.stderr)
	}
	invocation{args: []string{"sweep", "-q"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	o := invocation{args: []string{"status", "--detailed-exitcode"}, env: as, policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, "SWEEP       OVERDUE  DUE  HELD  OLDEST HELD  UNDATED", "run_events        0    0   150         190d        3", "jobs              0    0     0            -        0")
}

// TestStatusOfARefusedSweep: it is said with the reason, and the others are counted; where there is a table it has a size.
func TestStatusOfARefusedSweep(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 10)
	addRun(t, db, 1, "completed", 60, 10)
	db.Exec(t, "DROP INDEX run_events_age")
	args := []string{"status", "-o", "json"}
	o := invocation{args: args, env: at(db), policy: policyOf(ghostSweep, eventsSweep, jobsSweep)}.run(t).must(t, exitRefused)
	r := o.document(t)
	if g := sweepOf(t, r, "ghost"); g.Stop != report.Refused || g.Size != nil {
		t.Errorf("%+v %+v", g, g.Backlog)
	}
	if e := sweepOf(t, r, "run_events"); e.Stop != report.Refused || e.Size == nil || e.Due != 0 || e.Overdue != nil {
		t.Errorf("%+v %+v", e, e.Backlog)
	}
	if j := sweepOf(t, r, "jobs"); j.Stop != report.Counted || j.Due != 10 {
		t.Errorf("%+v %+v", j, j.Backlog)
	}
	contains(t, o.stderr, "2 of 3 sweeps refused (exit 4)")
	text := invocation{args: []string{"status"}, env: at(db), policy: policyOf(ghostSweep, eventsSweep, jobsSweep)}.run(t).must(t, exitRefused)
	contains(t, text.stdout, "run_events: refused: ", "CREATE INDEX CONCURRENTLY", "ghost: refused: table public.ghosts does not exist")

	// Nor is a table counted that may not be read: what to grant is said.
	pgtest.Role(t, "command_blind", "login")
	db.Exec(t, "GRANT SELECT ON runs TO command_blind")
	o = invocation{args: []string{"status"}, env: []string{"DATABASE_URL=" + db.DSNAs("command_blind")}, policy: policyOf(jobsSweep)}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "jobs: refused: missing: ", "SELECT on public.jobs", "GRANT SELECT")
	lacks(t, o.stdout, "failed")

	// What is refused for more than that is refused with all of it.
	db.Exec(t, "DROP INDEX jobs_age; GRANT SELECT ON jobs TO command_blind")
	o = invocation{args: []string{"status"}, env: []string{"DATABASE_URL=" + db.DSNAs("command_blind")}, policy: policyOf(jobsSweep)}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "jobs: refused: missing: DELETE on public.jobs", "jobs: refused: no index leads with finished_at")
}

// TestStatusBounds: the count stops at the limit and says so, and the rows of a table are what ANALYZE found, or unknown.
func TestStatusBounds(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 300)
	args := func(more ...string) []string { return append([]string{"status"}, more...) }
	j := sweepOf(t, invocation{args: args("--count-limit", "10", "-o", "json"), env: at(db), policy: policyOf(jobsSweep)}.run(t).must(t, exitDone).document(t), "jobs")
	if j.Due != 10 || !j.DueIsFloor || j.Rows != nil || j.Size == nil {
		t.Errorf("%+v", j.Backlog)
	}
	db.Exec(t, "ANALYZE jobs")
	o := invocation{args: args("--count-limit", "10"), env: at(db), policy: policyOf(jobsSweep)}.run(t).must(t, exitDone)
	contains(t, o.stdout, ">= 10", " 300  ", " KiB\n")
	never := invocation{args: args(), env: at(db), policy: policyOf(strings.Replace(jobsSweep, "7d", "never", 1))}.run(t).must(t, exitDone)
	contains(t, never.stdout, "jobs         -  never")

	// A table that is locked as a whole is waited for no longer than a batch would wait.
	conn := db.Conn(t)
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE jobs"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	locked := invocation{args: args(), env: at(db), policy: policyOf(jobsSweep)}.run(t).must(t, exitFailed)
	contains(t, locked.stdout, "jobs: failed: ", "lock timeout")
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it waited for %v", took)
	}
}
