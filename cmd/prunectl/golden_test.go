package main

import (
	stdflag "flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = stdflag.Bool("update", false, "write the golden files anew, from the runs of this test")

// volatile is what differs from run to run.
var volatile = []struct {
	re *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\d\.\ds\b`), "0.1s"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d`), "2026-11-30"},
	{regexp.MustCompile(`PostgreSQL \d+\.\d+`), "PostgreSQL 15.18"},
	{regexp.MustCompile(`\d\d:\d\d:\d\dZ`), "02:17:04Z"},
	{regexp.MustCompile(`database \S+ on \S+ as \S+ server \S+`), "database app on db1.internal:5432 as sweeper, server 15.18,"},
}

// TestScreens holds what a person sees of real runs, word for word.
func TestScreens(t *testing.T) {
	db := tables.New(t)
	history(t, db)
	db.Exec(t, "INSERT INTO jobs (state, finished_at) SELECT 'cancelled', now() - interval '20 days 12 hours' + g * interval '1 minute' FROM generate_series(1, 4) g")
	pin(t, db)
	db.Exec(t, "CREATE INDEX jobs_state_age ON jobs (state, finished_at)")
	const byState = `
  jobs:
    table: jobs
    age: finished_at
    window: {done: 7d, failed: never, cancelled: 14d}
    guard: {state: state, terminal: [done, failed, cancelled]}
    index: jobs_state_age
`
	policy := policyOf(with(eventsSweep, "ceiling: {rows: 30}"), byState, ghostSweep)
	for _, c := range []struct {
		file, args string
		code       int
	}{
		{"check", "check", exitRefused},
		{"check_offline", "check --offline", exitDone},
		{"plan", "plan", exitRefused},
		{"sweep", "sweep", exitFailed},
		{"sweep_again", "sweep --only run_events", exitDone},
	} {
		o := invocation{args: strings.Fields(c.args), env: at(db), policy: policy}.run(t).must(t, c.code)
		got := "$ prunectl " + c.args + "\n" + o.stdout + "--- stderr\n" + o.stderr
		for _, v := range volatile {
			got = v.re.ReplaceAllString(got, v.as)
		}
		file := filepath.Join("testdata", c.file+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; if that is right, run this test with -update\ngot:\n%s\nwant:\n%s", file, got, want)
		}
	}
}
