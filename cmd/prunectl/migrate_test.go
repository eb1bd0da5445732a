package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestMigrate goes up, and down a version at a time, and says what it did.
func TestMigrate(t *testing.T) {
	db := pgtest.New(t)
	migrate := func(args string) outcome {
		t.Helper()
		return invocation{args: strings.Fields("migrate " + args), env: at(db)}.run(t)
	}
	times := regexp.MustCompile(`\d+\.\ds|\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`)
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"status", 0, "COMPONENT      SCHEMA        INSTALLED  KNOWN  STATE          APPLIED\nrun_events     public                -      2  not installed  -\n" +
			"domain_events  public                -      2  not installed  -\ninbox_outbox   inbox_outbox          -      1  not installed  -\nconnections    public                -      1  not installed  -\n"},
		{"up", 0, "run_events: 1 create_tables applied in T\nrun_events: 2 add_retention_index applied in T\n" +
			"domain_events: 1 create_tables applied in T\ndomain_events: 2 add_indexes applied in T\ninbox_outbox: 1 create_tables applied in T\nconnections: 1 create_table applied in T\n"},
		{"up", 0, "run_events: up to date\ndomain_events: up to date\ninbox_outbox: up to date\nconnections: up to date\n"},
		{"status", 0, "COMPONENT      SCHEMA        INSTALLED  KNOWN  STATE       APPLIED\nrun_events     public                2      2  up to date  T\n" +
			"domain_events  public                2      2  up to date  T\ninbox_outbox   inbox_outbox          1      1  up to date  T\nconnections    public                1      1  up to date  T\n"},
		{"down", 0, "connections: 1 create_table taken back in T\ninbox_outbox: 1 create_tables taken back in T\ndomain_events: 2 add_indexes taken back in T\nrun_events: 2 add_retention_index taken back in T\n"},
		{"status --component run_events", 0, "COMPONENT   SCHEMA  INSTALLED  KNOWN  STATE                           APPLIED\nrun_events  public          1      2  pending: 2 add_retention_index  T\n"},
		{"--component run_events up", 0, "run_events: 2 add_retention_index applied in T\n"},
		{"--component domain_events up", 0, "domain_events: 2 add_indexes applied in T\n"},
		{"up --schema nowhere", exitFailed, ""},
		// A component with a schema of its own makes it, whatever its name.
		{`up --component inbox_outbox --schema In."Box`, 0, "inbox_outbox: 1 create_tables applied in T\n"},
		{`status --component inbox_outbox --schema In."Box`, 0, "COMPONENT     SCHEMA   INSTALLED  KNOWN  STATE       APPLIED\ninbox_outbox  In.\"Box          1      1  up to date  T\n"},
		{"--schema other status --component domain_events", 0, "COMPONENT      SCHEMA  INSTALLED  KNOWN  STATE          APPLIED\ndomain_events  other           -      2  not installed  -\n"},
	} {
		o := migrate(step.args)
		o.must(t, step.code)
		if got := times.ReplaceAllString(o.stdout, "T"); got != step.want {
			t.Errorf("migrate %s:\n%swant:\n%s", step.args, got, step.want)
		}
		contains(t, o.stderr, "database "+db.Name+" on ")
	}

	// Rows are never dropped.
	db.Exec(t, "INSERT INTO runs (tenant_id, id, status) VALUES ('t', 'r', 'queued')")
	migrate("down").must(t, exitDone)
	contains(t, migrate("down").must(t, exitFailed).stderr, "tables hold rows")
	db.Exec(t, "DELETE FROM runs")
	migrate("down").must(t, exitDone)
	if o := migrate("down").must(t, exitDone); o.stdout != "connections: not installed\ninbox_outbox: not installed\ndomain_events: not installed\nrun_events: not installed\n" {
		t.Error(o.stdout)
	}
	contains(t, invocation{args: []string{"migrate", "up"}, env: []string{"DATABASE_URL=" + readOnly(t, db)}}.run(t).must(t, exitFailed).stderr, "read-only")
}

// TestMigratePrint: the SQL needs no server, and does what migrate does.
func TestMigratePrint(t *testing.T) {
	o := invocation{args: []string{"migrate", "up", "--print", "--schema", "public"}}.run(t).must(t, exitDone)
	contains(t, o.stdout, "CREATE TABLE", "CREATE INDEX CONCURRENTLY", "-- component run_events", "-- component domain_events", "-- component inbox_outbox", "-- component connections")
	down := invocation{args: []string{"migrate", "down", "--print"}}.run(t).must(t, exitDone)
	contains(t, down.stdout, "DROP INDEX CONCURRENTLY")
}
