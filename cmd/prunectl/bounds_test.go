package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// TestTimeShorterThanABatch: the batch in hand ends, what was committed is reported, and the report shows the mismatch.
func TestTimeShorterThanABatch(t *testing.T) {
	const jobs = 200
	for _, c := range []struct {
		args   []string
		policy string
		stop   report.Stop
	}{
		{[]string{"--max-time", "200ms"}, policyOf(with(jobsSweep, "batch: {limit: 50}")), report.Budget},
		{nil, policyOf(with(with(jobsSweep, "batch: {limit: 50}"), "ceiling: {time: 200ms}")), report.Ceiling},
	} {
		db := tables.New(t)
		addJobs(t, db, jobs)
		slowDeletes(t, db, 10) // half a second a batch
		r := invocation{args: append([]string{"sweep", "--detailed-exitcode", "-o", "json"}, c.args...), env: at(db), policy: c.policy}.run(t).must(t, exitMore).document(t)
		s := sweepOf(t, r, "jobs")
		if left := jobsLeft(t, db); s.Removed != jobs-left || s.Removed == 0 || left == 0 {
			t.Errorf("removed %d of %d, %d are left", s.Removed, jobs, left)
		}
		if s.Stop != c.stop || s.StopBy != report.ByTime || s.SlowestBatch < 0.4 {
			t.Errorf("stop %s by %s, slowest batch %gs", s.Stop, s.StopBy, s.SlowestBatch)
		}
	}
}

// TestCeilingThenDrained: a ceiling that takes the last due row is not taken for more, and one that does not is not taken
// for drained.
func TestCeilingThenDrained(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 100)
	policy := func(batches int) string {
		return policyOf(with(with(jobsSweep, "batch: {limit: 5}"), fmt.Sprintf("ceiling: {batches: %d}", batches)))
	}
	for i, step := range []struct {
		batches, removed, code int
		drained                bool
	}{{4, 20, exitMore, false}, {15, 75, exitMore, false}, {4, 5, exitDone, true}, {4, 0, exitDone, true}} {
		r := invocation{args: []string{"sweep", "--detailed-exitcode", "-o", "json"}, env: at(db), policy: policy(step.batches)}.run(t).must(t, step.code).document(t)
		if s := sweepOf(t, r, "jobs"); s.Removed != step.removed || s.Drained != step.drained {
			t.Errorf("run %d: removed %d, drained %v, stop %s", i, s.Removed, s.Drained, s.Stop)
		}
	}
}

// TestFlagsOnlyLower: a flag above the file's budget is said to be, and does not hold.
func TestFlagsOnlyLower(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 30)
	o := invocation{args: []string{"sweep", "--max-rows", "20", "--max-time", "2h", "-o", "json"}, env: at(db),
		policy: "version: 1\nbudget: {rows: 10}\ndefaults: {schema: public}\nsweeps:" + jobsSweep}.run(t).must(t, exitDone)
	if s := sweepOf(t, o.document(t), "jobs"); s.Removed != 10 || s.Stop != report.Budget || s.StopBy != report.ByRows {
		t.Errorf("%+v", s)
	}
	contains(t, o.stderr, "--max-rows 20: the file's budget.rows of 10 holds, which is less", "--max-time 2h: the file's budget.time of 30min holds, which is less")
}

// TestFailFast: a sweep that fails never stops the others, unless that is asked for.
func TestFailFast(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 10)
	addRun(t, db, 1, "completed", 60, 10)
	db.Exec(t, `
CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$;
CREATE TRIGGER jobs_no BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION no()`)
	policy := policyOf(jobsSweep, eventsSweep)
	o := invocation{args: []string{"sweep", "--fail-fast", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitFailed)
	r := o.document(t)
	if s := sweepOf(t, r, "jobs"); s.Stop != report.Failed || s.Error == nil || s.Error.SQLState == nil || *s.Error.SQLState != "P0001" {
		t.Errorf("%+v", s)
	}
	if s := sweepOf(t, r, "run_events"); s.Stop != report.NotReached || s.Removed != 0 {
		t.Errorf("%+v", s)
	}
	o = invocation{args: []string{"sweep"}, env: at(db), policy: policy}.run(t).must(t, exitFailed)
	contains(t, o.stdout, "jobs: failed: ", "not today", "(SQLSTATE P0001)", "run_events       10         0     0      0        1")
	contains(t, o.stderr, "prunectl: 1 of 2 sweeps failed (exit 1)")
}

