package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// TestExitCodes is the table of the help, row by row; each run is asked for its document too, which is there whatever
// happened, and says the same code. left is how many jobs are there afterwards.
func TestExitCodes(t *testing.T) {
	const due = 30
	for _, c := range []struct {
		name   string
		args   string
		policy string
		setup  func(*testing.T, *pgtest.DB)
		dsn    func(*testing.T, *pgtest.DB) string
		code   int
		left   int
		stop   report.Stop // of jobs; "" where the run did not come so far
		says   string
	}{
		{name: "done", args: "sweep", stop: report.Drained},
		{name: "done with a reader of the code", args: "sweep --detailed-exitcode", stop: report.Drained},
		{name: "nothing due", args: "sweep --detailed-exitcode --as-of 2001-01-01", left: due, stop: report.Drained},
		{name: "ceiling", args: "sweep", policy: policyOf(with(jobsSweep, "ceiling: {rows: 10}")), left: due - 10, stop: report.Ceiling},
		{name: "more at a ceiling", args: "sweep --detailed-exitcode", policy: policyOf(with(jobsSweep, "ceiling: {rows: 10}")), code: exitMore, left: due - 10, stop: report.Ceiling, says: "1 of 1 sweep may have left more due"},
		{name: "more at the budget", args: "sweep --detailed-exitcode --max-rows 10", code: exitMore, left: due - 10, stop: report.Budget},
		{name: "stuck", args: "sweep", setup: pin, code: exitFailed, left: 1, stop: report.Stuck, says: "1 of 1 sweep failed (exit 1)"},
		{name: "stuck before refused", args: "sweep", policy: policyOf(ghostSweep, jobsSweep), setup: pin, code: exitFailed, left: 1, stop: report.Stuck},
		{name: "refused, and the others run", args: "sweep", policy: policyOf(ghostSweep, jobsSweep), code: exitRefused, stop: report.Drained, says: "1 of 2 sweeps refused (exit 4)"},
		{name: "refused before more", args: "sweep --detailed-exitcode --max-rows 10", policy: policyOf(ghostSweep, jobsSweep), code: exitRefused, left: due - 10, stop: report.Budget},
		{name: "plan", args: "plan", left: due, stop: report.Planned},
		{name: "something is due", args: "plan --detailed-exitcode", code: exitMore, left: due, stop: report.Planned},
		{name: "dry run", args: "sweep --dry-run --busy-ok --fail-fast --max-time 5min", left: due, stop: report.Planned},
		{name: "plan refused", args: "plan", policy: policyOf(ghostSweep, jobsSweep), code: exitRefused, left: due, stop: report.Planned},
		{name: "check", args: "check", left: due, stop: report.Checked},
		{name: "check refused", args: "check", policy: policyOf(ghostSweep, jobsSweep), code: exitRefused, left: due, stop: report.Checked},
		{name: "check offline", args: "check --offline", policy: policyOf(ghostSweep, jobsSweep), left: due, stop: report.Checked},
		{name: "check strict", args: "check --strict", setup: pin, code: exitRefused, left: due, stop: report.Refused},
		{name: "wrong policy", args: "sweep", policy: policyOf(with(jobsSweep, "windw: 3d")), code: exitUsage, left: due, says: `prunectl.yaml:10:5: jobs: unknown key "windw"; did you mean window?`},
		{name: "wrong policy, check", args: "check --offline", policy: policyOf(strings.Replace(jobsSweep, "7d", "90", 1)), code: exitUsage, left: due, says: `prunectl.yaml:8:13: jobs.window: "90" has no unit; write 90d, 90h or 90min`},
		{name: "window too long", args: "sweep", policy: policyOf(strings.Replace(jobsSweep, "7d", "2500000d", 1)), code: exitUsage, left: due, says: "36500d"},
		{name: "window infinite", args: "sweep", policy: policyOf(strings.Replace(jobsSweep, "7d", "Infinity", 1)), code: exitUsage, left: due, says: "jobs.window"},
		{name: "limit of nothing", args: "sweep", policy: policyOf(with(jobsSweep, "batch: {limit: 0}")), code: exitUsage, left: due, says: "jobs.batch.limit"},
		{name: "limit below nothing", args: "sweep", policy: policyOf(with(jobsSweep, "batch: {limit: -5}")), code: exitUsage, left: due, says: "jobs.batch.limit"},
		{name: "limit too large", args: "sweep", policy: policyOf(with(jobsSweep, "batch: {limit: 3000000000}")), code: exitUsage, left: due, says: "jobs.batch.limit"},
		{name: "ceiling of nothing", args: "sweep", policy: policyOf(with(jobsSweep, "ceiling: {batches: 0}")), code: exitUsage, left: due, says: "jobs.ceiling.batches"},
		{name: "switched off", args: "sweep", policy: policyOf(with(jobsSweep, "enabled: false")), code: exitUsage, left: due, says: "jobs: key enabled is not part of the language"},
		{name: "kept for ever", args: "sweep --detailed-exitcode", policy: policyOf(strings.Replace(jobsSweep, "7d", "never", 1)), left: due, stop: report.Drained},
		{name: "in the future", args: "sweep --as-of 2999-01-01", code: exitUsage, left: due, says: "--as-of 2999-01-01 00:00:00Z is in the future"},
		{name: "no server", args: "sweep", dsn: nobody, code: exitFailed, left: due, says: "cannot connect to database app on 127.0.0.1:"},
		{name: "no server, plan", args: "plan", dsn: nobody, code: exitFailed, left: due, says: "cannot connect to database app on 127.0.0.1:"},
		{name: "no server, check", args: "check", dsn: nobody, code: exitFailed, left: due, says: "cannot connect to database app on 127.0.0.1:"},
		{name: "no database", args: "sweep", dsn: elsewhere, code: exitFailed, left: due, says: `database "nowhere" does not exist`},
		{name: "read-only", args: "sweep", dsn: readOnly, code: exitFailed, left: due, says: "read-only target: "},
		{name: "read-only, check", args: "check", dsn: readOnly, code: exitFailed, left: due, says: "read-only target: "},
		{name: "read-only, plan", args: "plan", dsn: readOnly, left: due, stop: report.Planned},
		{name: "unreadable connection string", args: "sweep", dsn: func(*testing.T, *pgtest.DB) string { return "postgres://app@h:port/x" }, code: exitUsage, left: due, says: "DATABASE_URL cannot be read as a URL; write postgres://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := tables.New(t)
			addJobs(t, db, due)
			if c.setup != nil {
				c.setup(t, db)
			}
			dsn := db.DSN
			if c.dsn != nil {
				dsn = c.dsn(t, db)
			}
			policy := c.policy
			if policy == "" {
				policy = policyOf(jobsSweep)
			}
			o := invocation{args: append(strings.Fields(c.args), "-o", "json"), env: []string{"DATABASE_URL=" + dsn}, policy: policy}.run(t).must(t, c.code)
			r := o.document(t)
			if left := jobsLeft(t, db); left != c.left {
				t.Errorf("%d jobs are left instead of %d", left, c.left)
			}
			contains(t, o.stderr, c.says)
			if c.stop == "" {
				if len(r.Sweeps) != 0 || r.Error == nil {
					t.Errorf("the run did not come as far as a sweep, and its document says %+v", r)
				}
				return
			}
			s := sweepOf(t, r, "jobs")
			if s.Stop != c.stop || s.Drained != (c.stop == report.Drained) {
				t.Errorf("stop %s, drained %v; want %s", s.Stop, s.Drained, c.stop)
			}
			if s.Removed != due-c.left {
				t.Errorf("removed says %d; %d are gone", s.Removed, due-c.left)
			}
		})
	}
}

