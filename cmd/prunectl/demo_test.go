package main

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// demoFolder is a folder for temporary files that a server's user may enter too, and that is empty when the demo has left
// nothing behind.
func demoFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prunectl-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server runs as another user
		t.Fatal(err)
	}
	return dir
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "nothing is left in "+dir, func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == 0
	})
}

// elsewhereEnv are variables that lead nowhere: the demo reads none of them.
func elsewhereEnv(dir string) []string {
	return []string{"TMPDIR=" + dir, "DATABASE_URL=postgres://app:hunter2@127.0.0.1:1/app", "PGHOST=127.0.0.1", "PGPORT=1", "PGUSER=nobody",
		"PGPASSWORD=hunter2", "PGOPTIONS=-c default_transaction_read_only=on", "PGSSLMODE=verify-full", "PRUNECTL_POLICY=/nowhere.yaml",
		"PGTEST_BINDIR=" + os.Getenv("PGTEST_BINDIR")}
}

// TestDemo runs the whole of it on a server of its own.
func TestDemo(t *testing.T) {
	dir := demoFolder(t)
	o := invocation{args: []string{"demo", "--rows", "20000"}, env: elsewhereEnv(dir)}.run(t).must(t, exitDone)
	assertEmpty(t, dir)
	contains(t, o.stdout,
		"1. A history of 20,000 events of 1,000 runs over 180 days; 50 of the runs are live.",
		"2. DELETE FROM run_events WHERE created_at < now() - interval '90 days' would have taken ",
		"3. prunectl plan", "nothing was removed; prunectl sweep would remove ",
		"4. prunectl sweep", "drained", "held by", "kept as orphans", "rows are gone, disk space is not",
		"5. Events of live runs: ", "6. The plan of its statement, through the index run_events_retention", "Index", "Tid Scan on run_events")
	contains(t, o.stderr, " on 127.0.0.1:", " as demo, from ")
	lacks(t, o.both(), dir, "hunter2", "password")
	for _, state := range []string{"queued", "running", "waiting-for-question", "waiting-for-approval", "retry-pending"} {
		contains(t, o.stdout, "in state "+state)
	}
	m := regexp.MustCompile(`Events of live runs: ([\d,]+) before, ([\d,]+) after\. Of all events: ([\d,]+) before, ([\d,]+) after`).FindStringSubmatch(o.stdout)
	if m == nil || m[1] != m[2] || m[1] == "0" || m[3] == m[4] {
		t.Errorf("live rows before and after: %q", m)
	}
}

// TestDemoInterrupted: wherever a signal comes, the server and its folder go.
func TestDemoInterrupted(t *testing.T) {
	for _, at := range []struct {
		said string
		code int
		s    syscall.Signal
	}{
		{"starting a throw-away PostgreSQL server", 130, syscall.SIGINT},
		{"filling in a history", 143, syscall.SIGTERM},
		{"msg=start sweep=run_events", 130, syscall.SIGINT},
	} {
		t.Run(at.said, func(t *testing.T) {
			t.Parallel()
			dir := demoFolder(t)
			r := invocation{args: []string{"demo", "--rows", "100000"}, env: elsewhereEnv(dir)}.start(t)
			eventually(t, at.said, func() bool { return strings.Contains(r.said(), at.said) })
			r.signal(at.s)
			o := r.wait().must(t, at.code)
			contains(t, o.stderr, "nothing is left behind")
			assertEmpty(t, dir)
		})
	}
}

// TestDemoElsewhere makes a database of its own on the server that it is given, and drops it.
func TestDemoElsewhere(t *testing.T) {
	db := pgtest.New(t)
	demos := func() int64 {
		return db.Int(t, "SELECT count(*) FROM pg_database WHERE datname LIKE 'prunectl_demo_%'")
	}
	before := demos()
	o := invocation{args: []string{"demo", "--rows", "5000", "--dsn", db.DSN}, env: elsewhereEnv(t.TempDir())}.run(t).must(t, exitDone)
	contains(t, o.stdout, "drained", "5. Events of live runs: ")
	if n := demos() - before; n != 0 {
		t.Errorf("%d databases are left", n)
	}
	if n := db.Int(t, "SELECT count(*) FROM pg_class WHERE relname = 'run_events'"); n != 0 {
		t.Error("it made its tables in a database that is not its own")
	}

	r := invocation{args: []string{"demo", "--rows", "200000", "--dsn", db.DSN}, env: elsewhereEnv(t.TempDir())}.start(t)
	eventually(t, "the history is being filled in", func() bool { return strings.Contains(r.said(), "filling in") })
	r.signal(syscall.SIGINT)
	r.wait().must(t, 130)
	if n := demos() - before; n != 0 {
		t.Errorf("%d databases are left after a signal", n)
	}

	o = invocation{args: []string{"demo", "--rows", "1000", "--keep", "--dsn", db.DSN}, env: elsewhereEnv(t.TempDir())}.run(t).must(t, exitDone)
	name := regexp.MustCompile(`DROP DATABASE (\w+)`).FindStringSubmatch(o.stderr)
	if name == nil || demos()-before != 1 {
		t.Fatalf("no database was kept: %s", o.stderr)
	}
	db.Exec(t, "DROP DATABASE "+name[1]+" WITH (FORCE)")

	o = invocation{args: []string{"demo", "--dsn", "postgres://app:hunter2@127.0.0.1:1/app"}}.run(t).must(t, exitFailed)
	contains(t, o.stderr, "cannot connect to database app on 127.0.0.1:1 as app")
	lacks(t, o.both(), "hunter2")
}
