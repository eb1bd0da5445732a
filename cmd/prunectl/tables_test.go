package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// tables are those of the tests: runs with their events, and jobs that are their own owners.
var tables = pgtest.NewTemplate("command", func(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.PgConn().Exec(ctx, `
CREATE TABLE runs (
  tenant text NOT NULL, id bigint NOT NULL, status text NOT NULL CHECK (status IN ('running', 'waiting_approval', 'completed', 'failed', 'cancelled')),
  finished_at timestamptz, PRIMARY KEY (tenant, id));
CREATE TABLE run_events (
  tenant text NOT NULL, run_id bigint NOT NULL, seq int NOT NULL, created_at timestamptz, body jsonb, PRIMARY KEY (tenant, run_id, seq));
CREATE INDEX run_events_age ON run_events (created_at, tenant, run_id, seq);
CREATE TABLE jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL CHECK (state IN ('queued', 'done', 'failed', 'cancelled')),
  finished_at timestamptz, payload text);
CREATE INDEX jobs_age ON jobs (finished_at, id);`).Close()
})

const (
	eventsSweep = `
  run_events:
    table: run_events
    age: created_at
    window: 30d
    guard: {owner: {table: runs, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed, failed, cancelled]}}
`
	jobsSweep = `
  jobs:
    table: jobs
    age: finished_at
    window: 7d
    guard: {state: state, terminal: [done, failed, cancelled]}
`
	ghostSweep = `
  ghost: {table: ghosts, age: at, window: 7d, guard: {none: "nothing is owed on it"}}
`
)

// policyOf is a policy file with these sweeps.
func policyOf(sweeps ...string) string {
	return "version: 1\ndefaults: {schema: public}\nsweeps:\n" + strings.Join(sweeps, "")
}

// with adds a line to a sweep.
func with(sweep, line string) string { return strings.TrimRight(sweep, "\n") + "\n    " + line + "\n" }

// addJobs adds finished jobs that are past the window.
func addJobs(t *testing.T, db *pgtest.DB, n int) {
	t.Helper()
	db.Exec(t, `INSERT INTO jobs (state, finished_at) SELECT 'done', now() - interval '30 days 12 hours' + g * interval '1 second' FROM generate_series(1, $1::int) g`, n)
}

// addRun adds a run and its events, one a minute, from days ago on.
func addRun(t *testing.T, db *pgtest.DB, id int, status string, days, events int) {
	t.Helper()
	db.Exec(t, `INSERT INTO runs VALUES ('t1', $1, $2, now() - interval '1 day' * $3::int)`, id, status, days)
	addEvents(t, db, id, days, events)
}

func addEvents(t *testing.T, db *pgtest.DB, id, days, events int) {
	t.Helper()
	db.Exec(t, `INSERT INTO run_events SELECT 't1', $1::bigint, g, now() - interval '12 hours' - interval '1 day' * $2::int + g * interval '1 minute' FROM generate_series(1, $3::int) g`, id, days, events)
}

// slowDeletes makes each deleted job take milliseconds.
func slowDeletes(t *testing.T, db *pgtest.DB, ms int) {
	t.Helper()
	db.Exec(t, fmt.Sprintf(`
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(%d / 1000.0); RETURN old; END $$;
CREATE TRIGGER jobs_slow BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION slow()`, ms))
}

func jobsLeft(t *testing.T, db *pgtest.DB) int {
	t.Helper()
	return int(db.Int(t, "SELECT count(*) FROM jobs"))
}

// at is where the command finds the database.
func at(db *pgtest.DB) []string { return []string{"DATABASE_URL=" + db.DSN} }
