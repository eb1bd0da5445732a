package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// inspected is a catalog, a sweep over it, and what the inspection must say.
type inspected struct {
	name   string
	schema string // after things: x.t and x.o
	sweep  policy.Sweep
	want   []finding // in any order, among others
	index  string    // the index that is picked; "": not looked at
	heals  bool      // the fix of the first finding, run as it stands, makes it go away
}

// finding is a check with this result and name, whose key, detail and fix contain these texts.
type finding struct {
	result           Verdict
	name             string
	key, detail, fix string
}

func (f finding) among(checks []Check) (Check, bool) {
	i := slices.IndexFunc(checks, func(c Check) bool {
		return c.Result == f.result && c.Name == f.name && strings.Contains(c.Key, f.key) && strings.Contains(c.Detail, f.detail) && strings.Contains(c.Fix, f.fix)
	})
	if i < 0 {
		return Check{}, false
	}
	return checks[i], true
}

const inspectedTables = `
CREATE TABLE t (id bigint PRIMARY KEY, state text, kind text, at timestamptz NOT NULL, ended timestamptz, o_id bigint, note text);
CREATE INDEX t_at ON t (at, id);
CREATE TABLE o (id bigint PRIMARY KEY, status text NOT NULL, note text);
`

// on is a sweep over x.t without a guard.
func on(change ...func(*policy.Sweep)) policy.Sweep {
	s := policy.Sweep{Name: "t", Table: policy.Name{Schema: "x", Table: "t"}, Age: "at", Window: policy.MustWindow(24 * time.Hour), Guard: unguarded.Guard}
	s.Timeouts.Lock = 100 * time.Millisecond
	for _, c := range change {
		c(&s)
	}
	return s
}

func ofTable(name string) func(*policy.Sweep) {
	return func(s *policy.Sweep) { s.Table = policy.Name{Schema: "x", Table: name} }
}

func age(column string) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Age = column } }

func named(index string) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Index = index } }

func matching(ms ...policy.Match) func(*policy.Sweep) {
	return func(s *policy.Sweep) { s.Only = ms }
}

// accepting names tables whose rows the database may remove.
func accepting(tables ...string) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		for _, name := range tables {
			s.Cascades = append(s.Cascades, policy.Name{Schema: "x", Table: name})
		}
	}
}

func byState(column string, terminal, live []policy.Value) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		s.Guard = policy.Guard{State: &policy.StateGuard{Column: column, Terminal: terminal, Live: live}}
	}
}

func byOwner(change ...func(*policy.OwnerGuard)) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		g := &policy.OwnerGuard{Table: policy.Name{Schema: "x", Table: "o"}, Key: []policy.KeyPair{{Target: "o_id", Owner: "id"}}, Column: "status", Terminal: policy.Texts("done")}
		for _, c := range change {
			c(g)
		}
		s.Guard = policy.Guard{Owner: g}
	}
}

func unequal(s *policy.Sweep) {
	s.Window = policy.Never
	for i, v := range s.Guard.State.Terminal {
		s.ByState = append(s.ByState, policy.StateWindow{State: v, Window: policy.MustWindow(time.Duration(i+1) * 24 * time.Hour)})
	}
}

// refuse and warn are findings.
func refuse(name, detail string) finding { return finding{result: Refused, name: name, detail: detail} }
func warn(name, detail string) finding   { return finding{result: Warning, name: name, detail: detail} }
func fine(name, detail string) finding   { return finding{result: OK, name: name, detail: detail} }

