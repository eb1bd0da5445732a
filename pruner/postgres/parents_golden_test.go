package postgres

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// parentSchema has a table for each kind of statement of the parent form. Nothing in it depends on the server's version.
const parentSchema = `
CREATE TABLE runs (tenant_id text NOT NULL, id text NOT NULL, status text NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE events (id bigint PRIMARY KEY, kind text, recorded_at timestamptz NOT NULL, parked boolean, tenant_id text, run_id text, note text);
CREATE INDEX events_age ON events (recorded_at, id);
CREATE TABLE deliveries (id bigint PRIMARY KEY, event_id bigint NOT NULL REFERENCES events, receiver text NOT NULL, status text NOT NULL, note text, UNIQUE (event_id, receiver));
CREATE INDEX deliveries_open ON deliveries (event_id) WHERE status NOT IN ('succeeded', 'dead');
CREATE TABLE attempts (delivery_id bigint NOT NULL REFERENCES deliveries, n int NOT NULL, note text, PRIMARY KEY (delivery_id, n));
CREATE TABLE pages (id bigint PRIMARY KEY, at timestamptz NOT NULL, note text);
CREATE INDEX pages_age ON pages (at);
CREATE TABLE links (page_id bigint REFERENCES pages, target text);
CREATE INDEX links_page ON links (page_id);
CREATE TABLE pins (page_id bigint NOT NULL REFERENCES pages, name text);
CREATE INDEX pins_page ON pins (page_id);
`

var parentDB = pgtest.NewTemplate("parents", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	return c.PgConn().Exec(ctx, parentSchema).Close()
})

// parentRows fills the tables of parentSchema: n events and pages, ages of 90 days up to now, each event with 4 deliveries
// of 2 attempts each, in no order of the heap, so that nothing but the statement gives an order.
func parentRows(n int) string {
	return fmt.Sprintf(`
INSERT INTO runs SELECT 'tenant-' || g %% 20, 'run-' || g, CASE WHEN g %% 50 = 0 THEN 'running' ELSE 'completed' END FROM generate_series(0, %[1]d / 20) g;
INSERT INTO events SELECT g, CASE WHEN g %% 7 = 0 THEN 'keep' ELSE 'step' END, now() - interval '90 days' + g * (interval '90 days' / %[1]d), g %% 90 = 0, 'tenant-' || g / 20 %% 20, 'run-' || g / 20, repeat('n', 50)
  FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO deliveries SELECT g * 4 + r, g, 'receiver-' || r, CASE WHEN g %% 30 = 0 AND r = 1 THEN 'pending' WHEN r = 2 THEN 'dead' ELSE 'succeeded' END, repeat('n', 50)
  FROM generate_series(0, %[1]d - 1) g, generate_series(0, 3) r ORDER BY md5(g::text || r);
INSERT INTO attempts SELECT d.id, n, repeat('n', 50) FROM deliveries d, generate_series(1, 2) n ORDER BY md5(d.id::text || n);
INSERT INTO pages SELECT e.id, e.recorded_at, e.note FROM events e;
INSERT INTO links SELECT d.event_id, d.receiver FROM deliveries d;
INSERT INTO pins SELECT g, 'pinned' FROM generate_series(0, %[1]d - 1, 50) g;
`, n)
}

// parentSpecimens are sweeps of parentSchema that differ in the text of a batch.
func parentSpecimens() []specimen {
	public := func(name string) policy.Name { return policy.Name{Schema: "public", Table: name} }
	key := func(parent, child string) []policy.ChildKey { return []policy.ChildKey{{Parent: parent, Child: child}} }
	deliveries := policy.Child{Table: public("deliveries"), Key: key("id", "event_id")}
	nested := deliveries
	nested.Children = []policy.Child{{Table: public("attempts"), Key: key("id", "delivery_id")}}
	owed := &policy.OwedGuard{Table: deliveries.Table, Key: deliveries.Key, Column: "status", Terminal: policy.Texts("succeeded", "dead")}
	sweep := func(name, table, age string, change func(*policy.Sweep)) policy.Sweep {
		s := policy.Sweep{Name: name, Table: public(table), Age: age, Window: policy.MustWindow(30 * 24 * time.Hour)}
		change(&s)
		return s
	}
	owner := *runEvents().Guard.Owner
	return []specimen{
		{name: "parents_outbox", sweep: sweep("outbox", "events", "recorded_at", func(s *policy.Sweep) {
			s.Guard.Owed, s.Children = owed, []policy.Child{deliveries}
		})},
		{name: "parents_nested", sweep: sweep("nested", "events", "recorded_at", func(s *policy.Sweep) {
			s.Guard.Owed, s.Guard.Hold, s.Children = owed, "parked", []policy.Child{nested}
		})},
		{name: "parents_owner", gate: true, sweep: sweep("owned", "events", "recorded_at", func(s *policy.Sweep) {
			s.Guard.Owed, s.Guard.Owner, s.Guard.Hold, s.Children = owed, &owner, "parked", []policy.Child{nested}
			s.Only = []policy.Match{{Column: "kind", Not: true, Values: policy.Texts("keep")}}
		})},
		{name: "parents_unkeyed", sweep: sweep("pages", "pages", "at", func(s *policy.Sweep) {
			s.Guard.Owed = &policy.OwedGuard{Table: public("pins"), Key: key("id", "page_id")}
			s.Children = []policy.Child{{Table: public("links"), Key: key("id", "page_id")}}
		})},
		{name: "parents_children", sweep: sweep("children", "pages", "at", func(s *policy.Sweep) {
			s.Guard.None = "nothing is owed here"
			s.Children = []policy.Child{{Table: public("links"), Key: key("id", "page_id")}, {Table: public("pins"), Key: key("id", "page_id")}}
		})},
		{name: "parents_owed", sweep: sweep("owed", "events", "recorded_at", func(s *policy.Sweep) { s.Guard.Owed = owed })},
	}
}