// TestLocked: rows that others hold are left, said, and not called drained.
func TestLocked(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 30)
	conn := db.Conn(t)
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM jobs WHERE id <= 10 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	policy := policyOf(with(jobsSweep, "timeouts: {lock: 100ms}"))
	o := invocation{args: []string{"sweep", "--detailed-exitcode", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitMore)
	if s := sweepOf(t, o.document(t), "jobs"); s.Stop != report.Locked || s.Removed != 20 || s.Locked != 10 || s.Drained {
		t.Errorf("%+v", s)
	}
	o = invocation{args: []string{"sweep"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, "locked", "jobs: 10 locked and 0 moved by other sessions; the next run takes them")
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	invocation{args: []string{"sweep", "--detailed-exitcode"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
}

// TestStandby: a sweep refuses a standby, a plan may be asked there, and of several servers the writable one is taken where
// the connection string says so.
func TestStandby(t *testing.T) {
	primary := pgtest.Own(t, pgserver.Options{})
	standby := pgtest.Own(t, pgserver.Options{StandbyOf: primary})
	db := &pgtest.DB{Name: "postgres", DSN: primary.DSN("postgres")}
	db.Exec(t, "CREATE TABLE jobs (id bigint PRIMARY KEY, state text NOT NULL, finished_at timestamptz); CREATE INDEX ON jobs (finished_at, id)")
	db.Exec(t, "INSERT INTO jobs SELECT g, 'done', now() - interval '40 days' FROM generate_series(1, 5) g")
	other := &pgtest.DB{Name: "postgres", DSN: standby.DSN("postgres")}
	eventually(t, "the standby has the rows", func() bool {
		return other.Int(t, "SELECT count(*) FROM pg_class WHERE relname = 'jobs'") == 1 && jobsLeft(t, other) == 5
	})
	policy := policyOf(jobsSweep)
	for _, verb := range []string{"sweep", "check"} {
		o := invocation{args: []string{verb}, env: at(other), policy: policy}.run(t).must(t, exitFailed)
		contains(t, o.stderr, "prunectl: read-only target: the server is a standby")
	}
	plan := invocation{args: []string{"plan", "-o", "json"}, env: at(other), policy: policy}.run(t).must(t, exitDone)
	if due := sweepOf(t, plan.document(t), "jobs").Arms[0].Due; due != 5 {
		t.Errorf("%d are due", due)
	}
	both := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write", standby.Port, primary.Port)
	o := invocation{args: []string{"sweep", "--dsn", both}, policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stderr, fmt.Sprintf("on 127.0.0.1:%d as", primary.Port))
	if left := jobsLeft(t, db); left != 0 {
		t.Errorf("%d jobs are left", left)
	}
}

// TestZeroSaysWhy: a table from which nothing went tells of which kind its rows are.
func TestZeroSaysWhy(t *testing.T) {
	db := tables.New(t)
	addRun(t, db, 1, "completed", 1, 1) // young
	addRun(t, db, 2, "running", 90, 1)
	addEvents(t, db, 3, 90, 1) // an orphan
	db.Exec(t, "INSERT INTO run_events VALUES ('t1', 1, 99, NULL)")
	o := invocation{args: []string{"sweep"}, env: at(db), policy: policyOf(eventsSweep)}.run(t).must(t, exitDone)
	oldest := time.Now().UTC().Add(-90*24*time.Hour - 12*time.Hour + time.Minute).Format(time.DateOnly)
	contains(t, o.stdout, "run_events        0         0     1      0        0",
		"run_events: 1 held by 1 owner in state running, the oldest from "+oldest,
		"run_events: 1 kept as orphans: their owner is not in public.runs, the oldest from "+oldest,
		"run_events: 1 kept as undated: created_at is null or too old to be an age")
	lacks(t, o.stdout, "rows are gone")
	if n := db.Int(t, "SELECT count(*) FROM run_events"); n != 4 {
		t.Errorf("%d rows are left", n)
	}
}