// catalogs are what a sweep may meet.
func catalogs() []inspected {
	done, doneOrFailed := policy.Texts("done"), policy.Texts("done", "failed")
	kind := func(vs ...policy.Value) policy.Match { return policy.Match{Column: "kind", Values: vs} }
	cs := []inspected{
		{name: "as it should be", sweep: on(byOwner()), want: []finding{fine("kind", "ordinary table"), fine("rights", ""), fine("age", ""), fine("index", "t_at (at, id)"), fine("ties", ""), fine("column", "o_pkey")}, index: "t_at"},

		// Kinds of relations.
		{name: "a view", schema: "CREATE VIEW v AS SELECT * FROM t", sweep: on(ofTable("v")), want: []finding{refuse("kind", "x.v is a view")}},
		{name: "a materialized view", schema: "CREATE MATERIALIZED VIEW v AS SELECT * FROM t", sweep: on(ofTable("v")), want: []finding{refuse("kind", "x.v is a materialized view")}},
		{name: "a foreign table", schema: "CREATE FOREIGN DATA WRAPPER elsewhere; CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere; CREATE FOREIGN TABLE f (id int, at timestamptz) SERVER elsewhere", sweep: on(ofTable("f")),
			want: []finding{refuse("kind", "x.f is a foreign table")}},
		{name: "a sequence", schema: "CREATE SEQUENCE q", sweep: on(ofTable("q")), want: []finding{refuse("kind", "x.q is a sequence")}},
		{name: "an index", sweep: on(ofTable("t_at")), want: []finding{refuse("kind", "x.t_at is an index")}},
		{name: "a composite type", schema: "CREATE TYPE ct AS (a int)", sweep: on(ofTable("ct")), want: []finding{refuse("kind", "x.ct is a composite type")}},
		{name: "a partitioned table", schema: "CREATE TABLE p (id int, at timestamptz) PARTITION BY RANGE (at)", sweep: on(ofTable("p")), want: []finding{{Refused, "kind", "table", "x.p is a partitioned table", "partitions"}}},
		{name: "a partitioned index", schema: "CREATE TABLE p (id int, at timestamptz) PARTITION BY RANGE (at); CREATE INDEX pi ON p (at)", sweep: on(ofTable("pi")), want: []finding{refuse("kind", "x.pi is an index")}},
		{name: "a partition", schema: "CREATE TABLE p (id bigint, at timestamptz NOT NULL) PARTITION BY RANGE (at); CREATE TABLE leaf PARTITION OF p DEFAULT; CREATE INDEX ON p (at, id)", sweep: on(ofTable("leaf")), want: []finding{fine("kind", "")}, index: "leaf_at_id_idx"},
		{name: "an inheritance parent", schema: "CREATE TABLE heir () INHERITS (t)", sweep: on(), want: []finding{refuse("kind", "x.t is an inheritance parent")}},
		{name: "an heir", schema: "CREATE TABLE heir () INHERITS (t); CREATE INDEX ON heir (at)", sweep: on(ofTable("heir")), want: []finding{fine("kind", "")}},
		{name: "no such table", sweep: on(ofTable("nothing")), want: []finding{refuse("kind", "table x.nothing does not exist")}},
		{name: "no such schema", sweep: on(func(s *policy.Sweep) { s.Table.Schema = "nowhere" }), want: []finding{refuse("kind", "table nowhere.t does not exist")}},
		{name: "a name that is SQL", sweep: on(ofTable(`t"; DROP TABLE t; --`)), want: []finding{refuse("kind", "does not exist")}},
		{name: "an owner that is a view", schema: "ALTER TABLE o RENAME TO oo; CREATE VIEW o AS SELECT * FROM oo", sweep: on(byOwner()), want: []finding{{Refused, "kind", "guard.owner.table", "x.o is a view", ""}}},
		{name: "a partitioned owner", schema: "DROP TABLE o; CREATE TABLE o (id bigint PRIMARY KEY, status text) PARTITION BY RANGE (id)", sweep: on(byOwner()), want: []finding{{Refused, "kind", "guard.owner.table", "x.o is a partitioned table", ""}}},
		{name: "an owner with heirs", schema: "CREATE TABLE heir () INHERITS (o)", sweep: on(byOwner()), want: []finding{{Refused, "kind", "guard.owner.table", "x.o is an inheritance parent", ""}}},
		{name: "no such owner", schema: "DROP TABLE o", sweep: on(byOwner()), want: []finding{{Refused, "kind", "guard.owner.table", "owner table x.o does not exist", ""}}},

		// Columns, all at once.
		{name: "no such columns", sweep: on(age("att"), byOwner(func(g *policy.OwnerGuard) {
			g.Column, g.Key = "stat", []policy.KeyPair{{Target: "oid_", Owner: "idd"}}
		}), matching(policy.Match{Column: "kindd", Values: done})),
			want: []finding{{Refused, "column", "age", `x.t has no column "att"; it has id, state, kind, at`, ""}, {Refused, "column", "only.kindd", `no column "kindd"`, ""}, {Refused, "column", "guard.owner.state", `x.o has no column "stat"`, ""},
				{Refused, "column", "guard.owner.key", `x.t has no column "oid_"`, ""}, {Refused, "column", "guard.owner.key", `x.o has no column "idd"`, ""}}},
		{name: "no such state column", sweep: on(byState("status", done, nil)), want: []finding{{Refused, "column", "guard.state", `no column "status"`, ""}}},
		{name: "a dropped column", schema: "ALTER TABLE t DROP COLUMN kind", sweep: on(matching(kind(done...))), want: []finding{refuse("column", `no column "kind"`)}},
		{name: "a system column", sweep: on(age("xmin")), want: []finding{refuse("column", `no column "xmin"`)}},

		// Ages.
		{name: "a domain of instants", schema: "CREATE DOMAIN instant AS timestamptz; ALTER TABLE t ALTER at TYPE instant", sweep: on(), want: []finding{fine("age", "")}, index: "t_at"},
		{name: "ended, and never null", sweep: on(func(s *policy.Sweep) { s.Guard = policy.Guard{Ended: true} }), want: []finding{{Refused, "age", "guard.ended", "NOT NULL", ""}}},
		{name: "ended", schema: "CREATE INDEX ON t (ended, id)", sweep: on(age("ended"), func(s *policy.Sweep) { s.Guard = policy.Guard{Ended: true} }), want: []finding{fine("age", "")}},
		{name: "an age that can be null", schema: "CREATE INDEX ON t (ended, id)", sweep: on(age("ended")), want: []finding{{Warning, "age", "age", "can be null", ""}}},

		// States.
		{name: "an enum", schema: "CREATE TYPE st AS ENUM ('open', 'done', 'failed'); ALTER TABLE t ALTER state TYPE st USING state::st", sweep: on(byState("state", doneOrFailed, nil)), want: []finding{fine("state", "2 of its 3 values")}},
		{name: "a word that an enum has not", schema: "CREATE TYPE st AS ENUM ('open', 'done', 'failed'); ALTER TABLE t ALTER state TYPE st USING state::st", sweep: on(byState("state", policy.Texts("done", "Failed"), nil)),
			want: []finding{{Refused, "state", "guard.terminal", `"Failed" is no value of x.t.state; it has open, done, failed`, ""}}},
		{name: "an enum that the lists do not cover", schema: "CREATE TYPE st AS ENUM ('open', 'done', 'paused'); ALTER TABLE t ALTER state TYPE st USING state::st", sweep: on(byState("state", done, policy.Texts("open"))),
			want: []finding{{Refused, "state", "guard.live", `"paused"`, ""}}},
		{name: "a domain over an enum", schema: "CREATE TYPE st AS ENUM ('open', 'done'); CREATE DOMAIN dst AS st; ALTER TABLE t ALTER state TYPE dst USING state::st", sweep: on(byState("state", policy.Texts("dome"), nil)), want: []finding{refuse("state", `"dome"`)}},
		{name: "a check", schema: "ALTER TABLE o ADD CHECK (status IN ('queued', 'running', 'done'))", sweep: on(byOwner()), want: []finding{{OK, "state", "guard.owner.terminal", "1 of its 3 values", ""}}},
		{name: "words that a check has not", schema: "ALTER TABLE o ADD CHECK (status IN ('queued', 'running', 'success', 'it''s done'))", sweep: on(byOwner(func(g *policy.OwnerGuard) {
			g.Terminal = policy.Texts("success", "completed", "terminated", "it's done")
		})),
			want: []finding{{Refused, "state", "guard.owner.terminal", `"completed" is no value of x.o.status`, ""}, {Refused, "state", "guard.owner.terminal", `"terminated"`, ""}}},
		{name: "a check that the lists do not cover", schema: "ALTER TABLE o ADD CHECK (status = ANY (ARRAY['queued', 'running', 'done']))", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Live = policy.Texts("queued") })),
			want: []finding{{Refused, "state", "guard.owner.live", `"running"`, ""}}},
		{name: "a check that lists nothing", schema: "ALTER TABLE o ADD CHECK (status <> 'x')", sweep: on(byOwner()), want: []finding{fine("state", "no constraint lists its values")}},
		{name: "a boolean state", schema: "ALTER TABLE o ALTER status TYPE bool USING true", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = []policy.Value{policy.Bool(true)} })), want: []finding{fine("state", "")}},
		{name: "a boolean that is no boolean", schema: "ALTER TABLE o ALTER status TYPE bool USING true", sweep: on(byOwner()), want: []finding{{Refused, "state", "guard.owner.terminal", `"done" is no value of column status (boolean)`, ""}}},
		{name: "a number as the state", schema: "ALTER TABLE o ALTER status TYPE smallint USING 0; ALTER TABLE o ADD CHECK (status BETWEEN 0 AND 3)", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = []policy.Value{policy.Int(2), policy.Int(3)} })), want: []finding{fine("state", "")}},
		{name: "a number that a check has not", schema: "ALTER TABLE o ALTER status TYPE smallint USING 0; ALTER TABLE o ADD CHECK (status IN (0, 1, 2))", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = []policy.Value{policy.Int(2), policy.Int(7)} })),
			want: []finding{{Refused, "state", "guard.owner.terminal", `"7" is no value`, ""}}},
		{name: "a range of numbers", schema: "ALTER TABLE o ALTER status TYPE int USING 0; ALTER TABLE o ADD CHECK (status BETWEEN 0 AND 3)", sweep: on(byOwner(func(g *policy.OwnerGuard) {
			g.Terminal, g.Live = []policy.Value{policy.Int(2)}, []policy.Value{policy.Int(0)}
		})),
			want: []finding{fine("state", "no constraint lists its values")}},
		{name: "a number beyond a range", schema: "ALTER TABLE o ALTER status TYPE int USING 0; ALTER TABLE o ADD CHECK (status BETWEEN 0 AND 3)", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = []policy.Value{policy.Int(2), policy.Int(7)} })),
			want: []finding{{Refused, "state", "guard.owner.terminal", `"7" is no value of x.o.status, by its CHECK ((status >= 0) AND (status <= 3))`, ""}}},
		{name: "a length", schema: "ALTER TABLE o ADD CHECK (length(status) <= 8)", sweep: on(byOwner()), want: []finding{fine("state", "no constraint lists its values")}},
		{name: "a pattern", schema: "ALTER TABLE o ADD CHECK (status LIKE 'd%')", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Live = policy.Texts("dormant") })), want: []finding{fine("state", "no constraint lists its values")}},
		{name: "a word against a pattern", schema: "ALTER TABLE o ADD CHECK (status LIKE 'd%')", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = policy.Texts("done", "failed") })), want: []finding{refuse("state", `"failed" is no value of x.o.status, by its CHECK`)}},
		{name: "a check of varchars", schema: "ALTER TABLE o ALTER status TYPE varchar(20); ALTER TABLE o ADD CHECK (status IN ('open', 'done')); ALTER TABLE o ADD CHECK (length(status) > 2)", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = policy.Texts("done", "failed") })),
			want: []finding{refuse("state", `"failed" is no value of x.o.status; it has done, open`)}},
		{name: "a check by or", schema: "ALTER TABLE o ADD CHECK (status = 'open' OR status = 'done')", sweep: on(byOwner()), want: []finding{fine("state", "1 of its 2 values")}},
		{name: "a check of one value", schema: "ALTER TABLE o ADD CHECK (status = 'done')", sweep: on(byOwner()), want: []finding{fine("state", "1 of its 1 values")}},
		{name: "a check of a quoted column", schema: `ALTER TABLE o RENAME status TO "St at"; ALTER TABLE o ADD CHECK ("St at" IN ('open', 'done'))`, sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Column = "St at" })), want: []finding{fine("state", "1 of its 2 values")}},
		{name: "a check that is not validated", schema: "ALTER TABLE o ADD CHECK (status IN ('open', 'finished')) NOT VALID", sweep: on(byOwner()), want: []finding{fine("state", "no constraint lists its values")}},
		{name: "negative numbers", schema: "ALTER TABLE o ALTER status TYPE int USING 0; ALTER TABLE o ADD CHECK (status IN (-1, 0, 1))", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = []policy.Value{policy.Int(-1)} })), want: []finding{fine("state", "1 of its 3 values")}},
		{name: "a number too large", schema: "ALTER TABLE o ALTER status TYPE smallint USING 0", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Terminal = []policy.Value{policy.Int(70000)} })), want: []finding{refuse("state", `"70000"`)}},
		{name: "a word that does not occur", schema: "INSERT INTO o VALUES (1, 'open'), (2, 'finished')", sweep: on(byOwner()), want: []finding{{Warning, "state", "guard.owner.terminal", `"done"`, ""}}},
		{name: "a word in neither list", schema: "INSERT INTO o VALUES (1, 'open'), (2, 'done'), (3, 'odd')", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Live = policy.Texts("open") })), want: []finding{{Warning, "state", "guard.owner.live", `"odd"`, ""}}},
		{name: "only a value of another type", sweep: on(matching(policy.Match{Column: "o_id", Values: done})), want: []finding{{Refused, "state", "only.o_id", `"done"`, ""}}},

		// The owner's key.
		{name: "no unique key", schema: "ALTER TABLE o DROP CONSTRAINT o_pkey; CREATE INDEX ON o (id)", sweep: on(byOwner()), want: []finding{{Refused, "column", "guard.owner.key", "no primary key or unique index", ""}}},
		{name: "a unique index will do", schema: "ALTER TABLE o DROP CONSTRAINT o_pkey; CREATE UNIQUE INDEX o_id ON o (id) INCLUDE (status)", sweep: on(byOwner()), want: []finding{fine("column", "o_id")}},
		{name: "a key by an expression", schema: "ALTER TABLE o DROP CONSTRAINT o_pkey; CREATE UNIQUE INDEX ON o (coalesce(id, 0))", sweep: on(byOwner()), want: []finding{refuse("column", "no primary key")}},
		{name: "a key of some rows", schema: "ALTER TABLE o DROP CONSTRAINT o_pkey; CREATE UNIQUE INDEX ON o (id) WHERE status = 'done'", sweep: on(byOwner()), want: []finding{refuse("column", "no primary key")}},
		{name: "a deferrable key", schema: "ALTER TABLE o DROP CONSTRAINT o_pkey; ALTER TABLE o ADD UNIQUE (id) DEFERRABLE", sweep: on(byOwner()), want: []finding{refuse("column", "no primary key")}},
		{name: "an invalid key", schema: "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'o_pkey'::regclass", sweep: on(byOwner()), want: []finding{refuse("column", "no primary key")}},
		{name: "half of a key", schema: "ALTER TABLE o DROP CONSTRAINT o_pkey; ALTER TABLE o ADD tenant text NOT NULL DEFAULT ''; ALTER TABLE o ADD PRIMARY KEY (tenant, id)", sweep: on(byOwner()), want: []finding{refuse("column", "no primary key")}},
		{name: "more than a key", sweep: on(byOwner(func(g *policy.OwnerGuard) { g.Key = append(g.Key, policy.KeyPair{Target: "note", Owner: "note"}) })), want: []finding{refuse("column", "(id, note) is no primary key")}},
		{name: "a key of another type", schema: "ALTER TABLE t ALTER o_id TYPE int", sweep: on(byOwner()), want: []finding{{Refused, "column", "guard.owner.key", "x.t.o_id is integer and x.o.id is bigint", ""}}},
		{name: "a key of another collation", schema: `ALTER TABLE o DROP CONSTRAINT o_pkey; ALTER TABLE o ALTER id TYPE text COLLATE "C"; ALTER TABLE o ADD PRIMARY KEY (id); ALTER TABLE t ALTER o_id TYPE text`, sweep: on(byOwner()),
			want: []finding{refuse("column", "one type and collation")}},

		// Indexes.
		{name: "no index", schema: "DROP INDEX t_at", sweep: on(), want: []finding{{Refused, "index", "", "no index leads with at", `CREATE INDEX CONCURRENTLY ON "x"."t" ("at", "id");`}}, heals: true},
		{name: "no index, by state", schema: "DROP INDEX t_at", sweep: on(byState("state", doneOrFailed, nil), unequal), want: []finding{{Refused, "index", "", "no index leads with state, at", `("state", "at", "id")`}}, heals: true},
		{name: "no index, by only", schema: "DROP INDEX t_at", sweep: on(matching(kind(done...))), want: []finding{{Refused, "index", "", "no index leads with kind, at", `("kind", "at", "id")`}}, heals: true},
		{name: "no index, and no key to end it with", schema: "DROP INDEX t_at; ALTER TABLE t DROP CONSTRAINT t_pkey", sweep: on(), want: []finding{{Refused, "index", "", "no index leads with at", `ON "x"."t" ("at");`}}, heals: true},
		{name: "an invalid index", schema: "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_at'::regclass", sweep: on(), want: []finding{{Refused, "index", "", "t_at is not valid", "CREATE INDEX"}}},
		{name: "an invalid index, named", schema: "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_at'::regclass", sweep: on(named("t_at")), want: []finding{{Refused, "index", "index", "t_at is not valid", ""}}},
		{name: "the age second", schema: "DROP INDEX t_at; CREATE INDEX t_wrong ON t (o_id, at)", sweep: on(), want: []finding{refuse("index", "t_wrong leads with (o_id, at), not with at")}},
		{name: "the age second, named", schema: "CREATE INDEX t_wrong ON t (o_id, at)", sweep: on(named("t_wrong")), want: []finding{{Refused, "index", "index", "t_wrong leads with (o_id, at), not with at", ""}}},
		{name: "no such index", sweep: on(named("t_att")), want: []finding{{Refused, "index", "index", `x.t has no index "t_att"`, ""}}},
		{name: "an index of another table", schema: "CREATE INDEX o_note ON o (note)", sweep: on(named("o_note")), want: []finding{refuse("index", `x.t has no index "o_note"`)}},
		{name: "an expression on the age", schema: "DROP INDEX t_at; CREATE INDEX t_expr ON t ((at AT TIME ZONE 'UTC'))", sweep: on(named("t_expr")), want: []finding{{Refused, "index", "index", "t_expr leads with", ""}}},
		{name: "a hash index", schema: "DROP INDEX t_at; CREATE INDEX t_hash ON t USING hash (at)", sweep: on(), want: []finding{refuse("index", "t_hash is no btree")}},
		{name: "a BRIN index", schema: "DROP INDEX t_at; CREATE INDEX t_brin ON t USING brin (at)", sweep: on(), want: []finding{refuse("index", "t_brin is no btree")}},
		{name: "an index with the age included", schema: "DROP INDEX t_at; CREATE INDEX t_inc ON t (id) INCLUDE (at)", sweep: on(), want: []finding{refuse("index", "no index leads with at")}},
		{name: "an index that goes down", schema: "DROP INDEX t_at; CREATE INDEX t_down ON t (at DESC, id DESC)", sweep: on(), want: []finding{fine("ties", "t_down")}, index: "t_down"},
		{name: "an index of both directions", schema: "DROP INDEX t_at; CREATE INDEX t_mixed ON t (at DESC, id)", sweep: on(), want: []finding{fine("index", "t_mixed")}, index: "t_mixed"},
		{name: "an index with more included", schema: "DROP INDEX t_at; CREATE INDEX t_inc ON t (at) INCLUDE (id)", sweep: on(), index: "t_inc"},
		{name: "a partial index that follows", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE at IS NOT NULL", sweep: on(), index: "t_part"},
		{name: "a partial index that follows from only", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (kind, at, id) WHERE kind = 'k'", sweep: on(matching(kind(policy.Text("k")))), index: "t_part"},
		{name: "a partial index that does not follow", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE kind = 'k'", sweep: on(), want: []finding{refuse("index", "t_part is partial (where (kind = 'k'::text)), which does not follow")}, heals: true},
		{name: "partial indexes by state", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (state, at, id) WHERE state IN ('done', 'failed')", sweep: on(byState("state", doneOrFailed, nil)), index: "t_part"},
		{name: "a partial index by one of two states", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (state, at, id) WHERE state = 'done'", sweep: on(byState("state", doneOrFailed, nil)), want: []finding{refuse("index", "t_part is partial")}},
		{name: "a partial index that holds more states", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE state <> 'open'", sweep: on(byState("state", done, nil)), want: []finding{refuse("index", "t_part is partial (where (state <> 'open'::text)), which does not follow")}, heals: true},
		{name: "a partial index that holds just those states", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE state IN ('failed', 'done')", sweep: on(byState("state", doneOrFailed, nil)), index: "t_part"},
		{name: "a partial index that holds one of them", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE state IN ('failed')", sweep: on(byState("state", doneOrFailed, nil)), want: []finding{refuse("index", "t_part is partial")}, heals: true},
		{name: "a partial index that holds more than only", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE kind IS NOT NULL", sweep: on(matching(kind(policy.Text("k")))), want: []finding{refuse("index", "t_part is partial")}, heals: true},
		{name: "a partial index of nulls", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE kind IS NULL", sweep: on(matching(kind(policy.Null))), index: "t_part"},
		{name: "a partial index of what is not null", schema: "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE kind IS NOT NULL", sweep: on(matching(policy.Match{Column: "kind", Values: []policy.Value{policy.Null}, Not: true})), index: "t_part"},
		{name: "the one that orders equal ages", schema: "CREATE INDEX a_at ON t (at); CREATE INDEX z_at ON t (at, note)", sweep: on(), index: "t_at"},
		{name: "the whole one", schema: "CREATE INDEX a_part ON t (at, id) WHERE at IS NOT NULL", sweep: on(), index: "t_at"},
		{name: "by state where windows differ", schema: "CREATE INDEX t_state ON t (state, at, id)", sweep: on(byState("state", doneOrFailed, nil), unequal), index: "t_state"},
		{name: "by age where they do not", schema: "CREATE INDEX a_state ON t (state, at, id)", sweep: on(byState("state", doneOrFailed, nil)), index: "t_at"},
		{name: "by age although windows differ", sweep: on(byState("state", doneOrFailed, nil), unequal), want: []finding{{Warning, "index", "window", "windows differ by state", `("state", "at", "id")`}}, index: "t_at", heals: true},
		{name: "many rows of one age", schema: "DROP INDEX t_at; CREATE INDEX t_age ON t (at); INSERT INTO t SELECT g, 'done', 'k', CASE WHEN g < 6000 THEN '2020-01-01' ELSE now() END FROM generate_series(1, 10000) g; ANALYZE t", sweep: on(),
			want: []finding{{Warning, "ties", "", "rows share one age", `("at", "id")`}}, heals: true},
		{name: "few rows of one age", schema: "DROP INDEX t_at; CREATE INDEX t_age ON t (at); INSERT INTO t SELECT g, 'done', 'k', CASE WHEN g < 4000 THEN '2020-01-01' ELSE now() + g * interval '1 second' END FROM generate_series(1, 10000) g; ANALYZE t", sweep: on()},

		// Foreign keys that point here.
		{name: "a key with an index", schema: "CREATE TABLE c (t_id bigint REFERENCES t); CREATE INDEX ON c (t_id); INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 20000); ANALYZE c", sweep: on(),
			want: []finding{fine("foreign key", "c_t_id_fkey of x.c: a row that is still referenced is stuck")}},
		{name: "a small table without an index", schema: "CREATE TABLE c (t_id bigint REFERENCES t); INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 100); ANALYZE c", sweep: on(),
			want: []finding{{Warning, "foreign key", "", "c_t_id_fkey of x.c (t_id) has no index", `CREATE INDEX CONCURRENTLY ON "x"."c" ("t_id");`}}, heals: true},
		{name: "a large table without an index", schema: "CREATE TABLE c (t_id bigint REFERENCES t); INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 10000); ANALYZE c", sweep: on(),
			want: []finding{{Refused, "foreign key", "", "c_t_id_fkey of x.c (t_id) has no index", `CREATE INDEX CONCURRENTLY ON "x"."c" ("t_id");`}}, heals: true},
		{name: "a small table, never analysed", schema: "CREATE TABLE c (t_id bigint REFERENCES t, pad text)", sweep: on(), want: []finding{warn("foreign key", "has no index")}},
		{name: "a large table, never analysed", schema: "CREATE TABLE c (t_id bigint REFERENCES t, pad text); ALTER TABLE c ALTER pad SET STORAGE PLAIN; INSERT INTO c SELECT NULL, repeat('x', 4000) FROM generate_series(1, 3000)", sweep: on(), want: []finding{refuse("foreign key", "has no index")}},
		{name: "a large partitioned table without an index", schema: `CREATE TABLE c (t_id bigint REFERENCES t) PARTITION BY RANGE (t_id); CREATE TABLE c1 PARTITION OF c FOR VALUES FROM (0) TO (2); CREATE TABLE c2 PARTITION OF c DEFAULT;
INSERT INTO t (id, at) VALUES (1, now()), (2, now()); INSERT INTO c SELECT 1 + g % 2 FROM generate_series(1, 12000) g; ANALYZE c1; ANALYZE c2`, sweep: on(), want: []finding{{Refused, "foreign key", "", "x.c (t_id) has no index", `ON "x"."c" ("t_id")`}}},
		{name: "a partial index that leaves out nulls", schema: "CREATE TABLE c (t_id bigint REFERENCES t); CREATE INDEX ON c (t_id) WHERE t_id IS NOT NULL; INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 20000); ANALYZE c", sweep: on(),
			want: []finding{fine("foreign key", "c_t_id_fkey")}},
		{name: "a partial index that leaves out more", schema: "CREATE TABLE c (t_id bigint REFERENCES t, live bool); CREATE INDEX ON c (t_id) WHERE live; INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 20000); ANALYZE c", sweep: on(),
			want: []finding{refuse("foreign key", "has no index")}},
		{name: "a hash index on the key", schema: "CREATE TABLE c (t_id bigint REFERENCES t); CREATE INDEX ON c USING hash (t_id); INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 20000); ANALYZE c", sweep: on(),
			want: []finding{fine("foreign key", "c_t_id_fkey")}},
		{name: "an index that cannot serve the key", schema: "CREATE TABLE c (t_id bigint REFERENCES t); CREATE INDEX ON c USING brin (t_id); INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT 1 FROM generate_series(1, 20000); ANALYZE c", sweep: on(),
			want: []finding{refuse("foreign key", "has no index")}},
		{name: "a key of two columns in the other order", schema: "ALTER TABLE t ADD UNIQUE (id, at); CREATE TABLE c (t_id bigint, t_at timestamptz, FOREIGN KEY (t_id, t_at) REFERENCES t (id, at)); CREATE INDEX ON c (t_at, t_id); INSERT INTO c SELECT FROM generate_series(1, 20000); ANALYZE c", sweep: on(),
			want: []finding{fine("foreign key", "c_t_id_t_at_fkey")}},
		{name: "a cascade", schema: "CREATE TABLE c (t_id bigint REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id)", sweep: on(),
			want: []finding{{Refused, "cascade", "cascades", "rows of x.c go with their row of x.t by c_t_id_fkey (ON DELETE CASCADE), and the table is in neither", "name x.c in children"}}},
		{name: "a key set null", schema: "CREATE TABLE c (t_id bigint REFERENCES t ON DELETE SET NULL); CREATE INDEX ON c (t_id)", sweep: on(), want: []finding{warn("cascade", "ON DELETE SET NULL")}},
		{name: "a key set default", schema: "CREATE TABLE c (t_id bigint DEFAULT 1 REFERENCES t ON DELETE SET DEFAULT); CREATE INDEX ON c (t_id)", sweep: on(), want: []finding{warn("cascade", "ON DELETE SET DEFAULT")}},
		{name: "a deferrable key", schema: "CREATE TABLE c (t_id bigint REFERENCES t DEFERRABLE INITIALLY DEFERRED); CREATE INDEX ON c (t_id)", sweep: on(), want: []finding{fine("foreign key", "1 deferrable keys")}},
		{name: "a cascade further down", schema: "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id); CREATE TABLE d (c_id bigint REFERENCES c); INSERT INTO d SELECT NULL FROM generate_series(1, 20000); ANALYZE d", sweep: on(accepting("c")),
			want: []finding{{Refused, "foreign key", "", "each row removed from x.c scans it", `ON "x"."d" ("c_id")`}}, heals: true},

		// What a delete sets off besides.
		{name: "a trigger", schema: "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; CREATE TRIGGER audit AFTER DELETE ON t FOR EACH ROW WHEN (current_setting('app.sweeping', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION f()", sweep: on(),
			want: []finding{{Warning, "trigger", "set", "audit fires on DELETE; its condition reads app.sweeping, which set can give", ""}}},
		{name: "triggers that do not fire", schema: "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; CREATE TRIGGER other AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); CREATE TRIGGER off AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION f(); ALTER TABLE t DISABLE TRIGGER off", sweep: on()},
		{name: "a rule", schema: "CREATE RULE keep AS ON DELETE TO t DO INSTEAD NOTHING", sweep: on(), want: []finding{refuse("trigger", "rule keep rewrites DELETE on x.t")}},

		// Replication.
		{name: "published without a key", schema: "ALTER TABLE t DROP CONSTRAINT t_pkey; CREATE PUBLICATION inspected FOR TABLE t", sweep: on(), want: []finding{{Refused, "replica identity", "", "publication inspected", `ALTER TABLE "x"."t" REPLICA IDENTITY FULL;`}}, heals: true},
		{name: "published with a key", schema: "CREATE PUBLICATION inspected FOR TABLE t", sweep: on()},
		{name: "published with no identity on purpose", schema: "ALTER TABLE t REPLICA IDENTITY NOTHING; CREATE PUBLICATION inspected FOR TABLE t", sweep: on(), want: []finding{refuse("replica identity", "")}, heals: true},
		{name: "published for inserts alone", schema: "ALTER TABLE t DROP CONSTRAINT t_pkey; CREATE PUBLICATION inspected FOR TABLE t WITH (publish = 'insert')", sweep: on()},

		// Settings.
		{name: "a parameter that is not there", sweep: on(func(s *policy.Sweep) { s.Set = []policy.Setting{{Name: "no_such_parameter", Value: "1"}} }), want: []finding{{Refused, "server", "set.no_such_parameter", "cannot be set", ""}}},
		{name: "a parameter that needs a restart", sweep: on(func(s *policy.Sweep) { s.Set = []policy.Setting{{Name: "max_connections", Value: "1"}} }), want: []finding{refuse("server", "max_connections cannot be set")}},
		{name: "a value that is none", sweep: on(func(s *policy.Sweep) { s.Set = []policy.Setting{{Name: "vacuum_cost_delay", Value: "soon"}} }), want: []finding{refuse("server", "vacuum_cost_delay cannot be set")}},
		{name: "parameters that can be set", sweep: on(func(s *policy.Sweep) {
			s.Set = []policy.Setting{{Name: "app.tenant", Value: `o'hara\`}, {Name: "application_name", Value: "sweep"}}
		})},
	}
	for typ, why := range map[string]string{"timestamp": "as: wall is planned", "date": "ages that are no timestamptz are planned", "bigint": "are planned", "numeric": "are planned", "double precision": "are planned",
		"uuid": "are planned", "text": "which is no instant", "timetz": "which is no instant", "timestamptz[]": "which is no instant"} {
		cs = append(cs, inspected{name: "an age of " + typ, schema: "ALTER TABLE t ADD odd " + typ + "; CREATE INDEX ON t (odd)", sweep: on(age("odd")), want: []finding{{Refused, "age", "age", why, ""}}})
	}
	return cs
}

// TestInspect holds what the inspection says of each catalog, and that a case without a finding has none.
func TestInspect(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t)
	for _, c := range slices.Concat(catalogs(), rowCatalogs(), expiresCatalogs()) {
		t.Run(c.name, func(t *testing.T) {
			db.Exec(t, "DROP SCHEMA IF EXISTS x CASCADE; DROP PUBLICATION IF EXISTS inspected; DROP FOREIGN DATA WRAPPER IF EXISTS elsewhere CASCADE; CREATE SCHEMA x; SET search_path = x;"+inspectedTables+c.schema)
			i, err := Inspect(t.Context(), Conn(conn), c.sweep)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range c.want {
				if _, ok := w.among(i.Checks); !ok {
					t.Errorf("no %+v among\n%s", w, list(i.Checks))
				}
			}
			refusals := slices.DeleteFunc(slices.Clone(c.want), func(f finding) bool { return f.result != Refused })
			if (len(i.Refused()) > 0) != (len(refusals) > 0) || len(refusals) > 0 && len(i.Refused()) != len(refusals) {
				t.Errorf("%d checks refuse; want %d:\n%s", len(i.Refused()), len(refusals), list(i.Checks))
			}
			if len(c.want) == 0 {
				for _, ch := range i.Checks {
					if ch.Result != OK {
						t.Errorf("%s: %s (%s)", ch.Result, ch.Detail, ch.Name)
					}
				}
			}
			if c.index != "" && i.Index != c.index {
				t.Errorf("the index is %q; want %s", i.Index, c.index)
			}
			if _, err := i.Arms(Conn(conn), Options{}); (err == nil) != (len(refusals) == 0) {
				t.Errorf("its arms: %v", err)
			}
			if !c.heals {
				return
			}
			sick, _ := c.want[0].among(i.Checks)
			db.Exec(t, sick.Fix)
			if i, err = Inspect(t.Context(), Conn(conn), c.sweep); err != nil {
				t.Fatal(err)
			}
			if still, ok := c.want[0].among(i.Checks); ok || len(i.Refused()) > 0 {
				t.Errorf("after %q there is still %+v among\n%s", sick.Fix, still, list(i.Checks))
			}
		})
	}
}

func list(cs []Check) string {
	var b strings.Builder
	for _, c := range cs {
		fmt.Fprintf(&b, "  %s %s [%s]: %s; fix: %s\n", c.Result, c.Name, c.Key, c.Detail, c.Fix)
	}
	return b.String()
}

// TestCascadeBack holds that removed rows are counted by RETURNING where a cascade comes back to the target, over however
// many tables, and that the count is right.
func TestCascadeBack(t *testing.T) {
	for name, schema := range map[string]string{
		"to itself":          "ALTER TABLE t ADD up bigint REFERENCES t ON DELETE CASCADE; CREATE INDEX ON t (up); INSERT INTO t (id, at, up) VALUES (1, '2020-01-01', NULL), (2, now(), 1), (3, now(), 2)",
		"over another table": "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id); ALTER TABLE t ADD c_id bigint REFERENCES c ON DELETE CASCADE; CREATE INDEX ON t (c_id); INSERT INTO t (id, at) VALUES (1, '2020-01-01'); INSERT INTO c VALUES (1, 1); INSERT INTO t (id, at, c_id) VALUES (2, now(), 1)",
		"over two tables": `CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id); CREATE TABLE d (id bigint PRIMARY KEY, c_id bigint REFERENCES c ON DELETE CASCADE); CREATE INDEX ON d (c_id);
ALTER TABLE t ADD d_id bigint REFERENCES d ON DELETE CASCADE; CREATE INDEX ON t (d_id); INSERT INTO t (id, at) VALUES (1, '2020-01-01'); INSERT INTO c VALUES (1, 1); INSERT INTO d VALUES (1, 1); INSERT INTO t (id, at, d_id) VALUES (2, now(), 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.New(t)
			db.Exec(t, "CREATE SCHEMA x; SET search_path = x;"+inspectedTables+schema)
			arms, err := Open(t.Context(), Conn(db.Conn(t)), on(accepting("t", "c", "d")), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if arms[0].exact() {
				t.Error("it is counted by the statistics")
			}
			res, err := arms[0].Prune(t.Context(), pruner.Batch{Cutoff: policy.CutoffAt(time.Now().AddDate(0, 0, -1)), Limit: 10})
			if err != nil || res.Removed != 1 || res.Examined != 1 {
				t.Errorf("it counted %+v with the error %v; want one row removed of one", res, err)
			}
			if left := db.Int(t, "SELECT count(*) FROM x.t"); left != 0 {
				t.Errorf("%d rows are left; the cascade takes all", left)
			}
		})
	}
}

// TestRights gives a role nothing, then what the inspection asks for, once, and has it sweep.
func TestRights(t *testing.T) {
	db := pgtest.New(t)
	pgtest.Role(t, "inspect_sweeper", "login")
	role := func(c *pgx.ConnConfig) { c.User = "inspect_sweeper" }
	for name, c := range map[string]struct {
		sweep  policy.Sweep
		schema string
		asked  []string // every statement that is asked for
	}{
		"unguarded": {on(), "", []string{`GRANT USAGE ON SCHEMA "x" TO "inspect_sweeper";`, `GRANT SELECT ON "x"."t" TO "inspect_sweeper";`, `GRANT DELETE ON "x"."t" TO "inspect_sweeper";`}},
		"by owner": {on(byOwner()), "", []string{`GRANT USAGE ON SCHEMA "x" TO "inspect_sweeper";`, `GRANT SELECT ON "x"."t" TO "inspect_sweeper";`, `GRANT DELETE ON "x"."t" TO "inspect_sweeper";`,
			`GRANT SELECT ("id", "status") ON "x"."o" TO "inspect_sweeper";`, `GRANT UPDATE ("status") ON "x"."o" TO "inspect_sweeper";`}},
		"by owner, final": {on(byOwner(func(g *policy.OwnerGuard) { g.Final = true })), "", []string{`GRANT USAGE ON SCHEMA "x" TO "inspect_sweeper";`, `GRANT SELECT ON "x"."t" TO "inspect_sweeper";`,
			`GRANT DELETE ON "x"."t" TO "inspect_sweeper";`, `GRANT SELECT ("id", "status") ON "x"."o" TO "inspect_sweeper";`}},
		"some of them": {on(byOwner()), `GRANT USAGE ON SCHEMA x TO inspect_sweeper; GRANT DELETE ON t TO inspect_sweeper; GRANT SELECT (id, at) ON t TO inspect_sweeper; GRANT SELECT (id) ON o TO inspect_sweeper; GRANT UPDATE (note) ON o TO inspect_sweeper`,
			[]string{`GRANT SELECT ON "x"."t" TO "inspect_sweeper";`, `GRANT SELECT ("status") ON "x"."o" TO "inspect_sweeper";`}},
		"a partial index": {on(), "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE at IS NOT NULL",
			[]string{`GRANT USAGE ON SCHEMA "x" TO "inspect_sweeper";`, `GRANT SELECT ON "x"."t" TO "inspect_sweeper";`, `GRANT DELETE ON "x"."t" TO "inspect_sweeper";`}},
	} {
		t.Run(name, func(t *testing.T) {
			db.Exec(t, "DROP SCHEMA IF EXISTS x CASCADE; CREATE SCHEMA x; SET search_path = x;"+inspectedTables+"INSERT INTO o VALUES (1, 'done'); INSERT INTO t (id, at, o_id) VALUES (1, '2020-01-01', 1), (2, '2020-01-01', 1);"+c.schema)
			conn := db.Conn(t, role)
			i, err := Inspect(t.Context(), Conn(conn), c.sweep)
			if err != nil {
				t.Fatal(err)
			}
			missing, ok := refuse("rights", "missing: ").among(i.Checks)
			if !ok {
				t.Fatalf("no right is missing:\n%s", list(i.Checks))
			}
			if want := strings.Join(c.asked, " "); missing.Fix != want {
				t.Errorf("it asks for %s\nwant %s", missing.Fix, want)
			}
			db.Exec(t, missing.Fix)
			if i, err = Inspect(t.Context(), Conn(conn), c.sweep); err != nil {
				t.Fatal(err)
			}
			if len(i.Refused()) > 0 {
				t.Fatalf("with all that was asked for it is refused:\n%s", list(i.Checks))
			}
			lock := warn("rights", "a locked row cannot be skipped")
			w, ok := lock.among(i.Checks)
			if !ok {
				t.Fatalf("no warning that rows cannot be locked:\n%s", list(i.Checks))
			}
			arms, err := i.Arms(Conn(conn), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []struct {
				limit int
				mode  pruner.Mode
			}{{1, pruner.Remove}, {1, pruner.SkipLocked}} {
				if at.mode == pruner.SkipLocked {
					db.Exec(t, w.Fix)
					if i, err = Inspect(t.Context(), Conn(conn), c.sweep); err != nil {
						t.Fatal(err)
					}
					if _, still := lock.among(i.Checks); still {
						t.Errorf("after %q it still warns:\n%s", w.Fix, list(i.Checks))
					}
				}
				res, err := arms[0].Prune(t.Context(), pruner.Batch{Cutoff: policy.CutoffAt(time.Now().AddDate(0, 0, -1)), Limit: at.limit, Mode: at.mode})
				if err != nil {
					t.Fatalf("with all that was asked for the batch fails (%s): %v", at.mode, err)
				}
				for !res.End {
					if res, err = arms[0].Prune(t.Context(), pruner.Batch{Cutoff: policy.CutoffAt(time.Now().AddDate(0, 0, -1)), Limit: at.limit, Mode: at.mode, After: res.Next}); err != nil {
						t.Fatal(err)
					}
				}
				db.Exec(t, "INSERT INTO x.t (id, at, o_id) VALUES (1, '2020-01-01', 1), (2, '2020-01-01', 1)")
			}
			if _, err := arms[0].Plan(t.Context(), policy.CutoffAt(time.Now()), 10); err != nil {
				t.Errorf("with all that was asked for the plan fails: %v", err)
			}
			if _, err := arms[0].HeldBy(t.Context(), policy.CutoffAt(time.Now()), 10); err != nil {
				t.Errorf("with all that was asked for the held rows cannot be told: %v", err)
			}
			if _, err := arms[0].Undated(t.Context(), 10); err != nil {
				t.Errorf("with all that was asked for the undated rows cannot be counted: %v", err)
			}
		})
	}
}

// TestRowSecurity refuses what a policy would hide, unless the sweep says that it wants to see no more.
func TestRowSecurity(t *testing.T) {
	db := pgtest.New(t)
	pgtest.Role(t, "inspect_sweeper", "login")
	pgtest.Role(t, "inspect_bypasser", "login bypassrls")
	const grants = `GRANT USAGE ON SCHEMA x TO inspect_sweeper, inspect_bypasser; GRANT ALL ON t, o TO inspect_sweeper, inspect_bypasser;`
	const target = "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON t USING (note = current_setting('app.tenant', true));"
	const owner = "ALTER TABLE o ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON o USING (true);"
	chosen := func(s *policy.Sweep) {
		s.Set = []policy.Setting{{Name: "row_security", Value: "on"}, {Name: "app.tenant", Value: "a"}}
	}
	rows := "INSERT INTO o VALUES (1, 'done'); INSERT INTO t (id, at, o_id, note) SELECT g, '2020-01-01', 1, CASE WHEN g % 3 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 30) g;"
	for name, c := range map[string]struct {
		schema, role string
		sweep        policy.Sweep
		want         *finding
		removed      int
	}{
		"none":                          {"", "inspect_sweeper", on(byOwner()), nil, 30},
		"on the target":                 {target, "inspect_sweeper", on(byOwner()), &finding{Refused, "rls", "", "rows of x.t", "BYPASSRLS"}, 0},
		"on the owner":                  {owner, "inspect_sweeper", on(byOwner()), &finding{Refused, "rls", "", "rows of x.o", "BYPASSRLS"}, 0},
		"on the owner, that is not one": {owner, "inspect_sweeper", on(), nil, 30},
		"bypassed":                      {target + owner, "inspect_bypasser", on(byOwner()), nil, 30},
		"chosen":                        {target, "inspect_sweeper", on(byOwner(), chosen), &finding{Warning, "rls", "set", "row security filters x.t", ""}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			db.Exec(t, "DROP SCHEMA IF EXISTS x CASCADE; CREATE SCHEMA x; SET search_path = x;"+inspectedTables+grants+rows+c.schema)
			conn := db.Conn(t, func(cc *pgx.ConnConfig) { cc.User = c.role })
			i, err := Inspect(t.Context(), Conn(conn), c.sweep)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				if _, bad := refuse("rls", "").among(i.Checks); bad {
					t.Errorf("it is refused:\n%s", list(i.Checks))
				}
			} else if _, ok := c.want.among(i.Checks); !ok {
				t.Errorf("no %+v among\n%s", *c.want, list(i.Checks))
			}
			arms, err := i.Arms(Conn(conn), Options{})
			if c.removed == 0 {
				var refused *RefusedError
				if !errors.As(err, &refused) {
					t.Errorf("the error is %v; want a RefusedError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			res, err := arms[0].Prune(t.Context(), pruner.Batch{Cutoff: policy.CutoffAt(time.Now()), Limit: 100})
			if err != nil || res.Removed != c.removed {
				t.Errorf("it removed %d rows with the error %v; want %d", res.Removed, err, c.removed)
			}
		})
	}
}

// TestQuotedNames sweeps tables whose names need quotes everywhere.
func TestQuotedNames(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `
CREATE SCHEMA "Audit-Log";
CREATE TYPE "Audit-Log"."Status" AS ENUM ('Done', 'Open', 'It''s \ over');
CREATE TABLE "Audit-Log"."Run ""Events""" ("Id" bigint PRIMARY KEY, "order" "Audit-Log"."Status", "createdAt" timestamptz NOT NULL, "My Owner" bigint);
CREATE INDEX "Idx.Created At" ON "Audit-Log"."Run ""Events""" ("createdAt", "Id");
CREATE TABLE "Audit-Log"."The ""Owners""" ("Group" bigint PRIMARY KEY, "Select" text NOT NULL);
INSERT INTO "Audit-Log"."The ""Owners""" VALUES (1, 'done');
INSERT INTO "Audit-Log"."Run ""Events""" SELECT g, CASE WHEN g <= 6 THEN 'Done' ELSE 'Open' END::"Audit-Log"."Status", now() - interval '90 days', 1 FROM generate_series(1, 8) g;
INSERT INTO "Audit-Log"."Run ""Events""" VALUES (9, 'It''s \ over', now() - interval '80 days', 1);
CREATE TABLE "select" (id int PRIMARY KEY, "group" text, "user" timestamptz NOT NULL);
CREATE INDEX select_age ON "select" ("user");
INSERT INTO "select" VALUES (1, 'done', now() - interval '90 days'), (2, 'open', now() - interval '90 days');`)
	events := policy.Sweep{Name: "events", Table: policy.Name{Schema: "Audit-Log", Table: `Run "Events"`}, Age: "createdAt", Index: "Idx.Created At", Window: policy.MustWindow(30 * 24 * time.Hour),
		Guard: policy.Guard{State: &policy.StateGuard{Column: "order", Terminal: policy.Texts("Done", `It's \ over`)}, Owner: &policy.OwnerGuard{Table: policy.Name{Schema: "Audit-Log", Table: `The "Owners"`},
			Key: []policy.KeyPair{{Target: "My Owner", Owner: "Group"}}, Column: "Select", Terminal: policy.Texts("done")}}}
	words := policy.Sweep{Name: "words", Table: policy.Name{Schema: "public", Table: "select"}, Age: "user", Window: policy.MustWindow(30 * 24 * time.Hour), Guard: policy.Guard{State: &policy.StateGuard{Column: "group", Terminal: policy.Texts("done")}}}
	for _, c := range []struct {
		sweep   policy.Sweep
		removed int
		left    string
	}{{events, 7, `SELECT count(*) FROM "Audit-Log"."Run ""Events"""`}, {words, 1, `SELECT count(*) FROM "select"`}} {
		for _, m := range execModes {
			t.Run(c.sweep.Name+" "+m.String(), func(t *testing.T) {
				arms, err := Open(t.Context(), Conn(db.Conn(t, mode(m))), c.sweep, Options{OneSweeper: true})
				if err != nil {
					t.Fatal(err)
				}
				cutoff := c.sweep.Window.Cutoff(time.Now())
				if p, err := arms[0].Plan(t.Context(), cutoff, 100); err != nil || p.Due != c.removed {
					t.Errorf("the plan is %+v with the error %v; want %d due", p, err, c.removed)
				}
				if _, err := arms[0].HeldBy(t.Context(), cutoff, 100); err != nil {
					t.Error(err)
				}
				if _, err := arms[0].Explain(t.Context(), cutoff, 100); err != nil {
					t.Error(err)
				}
				removed := 0
				for b := (pruner.Batch{Cutoff: cutoff, Limit: 3}); ; {
					res, err := arms[0].Prune(t.Context(), b)
					if err != nil {
						t.Fatal(err)
					}
					if removed += res.Removed; res.End {
						break
					}
					b.After = res.Next
				}
				if removed != c.removed {
					t.Errorf("%d rows were removed; want %d", removed, c.removed)
				}
				if left := db.Int(t, c.left); left == 0 {
					t.Error("nothing is left")
				}
			})
			db.Exec(t, `INSERT INTO "Audit-Log"."Run ""Events""" SELECT g, 'Done', now() - interval '90 days', 1 FROM generate_series(1, 6) g ON CONFLICT DO NOTHING; INSERT INTO "Audit-Log"."Run ""Events""" VALUES (9, 'It''s \ over', now() - interval '80 days', 1) ON CONFLICT DO NOTHING;
INSERT INTO "select" VALUES (1, 'done', now() - interval '90 days') ON CONFLICT DO NOTHING`)
		}
	}
}

// sent writes down every statement of a connection.
type sent struct{ sql []string }

func (s *sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.sql = append(s.sql, strings.TrimSpace(d.SQL))
	return ctx
}
func (*sent) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestInspectOnlyReads holds that an inspection is one read-only transaction that ends in a rollback, and that it changes
// no setting of its session.
func TestInspectOnlyReads(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE SCHEMA x; SET search_path = x;"+inspectedTables+"CREATE INDEX ON t (at) WHERE at IS NOT NULL; ALTER TABLE o ADD CHECK (status IN ('open', 'done'));"+
		ownIndexed+"ALTER TABLE t ADD until timestamptz GENERATED ALWAYS AS (at) STORED;"+strings.Replace(cTable, "PRIMARY KEY", "", 1)+"CREATE INDEX ON c (t_id) WHERE status NOT IN ('done', 'dead')")
	tracer := &sent{}
	conn := db.Conn(t, func(c *pgx.ConnConfig) { c.Tracer = tracer })
	settings := func() string {
		return textOf(t, conn, "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings")
	}
	before := settings()
	tracer.sql = nil
	s := on(byOwner())
	s.Set = []policy.Setting{{Name: "application_name", Value: "other"}}
	if _, err := Inspect(t.Context(), Conn(conn), s); err != nil {
		t.Fatal(err)
	}
	more := len(tracer.sql)
	if i, err := Inspect(t.Context(), Conn(conn), on(owing(), taking(), owns())); err != nil || i.Index == "" {
		t.Fatal(i, err)
	}
	if !slices.ContainsFunc(tracer.sql[more:], func(sql string) bool { return strings.Contains(sql, "VERBOSE") }) {
		t.Error("the sum of age and own window was not asked for")
	}
	if len(tracer.sql) < 10 || !strings.Contains(tracer.sql[0], "read only") || tracer.sql[len(tracer.sql)-1] != "rollback" {
		t.Errorf("it sent %q", tracer.sql)
	}
	reads := regexp.MustCompile(`(?i)^(begin|rollback|savepoint|release savepoint|rollback to savepoint|select|explain \((verbose, )?format json\) select|with recursive)\b`)
	for _, sql := range tracer.sql {
		if !reads.MatchString(sql) || regexp.MustCompile(`(?i)\b(insert|update|delete|nextval|lock table)\b`).MatchString(regexp.MustCompile(`'[^']*'`).ReplaceAllString(sql, "")) {
			t.Errorf("it sent %s", sql)
		}
	}
	if after := settings(); after != before {
		t.Errorf("the session's settings were\n%s\nand are\n%s", before, after)
	}
	// What may not write may inspect.
	mustExec(t, conn, "SET default_transaction_read_only = on")
	if _, err := Inspect(t.Context(), Conn(conn), s); err != nil {
		t.Error(err)
	}
}

func textOf(t testing.TB, c *pgx.Conn, sql string) (s string) {
	t.Helper()
	if err := c.QueryRow(context.Background(), sql).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInspectDoesNotWait holds that an inspection gives up on a table that is locked as a whole after the lock timeout.
func TestInspectDoesNotWait(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE SCHEMA x; SET search_path = x;"+inspectedTables+"CREATE INDEX ON t (at) WHERE at IS NOT NULL; CREATE TABLE c (t_id bigint REFERENCES t)")
	for _, table := range []string{"t", "o", "c"} {
		t.Run(table, func(t *testing.T) {
			other := db.Conn(t)
			mustExec(t, other, "BEGIN; LOCK TABLE x."+table+" IN ACCESS EXCLUSIVE MODE")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := Inspect(ctx, Conn(db.Conn(t)), on(byOwner()))
			var pg *pgconn.PgError
			if err != nil && (!errors.As(err, &pg) || pg.Code != codeLockNotAvailable) {
				t.Errorf("with %s locked the error is %v; want none, or that it cannot be locked in time", table, err)
			}
			t.Logf("with %s locked: %v", table, err)
		})
	}
}
