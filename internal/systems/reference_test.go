package systems

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// TestExpiriesOfTheReference runs the statements that the reference gives for rows' own windows, and holds that each of
// them serves: the expression index, the generated column, and the age with a partial index.
func TestExpiriesOfTheReference(t *testing.T) {
	const policy = `version: 1
sweeps:
  jobs:
    table: public.jobs
    age: finished_at
    window: 90d
    row_window: {column: keep_seconds, unit: s}
    guard: {ended: true}
`
	block := regexp.MustCompile("(?s)```sql\n *(CREATE INDEX CONCURRENTLY jobs_own ON .*?;)\n+ *(ALTER TABLE jobs .*?;)").FindStringSubmatch(string(file(t, "../../docs/policy.md")))
	if block == nil {
		t.Fatal("the reference has no index of expiries")
	}
	f, err := policyfile.Parse("jobs.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, sql, index string }{
		{"expression", strings.Replace(block[1], " CONCURRENTLY", "", 1), "jobs_own"},
		{"generated column", block[2] + "CREATE INDEX jobs_expires ON jobs (expires_at, id) WHERE keep_seconds IS NOT NULL", "jobs_expires"},
		{"age", "CREATE INDEX jobs_own_age ON jobs (finished_at, id) WHERE keep_seconds IS NOT NULL", "jobs_own_age"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := pgtest.New(t)
			db.Exec(t, "CREATE TABLE jobs (id bigint PRIMARY KEY, finished_at timestamptz, keep_seconds integer); CREATE INDEX jobs_age ON jobs (finished_at, id) WHERE keep_seconds IS NULL; "+c.sql)
			in, err := postgres.Inspect(t.Context(), postgres.Pool(db.Pool(t)), f.Sweeps[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range in.Refused() {
				t.Errorf("%s: %s", r.Name, r.Detail)
			}
			if want := "jobs_age, " + c.index; in.Index != want {
				t.Errorf("served by %s, want %s", in.Index, want)
			}
		})
	}
}
