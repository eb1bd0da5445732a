package main

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// TestRights: check names every missing right at once, with statements that give them; with these the sweep runs.
func TestRights(t *testing.T) {
	pgtest.Role(t, "command_sweeper", "login")
	db := tables.New(t)
	addRun(t, db, 1, "completed", 60, 20)
	addRun(t, db, 2, "running", 60, 10)
	as := []string{"DATABASE_URL=" + db.DSNAs("command_sweeper")}
	policy := policyOf(eventsSweep)

	sweep := invocation{args: []string{"sweep", "-o", "json"}, env: as, policy: policy}.run(t).must(t, exitRefused)
	if s := sweepOf(t, sweep.document(t), "run_events"); s.Stop != report.Refused || s.Removed != 0 {
		t.Errorf("%+v", s)
	}
	check := invocation{args: []string{"check"}, env: as, policy: policy}.run(t).must(t, exitRefused)
	contains(t, check.stdout, "rights", "1 of 1 sweep refused")
	grants := 0
	for line := range strings.Lines(check.stdout) {
		if strings.HasPrefix(line, "GRANT ") {
			grants++
			db.Exec(t, line)
		}
	}
	if grants < 3 {
		t.Errorf("%d grants in:\n%s", grants, check.stdout)
	}
	invocation{args: []string{"check"}, env: as, policy: policy}.run(t).must(t, exitDone)
	r := invocation{args: []string{"sweep", "-o", "json"}, env: as, policy: policy}.run(t).must(t, exitDone).document(t)
	if s := sweepOf(t, r, "run_events"); s.Removed != 20 || *s.Held != 10 || !s.Drained {
		t.Errorf("%+v", s)
	}
	if r.Database.Role != "command_sweeper" {
		t.Errorf("role %s", r.Database.Role)
	}
}

// TestRowSecurity: policies that hide rows are no success with nothing to do.
func TestRowSecurity(t *testing.T) {
	pgtest.Role(t, "command_filtered", "login")
	pgtest.Role(t, "command_bypass", "login bypassrls")
	db := pgtest.New(t)
	db.Exec(t, `
CREATE TABLE audit (id int PRIMARY KEY, tenant text NOT NULL, at timestamptz NOT NULL);
CREATE INDEX audit_age ON audit (at);
INSERT INTO audit SELECT g, 't' || g % 3, now() - interval '200 days' FROM generate_series(1, 30) g;
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON audit USING (tenant = current_setting('app.tenant', true));
GRANT SELECT, DELETE ON audit TO command_filtered, command_bypass;`)
	const sweep = `
  audit:
    table: audit
    age: at
    window: 90d
    guard: {none: "an audit line; nothing is owed on it"}
`
	left := func() int64 { return db.Int(t, "SELECT count(*) FROM audit") }
	filtered := []string{"DATABASE_URL=" + db.DSNAs("command_filtered")}

	o := invocation{args: []string{"sweep"}, env: filtered, policy: policyOf(sweep)}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "audit: refused: row security would hide rows of public.audit from this role")
	if left() != 30 {
		t.Fatalf("%d rows are left", left())
	}
	// A tenant that the sweep names is one whose rows it is to see.
	o = invocation{args: []string{"sweep", "-o", "json"}, env: filtered, policy: policyOf(with(sweep, `set: {row_security: "on", app.tenant: t1}`))}.run(t).must(t, exitDone)
	if s := sweepOf(t, o.document(t), "audit"); s.Removed != 10 || left() != 20 {
		t.Errorf("removed %d, %d are left", s.Removed, left())
	}
	o = invocation{args: []string{"sweep", "-o", "json"}, env: []string{"DATABASE_URL=" + db.DSNAs("command_bypass")}, policy: policyOf(sweep)}.run(t).must(t, exitDone)
	if s := sweepOf(t, o.document(t), "audit"); s.Removed != 20 || left() != 0 {
		t.Errorf("removed %d, %d are left", s.Removed, left())
	}
}

// TestOwnersGoLast: an owner that is swept before what it owns would make orphans of rows that are due.
func TestOwnersGoLast(t *testing.T) {
	db := tables.New(t)
	addRun(t, db, 1, "completed", 60, 3000)
	db.Exec(t, "CREATE INDEX runs_age ON runs (finished_at, tenant, id)")
	const runs = `
  runs:
    table: runs
    age: finished_at
    window: 30d
    guard: {state: status, terminal: [completed, failed, cancelled]}
`
	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policyOf(runs, with(eventsSweep, "batch: {limit: 100000}"))}.run(t).must(t, exitDone).document(t)
	if e := sweepOf(t, r, "run_events"); e.Orphan != 0 || e.Removed != 3000 {
		t.Errorf("%+v", e)
	}
	if s := sweepOf(t, r, "runs"); s.Removed != 1 {
		t.Errorf("%+v", s)
	}
	if r.Sweeps[0].Name != "runs" {
		t.Error("the report is not in the order of the file")
	}

	// What is left of them keeps its owners too, and the plan says so.
	addRun(t, db, 2, "completed", 60, 3000)
	plan := invocation{args: []string{"plan"}, env: at(db), policy: policyOf(runs, with(eventsSweep, "ceiling: {rows: 2000}"))}.run(t).must(t, exitDone)
	contains(t, plan.stdout, "runs: it waits: sweep run_events will not be drained in this run", "would remove at most 2,000 rows in this run")
	o := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policyOf(runs, with(eventsSweep, "ceiling: {rows: 2000}"))}.run(t).must(t, exitDone)
	r = o.document(t)
	if e, s := sweepOf(t, r, "run_events"), sweepOf(t, r, "runs"); e.Removed != 2000 || s.Removed != 0 || s.Stop != report.NotReached || s.Error == nil {
		t.Errorf("%+v\n%+v", e, s)
	}
	o = invocation{args: []string{"sweep"}, env: at(db), policy: policyOf(runs, eventsSweep)}.run(t).must(t, exitDone)
	contains(t, o.stdout, "2 sweeps      1,001")
	if n := db.Int(t, "SELECT count(*) FROM run_events"); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// TestOwnersGoEarly: owners that are kept for less time than what they own leave orphans, which are kept for ever.
func TestOwnersGoEarly(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, "CREATE INDEX runs_age ON runs (finished_at, tenant, id)")
	const warning = "runs keeps its rows for 7d, and run_events keeps those that they own for 30d: without an owner such rows are kept for ever"
	for window, early := range map[string]bool{"7d": true, "30d": false, "never": false} {
		runs := `
  runs:
    table: runs
    age: finished_at
    window: ` + window + `
    guard: {state: status, terminal: [completed, failed, cancelled]}
`
		for _, command := range []string{"check", "sweep"} {
			o := invocation{args: []string{command}, env: at(db), policy: policyOf(runs, eventsSweep)}.run(t).must(t, exitDone)
			if got := strings.Contains(o.stdout+o.stderr, warning); got != early {
				t.Errorf("%s with a window of %s for the owners, warned %t:\n%s%s", command, window, got, o.stdout, o.stderr)
			}
		}
	}
}
