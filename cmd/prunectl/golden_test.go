package main

import (
	stdflag "flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy/policyfile"
)

var update = stdflag.Bool("update", false, "write the golden files anew, from the runs of this test")

// volatile is what differs from run to run.
var volatile = []struct {
	re *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\d\.\ds\b`), "0.1s"},
	{regexp.MustCompile(`\d\d KiB`), "64 KiB"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d`), "2026-11-30"},
	{regexp.MustCompile(`PostgreSQL \d+\.\d+`), "PostgreSQL 15.18"},
	{regexp.MustCompile(`\d\d:\d\d:\d\dZ`), "02:17:04Z"},
	{regexp.MustCompile(`"20\d\d-\d\d-\d\dT[^"]+Z"`), `"2026-11-30T02:17:04.123456Z"`},
	{regexp.MustCompile(`_seconds": [\d.e-]+`), `_seconds": 0.1`},
	{regexp.MustCompile(`("version"|"host"|"role"|"server"|"operator"): "[^"]*"|("name"): "pgtest_[^"]*"`), `$1$2: "..."`},
	{regexp.MustCompile(`"port": \d+`), `"port": 5432`},
	{regexp.MustCompile(`by role \S+ \(\S+\) in database \S+ on \S+,`), "by role sweeper (jane) in database app on db1.internal:5432,"},
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
	hold(t, db, policy, []screen{
		{"check", "check", exitRefused},
		{"check_offline", "check --offline", exitDone},
		{"plan", "plan", exitRefused},
		{"status", "status", exitRefused},
		{"plan_window", "plan --only run_events --window 60d", exitDone},
		{"sweep", "sweep", exitFailed},
		{"sweep_again", "sweep --only run_events", exitDone},
	})
}

// TestScreensOfParents: and of sweeps over rows that others refer to, with windows of their own, at once, held and owed.
func TestScreensOfParents(t *testing.T) {
	db := eventTables.New(t)
	addEvent(t, db, "paid", "", 120, "succeeded", "dead")
	addEvent(t, db, "paid", "", 110, "succeeded", "pending", "failed")
	addEvent(t, db, "paid", "", 5, "succeeded")
	addEvent(t, db, "paid", "SUCCEEDED", 4, "succeeded", "cancelled", "succeeded")
	addEvent(t, db, "paid", "SUCCEEDED", 4, "succeeded", "dead")
	addEvent(t, db, "paid", "SETTLED", 4, "dead", "succeeded")
	addEvent(t, db, "paid", "SETTLED", 3, "claimed")
	addEvent(t, db, "paid", "SETLED", 3, "succeeded")
	own := addEvent(t, db, "paid", "", 10, "succeeded")
	db.Exec(t, "UPDATE domain_events SET retention_seconds = 6 * 86400 WHERE id = $1", own)
	ready, err := policyfile.Ready("domain_events")
	if err != nil {
		t.Fatal(err)
	}
	hold(t, db, string(ready), []screen{
		{"events_check", "check --offline", exitDone},
		{"events_plan", "plan", exitDone},
		{"events_status", "status", exitDone},
		{"events_sweep", "sweep", exitDone},
		{"events_requeue", "events requeue --all", exitDone},
		{"events_replay", "events replay --event 8", exitDone},
	})

	db = tables.New(t)
	db.Exec(t, `
CREATE TABLE orders (id int PRIMARY KEY, placed timestamptz NOT NULL, keep_days int, legal boolean);
CREATE INDEX orders_age ON orders (placed, id);
CREATE TABLE lines (order_id int NOT NULL REFERENCES orders (id), nr int NOT NULL, shipped boolean NOT NULL DEFAULT true, PRIMARY KEY (order_id, nr));
INSERT INTO orders SELECT g, now() - interval '100 days' - g * interval '1 minute', CASE WHEN g <= 3 THEN -1 WHEN g <= 5 THEN 1 WHEN g <= 7 THEN 365 END, g = 8 FROM generate_series(1, 20) g;
INSERT INTO lines SELECT o, n, o <> 9 FROM generate_series(1, 20) o, generate_series(1, 3) n;
ANALYZE orders, lines`)
	const orders = `
  orders:
    table: orders
    age: placed
    window: 30d
    row_window: {column: keep_days, unit: d}
    floor: 2d
    guard: {hold: legal, owed: {table: lines, key: {id: order_id}, state: shipped, terminal: [true]}}
    children: [{table: lines, key: {id: order_id}}]
`
	hold(t, db, policyOf(orders), []screen{
		{"orders_check", "check --offline", exitDone},
		{"orders_plan", "plan", exitDone},
		{"orders_sweep", "sweep", exitDone},
	})
}

// screen is a run of the command, and the file that holds what a person sees of it.
type screen struct {
	file, args string
	code       int
}

// hold runs the command and holds the screens.
func hold(t *testing.T, db *pgtest.DB, policy string, screens []screen) {
	t.Helper()
	for _, c := range screens {
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
