package postgres

import (
	"fmt"
	"regexp"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// rowSpecimenSchema has a table for each kind of statement about rows that are held, or that have windows of their own.
const rowSpecimenSchema = `
CREATE TABLE letters (id bigint PRIMARY KEY, state text NOT NULL, created_at timestamptz NOT NULL, keep_hours integer, held boolean, note text);
CREATE INDEX letters_age ON letters (created_at, id);
CREATE TABLE parcels (id bigint PRIMARY KEY, kind text, created_at timestamptz NOT NULL, keep_days smallint, held boolean NOT NULL DEFAULT false, note text);
CREATE INDEX parcels_age ON parcels (created_at, id) WHERE keep_days IS NULL;
CREATE INDEX parcels_own ON parcels (kind, (((created_at AT TIME ZONE 'UTC') + keep_days * interval '1 day') AT TIME ZONE 'UTC'), id) WHERE keep_days IS NOT NULL;
CREATE TABLE tokens (id bigint PRIMARY KEY, tenant_id text, run_id text, created_at timestamptz NOT NULL, keep_seconds bigint,
  expires_at timestamptz GENERATED ALWAYS AS (((created_at AT TIME ZONE 'UTC') + keep_seconds * interval '1 second') AT TIME ZONE 'UTC') STORED, note text);
CREATE INDEX tokens_age ON tokens (created_at, id) WHERE keep_seconds IS NULL;
CREATE INDEX tokens_own ON tokens (expires_at, id) WHERE keep_seconds IS NOT NULL;
CREATE TABLE leases (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, keep interval, note text);
CREATE INDEX leases_age ON leases (created_at);
`

// rowSpecimens are sweeps of rowSpecimenSchema that differ in the text of a batch.
func rowSpecimens() []specimen {
	const day = 24 * time.Hour
	on := func(table string, g policy.Guard, own *policy.RowWindow, change ...func(*policy.Sweep)) policy.Sweep {
		s := policy.Sweep{Name: table, Table: policy.Name{Schema: "public", Table: table}, Age: "created_at", Window: policy.MustWindow(30 * day), Guard: g, Own: own}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	none := policy.Guard{None: "nothing is owed here"}
	sent := policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("sent", "lost")}}
	held := sent
	held.Hold = "held"
	hours := &policy.RowWindow{Column: "keep_hours", Unit: time.Hour}
	days := &policy.RowWindow{Column: "keep_days", Unit: day}
	seconds := &policy.RowWindow{Column: "keep_seconds", Unit: time.Second}
	free := &policy.RowWindow{Column: "keep", ZeroNever: true}
	kind := func(s *policy.Sweep) {
		s.Only = []policy.Match{{Column: "kind", Values: policy.Texts("a")}}
		s.Guard = policy.Guard{Hold: "held"}
		s.Window = policy.Never
	}
	return []specimen{
		{name: "hold", sweep: on("letters", held, nil)},
		{name: "part", sweep: on("letters", held, hours)},
		{name: "own_age", sweep: on("letters", held, hours), arm: 1},
		{name: "part_within", sweep: on("tokens", none, seconds)},
		{name: "own_generated", sweep: on("tokens", none, seconds), arm: 1},
		{name: "own_owner", sweep: on("tokens", runEvents().Guard, seconds), arm: 1},
		{name: "own_expression", sweep: on("parcels", none, days, kind)},
		{name: "own_interval", sweep: on("leases", none, free), arm: 1},
	}
}

// rowKept lists those of their statements that have a golden copy.
var rowKept = map[string][]string{
	"hold":           {"remove", "plan", "held"},
	"part":           {"remove", "undated_old"},
	"own_age":        {"remove", "skip", "remove_group_next", "plan", "held", "undated_old"},
	"part_within":    {"remove"},
	"own_generated":  {"remove", "remove_group_next", "after_skip", "plan", "undated_null", "undated_old"},
	"own_owner":      {"remove", "plan"},
	"own_expression": {"remove", "remove_group_next", "undated_old"},
	"own_interval":   {"remove", "remove_group"},
}

// rowSpecimenRows fills the tables of rowSpecimenSchema; see specimenRows.
func rowSpecimenRows(n int) string {
	return fmt.Sprintf(`
INSERT INTO letters SELECT g, (ARRAY['open', 'sent', 'lost'])[1 + g %% 3], now() - interval '90 days' + g * (interval '90 days' / %[1]d), CASE WHEN g %% 2 = 0 THEN g %% 3000 END, (ARRAY[true, false, NULL])[1 + g %% 3], repeat('n', 50)
  FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO parcels SELECT l.id, (ARRAY['a', 'b'])[1 + l.id %% 2], l.created_at, l.keep_hours / 24, l.held IS TRUE, l.note FROM letters l;
INSERT INTO tokens (id, tenant_id, run_id, created_at, keep_seconds, note) SELECT l.id, 'tenant-' || l.id / 20 %% 20, 'run-' || l.id / 20, l.created_at, l.keep_hours * 3600, l.note FROM letters l;
INSERT INTO leases SELECT l.id, l.created_at, l.keep_hours * interval '1 hour', l.note FROM letters l;
`, n)
}

// rangePattern is how EXPLAIN writes what the arm's range is one of.
func rangePattern(a *Arm) string {
	switch {
	case !a.arm.Expiry:
		return regexp.QuoteMeta(plainIdent(a.sweep.Age))
	case a.expiry != "":
		return regexp.QuoteMeta(plainIdent(a.expiry))
	}
	return regexp.QuoteMeta(plainIdent(a.sweep.Age)) + ` AT TIME ZONE 'UTC'::text\)[^<>]*\) AT TIME ZONE 'UTC'::text\)?`
}
