package main

import (
	"strings"
	"testing"
)

// expiringSweeps are over rows that expire: leases at once, jobs with a grace.
const expiringSweeps = `
  leases:
    table: leases
    expires: expires_at
    guard: {none: "an expired lease is nobody's"}
  keys:
    table: keys
    expires: {column: ends, grace: 1d}
    guard: {state: state, terminal: [revoked]}
`

// TestScreensOfExpiries holds what a person sees of sweeps of rows that expire: rows without an expiry are no finding, the
// time since the expiry is what is overdue.
func TestScreensOfExpiries(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, `
CREATE TABLE leases (id int PRIMARY KEY, expires_at timestamptz);
CREATE INDEX leases_expiry ON leases (expires_at, id) WHERE expires_at IS NOT NULL;
INSERT INTO leases SELECT g, now() - g * interval '1 hour' FROM generate_series(1, 5) g;
INSERT INTO leases SELECT g, now() + g * interval '1 hour' FROM generate_series(6, 8) g;
INSERT INTO leases VALUES (9, NULL), (10, NULL), (11, 'infinity'), (12, 'epoch');
CREATE TABLE keys (id int PRIMARY KEY, state text NOT NULL, ends timestamptz);
CREATE INDEX keys_ends ON keys (ends, id);
INSERT INTO keys SELECT g, CASE WHEN g % 2 = 0 THEN 'revoked' ELSE 'used' END, now() - g * interval '10 hours' FROM generate_series(1, 6) g;
INSERT INTO keys VALUES (7, 'revoked', NULL);
ANALYZE leases, keys`)
	hold(t, db, policyOf(expiringSweeps), []screen{
		{"leases_check", "check --offline", exitDone},
		{"leases_plan", "plan", exitDone},
		{"leases_status", "status", exitDone},
		{"leases_sweep", "sweep", exitDone},
		{"leases_check_online", "check", exitDone},
	})
	if n := db.Int(t, "SELECT count(*) FROM leases WHERE id > 5"); n != 7 {
		t.Errorf("%d leases are left that have not expired", n)
	}
	if n := db.Int(t, "SELECT count(*) FROM keys"); n != 5 {
		t.Errorf("%d keys are left", n)
	}
}

// TestWindowLeavesExpiries: a grace is no window, so --window neither takes its place nor makes the choice of a sweep unclear.
func TestWindowLeavesExpiries(t *testing.T) {
	const none = "has no window that is one duration, and others are not replaced; leave it out"
	for _, c := range []struct{ args, policy, want string }{
		{"sweep --window 60d", policyOf(expiringSweeps), "--window: prunectl.yaml " + none},
		{"plan --window 60d --only keys", policyOf(expiringSweeps), "--window: prunectl.yaml " + none},
		{"sweep --window 60d --only keys", policyOf(eventsSweep, expiringSweeps), "--window: no chosen sweep has a window that is one duration, and others are not replaced; write --only run_events"},
	} {
		o := invocation{args: strings.Fields(c.args), policy: c.policy}.run(t).must(t, exitUsage)
		if o.stderr != "prunectl: "+c.want+"\n" || o.stdout != "" {
			t.Errorf("%s\nstderr: %sstdout: %swant: prunectl: %s", c.args, o.stderr, o.stdout, c.want)
		}
	}
	db := tables.New(t)
	db.Exec(t, "CREATE TABLE leases (id int PRIMARY KEY, expires_at timestamptz); CREATE INDEX ON leases (expires_at, id); CREATE TABLE keys (id int PRIMARY KEY, state text, ends timestamptz); CREATE INDEX ON keys (ends, id)")
	r := invocation{args: []string{"plan", "--window", "60d", "-o", "json"}, env: at(db), policy: policyOf(eventsSweep, expiringSweeps)}.run(t).must(t, exitDone).document(t)
	for name, seconds := range map[string]int64{"run_events": 60 * 86400, "leases": 0, "keys": 86400} {
		if w := sweepOf(t, r, name).Arms[0].Window; w == nil || *w != seconds {
			t.Errorf("%s: a window of %v seconds", name, w)
		}
	}
}

// TestOwnersThatExpire: an expiry and a window are not held against each other.
func TestOwnersThatExpire(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, "CREATE INDEX runs_age ON runs (finished_at, tenant, id)")
	const runs = `
  runs:
    table: runs
    expires: finished_at
    guard: {state: status, terminal: [completed, failed, cancelled]}
`
	o := invocation{args: []string{"check"}, env: at(db), policy: policyOf(runs, eventsSweep)}.run(t)
	if strings.Contains(o.stdout+o.stderr, "keeps its rows for") {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
}