// parentShapes lists the first statements of a batch in the parent form by name.
func parentShapes(a *Arm) map[string]shape {
	m := map[string]shape{"chunk": {chunk: true}}
	for mode, name := range map[pruner.Mode]string{pruner.Remove: "remove", pruner.SkipLocked: "skip", pruner.StepStuck: "step"} {
		m[name] = shape{mode: mode}
		if a.keyed() {
			m[name+"_next"] = shape{mode: mode, next: true}
		}
	}
	m["step_chunk"] = shape{mode: pruner.StepStuck, chunk: true}
	return m
}

// parentStatementsOf lists every statement of the arm's batches by name.
func parentStatementsOf(a *Arm) map[string]statement {
	m := map[string]statement{"settings": a.settingsSQL(), "keys": {sql: nearKeysSQL}, "parents": a.parentSQL(), "after": a.afterParentsSQL()}
	for name, s := range parentShapes(a) {
		m[name] = a.render(s)
	}
	if a.owed != nil {
		m["recheck"] = a.recheckSQL()
	}
	for _, c := range a.children {
		name := c.table.name.Table
		m["child_"+name] = a.childSQL(c)
		m["chunk_"+name] = a.chunkSQL(c, false)
		m["chunk_next_"+name] = a.chunkSQL(c, true)
	}
	return m
}

// parentWords are what the parent form says beside the rules for values: its classes, one parent, and one more than are
// looked at.
var parentWords = []string{
	"the value 1 is spliced in", "the literal 'yes' has no type", "the literal 'outside' has no type", "the literal 'unusable' has no type", "the literal 'held' has no type",
	"the literal 'kept' has no type", "the literal 'owed' has no type", "the literal 'orphan' has no type", "the literal 'locked' has no type", "the literal 'due' has no type",
}

// parentsKept lists the statements that have a golden copy: each clause of each kind once or more.
var parentsKept = map[string][]string{
	"parents_outbox":   {"remove", "remove_next", "chunk", "step", "step_chunk", "keys", "recheck", "child_deliveries", "chunk_deliveries", "chunk_next_deliveries", "parents", "after"},
	"parents_nested":   {"remove", "recheck", "child_attempts", "child_deliveries", "chunk_attempts", "chunk_next_attempts", "chunk_deliveries", "chunk_next_deliveries", "parents"},
	"parents_owner":    {"remove", "remove_next", "chunk", "step"},
	"parents_unkeyed":  {"remove", "chunk", "recheck", "child_links", "chunk_links", "chunk_next_links", "parents", "after"},
	"parents_children": {"remove", "chunk_links", "chunk_pins", "parents", "after"},
	"parents_owed":     {"remove", "parents", "after"},
}

// TestGoldenParents holds the text of the parent form's statements against their reviewed copies, and to the rules that
// keep such text right. The server takes each of them too.
func TestGoldenParents(t *testing.T) {
	conn := parentDB.New(t).Conn(t)
	kind := goldens{}
	n := 0
	for _, sp := range parentSpecimens() {
		arm := sp.open(t, Conn(conn))
		all := parentStatementsOf(arm)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			n++
			if _, err := conn.PgConn().Prepare(t.Context(), "", all[name].sql, nil); err != nil {
				t.Errorf("%s: the server refuses %s: %v\n%s", sp.name, name, err, all[name].sql)
			}
			for _, fault := range lint(all[name]) {
				if !slices.Contains(parentWords, fault) {
					t.Errorf("%s, %s: %s\n%s", sp.name, name, fault, all[name].sql)
				}
			}
		}
		for name, s := range parentShapes(arm) {
			if s.mode == pruner.SkipLocked && all[name].sql != all[strings.Replace(name, "skip", "remove", 1)].sql {
				t.Errorf("%s: %s is another statement than without: parents are never waited for", sp.name, name)
			}
		}
		kind.hold(t, filepath.Join("testdata", "sql", sp.name), all, parentsKept[sp.name])
	}
	if n < 70 {
		t.Errorf("only %d statements were looked at", n)
	}
	kind.whole(t, filepath.Join("testdata", "sql", "parents_*.sql"), nil)
}

// parentPlanValues are values for every parameter of the statements of the parent form, at this limit.
func parentPlanValues(a *Arm, limit int) map[string]string {
	v := planValues(a, limit)
	v[argLook], v[argWhole], v[argChunk] = strconv.Itoa(max(1, limit/firstLook)), strconv.Itoa(limit), "(0,1)"
	for _, c := range a.children {
		for c.parent != nil {
			c = c.parent
		}
		for i, k := range c.keyset {
			v[argLast+strconv.Itoa(i)] = "1"
			if k.typname == "text" {
				v[argLast+strconv.Itoa(i)] = "receiver-1"
			}
		}
	}
	return v
}
