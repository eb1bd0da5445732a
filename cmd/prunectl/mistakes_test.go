package main

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestLikelyMistakes: each is said at its place in the file, with what to write, and no row is touched.
func TestLikelyMistakes(t *testing.T) {
	change := func(sweep, from, to string) string {
		if !strings.Contains(sweep, from) {
			t.Fatalf("%q is not in:\n%s", from, sweep)
		}
		return policyOf(strings.Replace(sweep, from, to, 1))
	}
	for _, c := range []struct {
		name   string
		policy string
		setup  string
		code   int
		says   string
	}{
		{"key", change(jobsSweep, "window:", "windw:"), "", exitUsage, `prunectl.yaml:8:5: jobs: unknown key "windw"; did you mean window?`},
		{"no unit", change(jobsSweep, "7d", "90"), "", exitUsage, `prunectl.yaml:8:13: jobs.window: "90" has no unit; write 90d, 90h or 90min`},
		{"months", change(jobsSweep, "7d", "3m"), "", exitUsage, `prunectl.yaml:8:13: jobs.window: "3m": months have no fixed length and m is read both ways; write min for minutes or count days`},
		{"state of a window", change(jobsSweep, "7d", "{done: 7d, failed: 7d, cancelled: 7d, discard: 9d}"), "", exitUsage, `window names state "discard", which is not in guard.terminal`},
		{"two sweeps of one table", policyOf(jobsSweep, strings.Replace(jobsSweep, "jobs:", "jobs_again:", 1)), "", exitUsage, "overlaps"},
		{"planned", change(jobsSweep, "table: jobs", "table: jobs\n    frees: [{table: x, key: {id: job_id}}]"), "", exitUsage, "planned, not in this version"},
		{"table", change(jobsSweep, "table: jobs", "table: job"), "", exitRefused, "prunectl.yaml:6:12: jobs: refused: table public.job does not exist"},
		{"view", change(jobsSweep, "table: jobs", "table: jobs_view"), "CREATE VIEW jobs_view AS SELECT * FROM jobs", exitRefused, "prunectl.yaml:6:12: jobs: refused: "},
		{"partitioned table", change(jobsSweep, "table: jobs", "table: p"), "CREATE TABLE p (id int, state text, finished_at timestamptz) PARTITION BY RANGE (finished_at)", exitRefused, "prunectl.yaml:6:12: jobs: refused: "},
		{"inheritance parent", policyOf(jobsSweep), "CREATE TABLE more_jobs () INHERITS (jobs)", exitRefused, "prunectl.yaml:6:12: jobs: refused: "},
		{"column", change(jobsSweep, "age: finished_at", "age: ended_at"), "", exitRefused, `prunectl.yaml:7:10: jobs: refused: public.jobs has no column "ended_at"`},
		{"age that is no instant", change(jobsSweep, "age: finished_at", "age: id"), "", exitRefused, "prunectl.yaml:7:10: jobs: refused: column id is bigint"},
		{"null age that cannot be", change(jobsSweep, "{state: state, terminal: [done, failed, cancelled]}", "{ended: true}"), "ALTER TABLE jobs ALTER finished_at SET NOT NULL", exitRefused,
			"jobs: refused: guard.ended says finished_at is null while a row is live, but the column is NOT NULL"},
		{"state", change(jobsSweep, "[done, ", "[dne, "), "", exitRefused, `jobs: refused: "dne" is no value of public.jobs.state; it has `},
		{"index", change(jobsSweep, "table: jobs", "table: jobs\n    index: jobs_agee"), "", exitRefused, `jobs: refused: public.jobs has no index "jobs_agee"`},
		{"no index", policyOf(jobsSweep), "DROP INDEX jobs_age", exitRefused, "CREATE INDEX CONCURRENTLY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := tables.New(t)
			addJobs(t, db, 10)
			if c.setup != "" {
				db.Exec(t, c.setup)
			}
			untouched(t, db, func() {
				o := invocation{args: []string{"sweep"}, env: at(db), policy: c.policy}.run(t).must(t, c.code)
				contains(t, o.both(), c.says)
				invocation{args: []string{"check", "-o", "json"}, env: at(db), policy: c.policy}.run(t).must(t, c.code).document(t)
			})
		})
	}
}

func untouched(t *testing.T, db *pgtest.DB, do func()) {
	t.Helper()
	const sum = "SELECT count(*) || ' ' || coalesce(sum(xmin::text::bigint), 0) FROM jobs"
	before := db.Text(t, sum)
	do()
	if after := db.Text(t, sum); after != before {
		t.Errorf("jobs were %s and are %s", before, after)
	}
}