// pin keeps one job from being deleted.
func pin(t *testing.T, db *pgtest.DB) {
	db.Exec(t, "CREATE TABLE pins (job_id bigint NOT NULL REFERENCES jobs (id)); INSERT INTO pins SELECT min(id) FROM jobs")
}

// nobody leads to a port on which nobody listens.
func nobody(t *testing.T, _ *pgtest.DB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return fmt.Sprintf("postgres://sweeper@%s/app", l.Addr())
}

func elsewhere(_ *testing.T, db *pgtest.DB) string {
	return strings.Replace(db.DSN, db.Name, "nowhere", 1)
}

func readOnly(_ *testing.T, db *pgtest.DB) string {
	return addQuery(db.DSN, "options=-c%20default_transaction_read_only%3Don")
}

func addQuery(dsn, q string) string {
	if strings.Contains(dsn, "?") {
		return dsn + "&" + q
	}
	return dsn + "?" + q
}

// TestBusy: another run holds the sweep. The loser says so at once and touches nothing.
func TestBusy(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 50)
	slowDeletes(t, db, 50)
	policy := policyOf(jobsSweep)
	first := invocation{args: []string{"sweep"}, env: at(db), policy: policy}.start(t)
	eventually(t, "the first run deletes", func() bool {
		return db.Int(t, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted") > 0
	})
	second := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitBusy)
	if s := sweepOf(t, second.document(t), "jobs"); s.Stop != report.Busy || s.Removed != 0 {
		t.Errorf("%+v", s)
	}
	contains(t, second.stderr, "1 of 1 sweep busy (exit 5)")
	third := invocation{args: []string{"sweep", "--busy-ok", "-q"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	if third.both() != "" {
		t.Errorf("printed with -q: %s", third.both())
	}
	// A sweep that fails counts for more.
	fourth := invocation{args: []string{"sweep"}, env: at(db), policy: policyOf(ghostSweep, jobsSweep)}.run(t).must(t, exitRefused)
	contains(t, fourth.stdout, "jobs", "busy", "jobs: another run holds this sweep")
	o := first.wait().must(t, exitDone)
	contains(t, o.stdout, "50", "drained")
}

// TestReportNotWritten: rows are gone and nobody can be told: that is a failure, and not the end of the process by a signal.
func TestReportNotWritten(t *testing.T) {
	r, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer func() { _ = closed.Close() }()
	sinks := map[string]*os.File{"reader gone": closed}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil { // where there is one
		defer func() { _ = full.Close() }()
		sinks["disk full"] = full
	}
	for name, stdout := range sinks {
		for _, format := range []string{"table", "json"} {
			db := tables.New(t)
			addJobs(t, db, 3)
			o := invocation{args: []string{"sweep", "-o", format}, env: at(db), policy: policyOf(jobsSweep), stdout: stdout}.run(t).must(t, exitFailed)
			contains(t, o.stderr, "prunectl: the result could not be written: ", "removed=3")
			if left := jobsLeft(t, db); left != 0 {
				t.Errorf("%s: %d jobs are left", name, left)
			}
		}
		invocation{args: []string{"--help"}, stdout: stdout}.run(t).must(t, exitFailed)
	}
}

// TestPolicyFaults: all faults of a file are said in one go, each at its place.
func TestPolicyFaults(t *testing.T) {
	policy := policyOf("  jobs: {table: jobs, aeg: finished_at, window: 7m, guard: {ended: true}}\n")
	o := invocation{args: []string{"check", "-o", "json"}, policy: policy}.run(t).must(t, exitUsage)
	r := o.document(t)
	if len(r.Problems) < 2 || r.Error == nil {
		t.Fatalf("%+v", r)
	}
	lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
	if len(lines) != len(r.Problems) {
		t.Fatalf("stderr: %s", o.stderr)
	}
	for i, p := range r.Problems {
		if lines[i] != p.Position+": "+p.Message {
			t.Errorf("stderr %q, document %+v", lines[i], p)
		}
	}
	contains(t, o.stderr, `jobs: unknown key "aeg"`, `jobs.window: "7m"`, `prunectl.yaml:4:`)
}

// TestWrongPassword: the server's reason is passed on, the password is not.
func TestWrongPassword(t *testing.T) {
	s := pgtest.Own(t, pgserver.Options{Password: "correct-horse"})
	dsn := strings.Replace(s.DSN("postgres"), "correct-horse", "hunter2-wrong", 1)
	for _, verb := range []string{"sweep", "plan", "check"} {
		o := invocation{args: []string{verb, "-o", "json"}, env: []string{"DATABASE_URL=" + dsn}, policy: policyOf(jobsSweep)}.run(t).must(t, exitFailed)
		o.document(t)
		contains(t, o.stderr, "password authentication failed")
		lacks(t, o.both(), "hunter2-wrong")
	}
}
