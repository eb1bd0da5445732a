package postgres

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
)

// owns gives the rows a window of their own, in seconds unless said otherwise.
func owns(change ...func(*policy.RowWindow)) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		s.Own = &policy.RowWindow{Column: "own", Unit: time.Second}
		for _, c := range change {
			c(s.Own)
		}
	}
}

func never(s *policy.Sweep) { s.Window = policy.Never }

func holds(column string) func(*policy.Sweep) {
	return func(s *policy.Sweep) { s.Guard = policy.Guard{Hold: column} }
}

var byTID = []policy.ChildKey{{Parent: "id", Child: "t_id"}}

// owing guards by rows of x.c that refer to the target.
func owing(change ...func(*policy.OwedGuard)) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		g := &policy.OwedGuard{Table: policy.Name{Schema: "x", Table: "c"}, Key: byTID, Column: "status", Terminal: policy.Texts("done", "dead")}
		for _, c := range change {
			c(g)
		}
		s.Guard = policy.Guard{Owed: g}
	}
}

// taking takes rows of x.c along, and those of x.d with them.
func taking(below ...policy.Child) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		s.Children = append(s.Children, policy.Child{Table: policy.Name{Schema: "x", Table: "c"}, Key: byTID, Children: below})
	}
}

func below(table, child string) policy.Child {
	return policy.Child{Table: policy.Name{Schema: "x", Table: table}, Key: []policy.ChildKey{{Parent: "id", Child: child}}}
}

const (
	ownSchema  = "ALTER TABLE t ADD own integer, ADD hold boolean; "
	ownIndexed = ownSchema + "CREATE INDEX t_own ON t ((((at AT TIME ZONE 'UTC') + own * interval '1 second') AT TIME ZONE 'UTC'), id) WHERE own IS NOT NULL; "
	cTable     = "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint NOT NULL REFERENCES t, status text NOT NULL, at timestamptz, note text); "
	cIndexed   = cTable + "CREATE INDEX c_t ON c (t_id, id); "
	dTable     = "CREATE TABLE d (id bigint PRIMARY KEY, c_id bigint NOT NULL REFERENCES c); CREATE INDEX ON d (c_id, id); "
	manyC      = "INSERT INTO t (id, at) VALUES (1, now()); INSERT INTO c SELECT g, 1, 'done' FROM generate_series(1, 20000) g; ANALYZE c; "
)

// rowCatalogs are what a sweep with windows of its rows' own, holds, owed rows or children may meet.
func rowCatalogs() []inspected {
	minutes := func(o *policy.RowWindow) { o.Unit = time.Minute }
	unitless := func(o *policy.RowWindow) { o.Unit = 0 }
	return []inspected{
		// Windows of the rows' own, and holds.
		{name: "own windows by expression", schema: ownIndexed, sweep: on(owns()), index: "t_at, t_own"},
		{name: "own windows, and the expression of another unit", schema: ownIndexed, sweep: on(owns(minutes)), index: "t_at",
			want: []finding{{Warning, "index", "row_window", "t_at leads with the age", `(((("at" AT TIME ZONE 'UTC'::text) + "own" * interval '1 minute') AT TIME ZONE 'UTC'::text)), "id") WHERE "own" IS NOT NULL;`}}, heals: true},
		{name: "own windows by age", schema: ownSchema, sweep: on(owns()), index: "t_at", want: []finding{{Warning, "index", "row_window", "rows past the floor are read in vain", "CREATE INDEX CONCURRENTLY ON"}}, heals: true},
		{name: "own windows by a generated column", schema: ownSchema + "ALTER TABLE t ADD until timestamptz GENERATED ALWAYS AS ((at AT TIME ZONE 'UTC' + own * '1 s'::interval) AT TIME ZONE 'UTC') STORED; CREATE INDEX t_until ON t (until, id)", sweep: on(owns()), index: "t_at, t_until"},
		{name: "own windows, and a generated column without an index", schema: ownSchema + "ALTER TABLE t ADD until timestamptz GENERATED ALWAYS AS ((at AT TIME ZONE 'UTC' + own * '1 s'::interval) AT TIME ZONE 'UTC') STORED", sweep: on(owns()), index: "t_at",
			want: []finding{{Warning, "index", "row_window", "", `ON "x"."t" ("until", "id") WHERE "own" IS NOT NULL;`}}, heals: true},
		{name: "own windows, and a column generated of something else", schema: ownSchema + "ALTER TABLE t ADD until timestamptz GENERATED ALWAYS AS ((at AT TIME ZONE 'UTC' + own * interval '1 minute') AT TIME ZONE 'UTC') STORED; CREATE INDEX t_until ON t (until, id)", sweep: on(owns()), index: "t_at",
			want: []finding{{Warning, "index", "row_window", "", "interval '1 second'"}}},
		{name: "own windows in an interval", schema: "ALTER TABLE t ADD own interval; CREATE INDEX t_own ON t ((((at AT TIME ZONE 'UTC') + own) AT TIME ZONE 'UTC')) WHERE own IS NOT NULL", sweep: on(owns(unitless)), index: "t_at, t_own"},
		{name: "own windows behind an equality", schema: ownSchema + "CREATE INDEX t_own ON t (kind, (((at AT TIME ZONE 'UTC') + own * interval '1 second') AT TIME ZONE 'UTC'), id)",
			sweep: on(owns(), matching(policy.Match{Column: "kind", Values: policy.Texts("a")})), index: "t_at, t_own"},
		{name: "no index for own windows", schema: ownSchema + "DROP INDEX t_at; CREATE INDEX t_part ON t (at, id) WHERE own IS NULL", sweep: on(owns()),
			want: []finding{{Refused, "index", "row_window", "no index leads with at and own added up for rows with a window of their own (t_part is partial (where (own IS NULL))", `AT TIME ZONE 'UTC'::text)), "id") WHERE "own" IS NOT NULL;`}}, heals: true},
		{name: "no index for rows without", schema: ownIndexed + "DROP INDEX t_at", sweep: on(owns()),
			want: []finding{{Refused, "index", "", "no index leads with at for rows without a window of their own", `ON "x"."t" ("at", "id") WHERE "own" IS NULL;`}}, heals: true},
		{name: "no index for rows that stay for ever", schema: ownIndexed + "DROP INDEX t_at", sweep: on(owns(), never), index: "t_own"},
		{name: "a named index for one part", schema: ownIndexed, sweep: on(owns(), named("t_own")), index: "t_at, t_own"},
		{name: "a named index for no part", schema: ownIndexed, sweep: on(owns(), named("t_pkey")), want: []finding{{Refused, "index", "index", "index t_pkey leads with (id)", ""}, refuse("index", "t_pkey")}},
		{name: "zero is for ever, by expiry", schema: ownIndexed, sweep: on(owns(func(o *policy.RowWindow) { o.ZeroNever = true })), want: []finding{{Warning, "index", "row_window", "own is 0 stay at the head of t_own", ""}}},
		{name: "no such column of own windows", sweep: on(owns()), want: []finding{{Refused, "column", "row_window.column", `x.t has no column "own"`, ""}}},
		{name: "own windows without a unit", schema: ownSchema, sweep: on(owns(unitless)), want: []finding{{Refused, "column", "row_window.unit", "is integer, which says no unit", "write unit"}}},
		{name: "an interval with a unit", schema: "ALTER TABLE t ADD own interval", sweep: on(owns()), want: []finding{{Refused, "column", "row_window.unit", "is interval, which has units of its own", "leave the unit out"}}},
		{name: "own windows that are no windows", schema: "ALTER TABLE t ADD own numeric", sweep: on(owns()), want: []finding{{Refused, "column", "row_window.column", "is numeric, which is no window", ""}}},
		{name: "a domain of own windows", schema: "CREATE DOMAIN seconds AS integer CHECK (value > 0); ALTER TABLE t ADD own seconds", sweep: on(owns()), want: []finding{fine("column", "own is x.seconds"), warn("index", "")}},
		{name: "a hold", schema: ownSchema, sweep: on(holds("hold")), index: "t_at"},
		{name: "no such hold", sweep: on(holds("hold")), want: []finding{{Refused, "column", "guard.hold", `x.t has no column "hold"`, ""}}},
		{name: "a hold that is no boolean", sweep: on(holds("note")), want: []finding{{Refused, "column", "guard.hold", "x.t.note is text", "boolean"}}},

		// Owed rows and children: their tables, columns and keys.
		{name: "owed rows and children", schema: cIndexed + dTable, sweep: on(owing(), taking(below("d", "c_id"))), index: "t_at"},
		{name: "no such owed table", sweep: on(owing()), want: []finding{{Refused, "kind", "guard.owed.table", "owed table x.c does not exist", ""}}},
		{name: "owed rows of a view", schema: cIndexed + "ALTER TABLE c RENAME TO cc; CREATE VIEW c AS SELECT * FROM cc", sweep: on(owing()), want: []finding{{Refused, "kind", "guard.owed.table", "x.c is a view", ""}}},
		{name: "no such child", sweep: on(owing0, taking()), schema: ownSchema, want: []finding{{Refused, "kind", "children.0.table", "child table x.c does not exist", ""}}},
		{name: "no such grandchild", schema: cIndexed + ownSchema, sweep: on(owing0, taking(below("d", "c_id"))), want: []finding{{Refused, "kind", "children.0.children.0.table", "child table x.d does not exist", ""}}},
		{name: "a partitioned child", schema: ownSchema + "CREATE TABLE c (t_id bigint) PARTITION BY RANGE (t_id)", sweep: on(owing0, taking()), want: []finding{{Refused, "kind", "children.0.table", "x.c is a partitioned table", ""}}},
		{name: "no such columns of owed rows", schema: cIndexed, sweep: on(owing(func(g *policy.OwedGuard) {
			g.Column, g.Key = "stat", []policy.ChildKey{{Parent: "idd", Child: "tid_"}}
		})), want: []finding{{Refused, "column", "guard.owed.state", `x.c has no column "stat"`, ""}, {Refused, "column", "guard.owed.key", `x.t has no column "idd"`, ""}, {Refused, "column", "guard.owed.key", `x.c has no column "tid_"`, ""}}},
		{name: "no such columns of a grandchild", schema: ownSchema + cIndexed + dTable, sweep: on(owing0, taking(below("d", "cid"))), want: []finding{{Refused, "column", "children.0.children.0.key", `x.d has no column "cid"`, ""}}},
		{name: "a key of two types", schema: "CREATE TABLE c (id bigint, t_id integer, status text NOT NULL); CREATE INDEX ON c (t_id)", sweep: on(owing()), want: []finding{{Refused, "column", "guard.owed.key", "x.t.id is bigint and x.c.t_id is integer", ""}}},
		{name: "a key of two types and no index", schema: "DROP INDEX t_at; CREATE TABLE c (id bigint, t_id integer, status text NOT NULL)", sweep: on(owing()), want: []finding{{Refused, "column", "guard.owed.key", "", ""}, refuse("index", "no index leads with at")}},
		{name: "a key of two collations", schema: `CREATE TABLE c (t_id text COLLATE "C", status text); CREATE INDEX ON c (t_id)`, sweep: on(owing(func(g *policy.OwedGuard) { g.Key = []policy.ChildKey{{Parent: "note", Child: "t_id"}} })),
			want: []finding{{Refused, "column", "guard.owed.key", "one type and collation", ""}}},
		{name: "a word that owed rows have not", schema: cIndexed + "ALTER TABLE c ADD CHECK (status IN ('open', 'done'))", sweep: on(owing()), want: []finding{{Refused, "state", "guard.owed.terminal", `"dead" is no value of x.c.status`, ""}}},
		{name: "every row is owed", schema: cIndexed, sweep: on(owing(func(g *policy.OwedGuard) { g.Column, g.Terminal = "", nil })), index: "t_at"},

		// The index by which they are found.
		{name: "owed rows without an index", schema: cTable, sweep: on(owing()), want: []finding{{Warning, "index", "guard.owed", "no index of x.c leads with (t_id); each row of x.t scans it, which is small now", `CREATE INDEX CONCURRENTLY ON "x"."c" ("t_id");`}}},
		{name: "many owed rows without an index", schema: "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint, status text); " + manyC, sweep: on(owing()), want: []finding{{Refused, "index", "guard.owed", "no index of x.c leads with (t_id)", `("t_id")`}}, heals: true},
		{name: "owed rows by a partial index of what is owed", schema: "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint, status text NOT NULL); CREATE INDEX c_open ON c (t_id) WHERE status NOT IN ('done', 'dead'); " + manyC, sweep: on(owing()),
			want: []finding{fine("index", "c_open of x.c")}},
		{name: "owed rows by a partial index of something else", schema: "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint, status text NOT NULL); CREATE INDEX c_open ON c (t_id) WHERE status NOT IN ('done', 'dead', 'other'); " + manyC, sweep: on(owing()),
			want: []finding{refuse("index", "no index of x.c")}},
		{name: "owed rows by a partial index that leaves nulls out", schema: "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint, status text); CREATE INDEX c_open ON c (t_id) WHERE status NOT IN ('done', 'dead'); " + manyC, sweep: on(owing()),
			want: []finding{refuse("index", "no index of x.c")}},
		{name: "a small child without an index", schema: ownSchema + cTable, sweep: on(owing0, taking()), want: []finding{{Warning, "index", "children.0", "which is small now", `("t_id")`}}},
		{name: "a large child without an index", schema: ownSchema + cTable + manyC, sweep: on(owing0, taking()), want: []finding{{Refused, "index", "children.0", "no index of x.c leads with (t_id)", `("t_id")`}}},
		{name: "a child by a partial index", schema: ownSchema + cTable + "CREATE INDEX ON c (t_id) WHERE status = 'done'; " + manyC, sweep: on(owing0, taking()), want: []finding{refuse("index", "no index of x.c")}},
		{name: "a large child that no index orders", schema: ownSchema + cTable + "CREATE INDEX ON c (t_id); " + manyC, sweep: on(owing0, taking()),
			want: []finding{{Warning, "index", "children.0", "no index walks the rows of x.c", `CREATE INDEX CONCURRENTLY ON "x"."c" ("t_id", "id");`}}, heals: true},
		{name: "a large child of which each row has one", schema: ownSchema + cTable + "ALTER TABLE c ADD CONSTRAINT one UNIQUE (t_id) NOT DEFERRABLE; INSERT INTO t (id, at) SELECT g, now() FROM generate_series(1, 20000) g; INSERT INTO c SELECT g, g, 'done' FROM generate_series(1, 20000) g; ANALYZE c", sweep: on(owing0, taking())},

		// What removing them sets off.
		{name: "a cascade to a child", schema: ownSchema + "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint NOT NULL REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id, id)", sweep: on(owing0, taking()), want: []finding{fine("foreign key", "its rows go before their row of x.t")}},
		{name: "a cascade from a child", schema: ownSchema + cIndexed + strings.Replace(dTable, "REFERENCES c", "REFERENCES c ON DELETE CASCADE", 1), sweep: on(owing0, taking()), want: []finding{{Refused, "cascade", "cascades", "rows of x.d go with their row of x.c", "name x.d in children"}}},
		{name: "a cascade that is accepted", schema: "CREATE TABLE c (t_id bigint REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id)", sweep: on(accepting("c")), want: []finding{fine("cascade", "rows of x.c go with their row of x.t")}},
		{name: "a cascade of a cascade", schema: "CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t_id); CREATE TABLE d (c_id bigint REFERENCES c ON DELETE CASCADE); CREATE INDEX ON d (c_id)", sweep: on(accepting("c")),
			want: []finding{{Refused, "cascade", "cascades", "rows of x.d go with their row of x.c", ""}}},
		{name: "a cascade among children", schema: ownSchema + cIndexed + dTable + "ALTER TABLE d ADD other bigint REFERENCES c ON DELETE CASCADE; CREATE INDEX ON d (other)", sweep: on(owing0, taking(below("d", "c_id"))), want: []finding{fine("cascade", "d_other_fkey")}},
		{name: "a cascade that is none", schema: cIndexed, sweep: on(accepting("c", "nothing")), want: []finding{{Warning, "cascade", "cascades.0", "no ON DELETE CASCADE leads from what the sweep removes to x.c", ""}, {Warning, "cascade", "cascades.1", "to x.nothing", ""}}},
		{name: "a key that points at a child", schema: ownSchema + cIndexed + dTable, sweep: on(owing0, taking()), want: []finding{fine("foreign key", "d_c_id_fkey of x.d: a row that is still referenced is stuck")}},
		{name: "a large key that points at a child", schema: ownSchema + cIndexed + "CREATE TABLE d (c_id bigint REFERENCES c); INSERT INTO d SELECT NULL FROM generate_series(1, 20000); ANALYZE d", sweep: on(owing0, taking()),
			want: []finding{{Refused, "foreign key", "", "each row removed from x.c scans it", `ON "x"."d" ("c_id")`}}, heals: true},
		{name: "a key set null in a child", schema: ownSchema + cIndexed + "CREATE TABLE d (c_id bigint REFERENCES c ON DELETE SET NULL); CREATE INDEX ON d (c_id)", sweep: on(owing0, taking()), want: []finding{warn("cascade", "rows of x.d lose their reference to x.c")}},
		{name: "a trigger of a child", schema: ownSchema + cIndexed + "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; CREATE TRIGGER remember AFTER DELETE ON c FOR EACH ROW EXECUTE FUNCTION f()", sweep: on(owing0, taking()),
			want: []finding{{Warning, "trigger", "set", "remember on x.c fires on DELETE", ""}}},
		{name: "a rule of a child", schema: ownSchema + cIndexed + "CREATE RULE keep AS ON DELETE TO c DO INSTEAD NOTHING", sweep: on(owing0, taking()), want: []finding{refuse("trigger", "rule keep rewrites DELETE on x.c")}},
		{name: "a child that is published without a key", schema: ownSchema + "CREATE TABLE c (t_id bigint); CREATE INDEX ON c (t_id); CREATE PUBLICATION inspected FOR TABLE c", sweep: on(owing0, taking()),
			want: []finding{{Refused, "replica identity", "", "x.c is in publication inspected", `ALTER TABLE "x"."c" REPLICA IDENTITY FULL;`}}, heals: true},
	}
}

// owing0 is a guard that asks nothing of other tables.
func owing0(s *policy.Sweep) { s.Guard = policy.Guard{Hold: "hold"} }

func holding(s *policy.Sweep) { s.Guard.Hold = "hold" }

// TestChildrenInOrder holds that children go before what they refer to, and what the catalog says of each of them.
func TestChildrenInOrder(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE SCHEMA x; SET search_path = x;"+inspectedTables+cTable+"CREATE UNIQUE INDEX c_walk ON c (t_id, id); CREATE INDEX c_long ON c (t_id, status, id);"+dTable+
		"CREATE TABLE e (id bigint PRIMARY KEY, c_id bigint, part int NOT NULL, UNIQUE (c_id, part)); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; CREATE TRIGGER remember AFTER DELETE ON d FOR EACH ROW EXECUTE FUNCTION f()")
	i, err := Inspect(t.Context(), Conn(db.Conn(t)), on(owing(), taking(below("d", "c_id"), below("e", "c_id"))))
	if err != nil {
		t.Fatal(err)
	}
	arms, err := i.Arms(nil, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, list(i.Checks))
	}
	var got []string
	for _, c := range arms[0].children {
		var keyset []string
		for _, k := range c.keyset {
			keyset = append(keyset, k.name)
		}
		parent := "t"
		if c.parent != nil {
			parent = c.parent.table.name.Table
		}
		got = append(got, c.table.name.Table+" of "+parent+" by "+c.index+" "+strings.Join(keyset, ","))
	}
	if want := []string{"d of c by d_c_id_id_idx id", "e of c by e_c_id_part_key part", "c of t by c_walk id"}; !slices.Equal(got, want) {
		t.Errorf("the children are %q; want %q", got, want)
	}
	cs := arms[0].children
	if cs[2].state == nil || cs[0].state != nil || len(cs[0].triggers) != 1 || len(cs[2].triggers) != 0 || arms[0].owed == nil || arms[0].owed.state != arms[0].sweep.Guard.Owed {
		t.Errorf("what is owed, and what fires: %+v, %+v, %+v", cs[0], cs[2], arms[0].owed)
	}
	byAnother := func(g *policy.OwedGuard) { g.Key = []policy.ChildKey{{Parent: "id", Child: "id"}} }
	if i, err = Inspect(t.Context(), Conn(db.Conn(t)), on(owing(byAnother), taking())); err != nil || i.target.children[0].state != nil {
		t.Errorf("a child by another key than what is owed: %v, %+v", err, i.target.children[0])
	}
}

// TestRightsOfParents gives a role nothing, then what the inspection asks for, once, and has it do what a batch does.
func TestRightsOfParents(t *testing.T) {
	db := pgtest.New(t)
	pgtest.Role(t, "inspect_parents", "login")
	for name, c := range map[string]struct {
		sweep policy.Sweep
		asked []string
	}{
		"owed": {on(owing(), holding), []string{`USAGE ON SCHEMA "x"`, `SELECT ON "x"."t"`, `DELETE ON "x"."t"`, `SELECT ("t_id", "status") ON "x"."c"`, `UPDATE ("remark") ON "x"."t"`}},
		"children": {on(owing0, taking(below("d", "c_id"))), []string{`USAGE ON SCHEMA "x"`, `SELECT ON "x"."t"`, `DELETE ON "x"."t"`, `SELECT ON "x"."d"`, `DELETE ON "x"."d"`, `SELECT ON "x"."c"`, `DELETE ON "x"."c"`,
			`UPDATE ("remark") ON "x"."t"`}},
		"both":   {on(owing(), holding, taking()), []string{`USAGE ON SCHEMA "x"`, `SELECT ON "x"."t"`, `DELETE ON "x"."t"`, `SELECT ON "x"."c"`, `DELETE ON "x"."c"`, `UPDATE ("remark") ON "x"."t"`}},
		"a hold": {on(owing0), []string{`USAGE ON SCHEMA "x"`, `SELECT ON "x"."t"`, `DELETE ON "x"."t"`}},
	} {
		t.Run(name, func(t *testing.T) {
			db.Exec(t, "DROP SCHEMA IF EXISTS x CASCADE; CREATE SCHEMA x; SET search_path = x;"+inspectedTables+cIndexed+dTable+"ALTER TABLE t ADD remark text, ADD hold boolean")
			conn := db.Conn(t, func(c *pgx.ConnConfig) { c.User = "inspect_parents" })
			i, err := Inspect(t.Context(), Conn(conn), c.sweep)
			if err != nil {
				t.Fatal(err)
			}
			missing, _ := refuse("rights", "missing: ").among(i.Checks)
			var want []string
			for _, a := range c.asked {
				want = append(want, "GRANT "+a+` TO "inspect_parents";`)
			}
			if missing.Fix != strings.Join(want, " ") {
				t.Errorf("it asks for %s\nwant %s", missing.Fix, strings.Join(want, " "))
			}
			db.Exec(t, missing.Fix)
			if i, err = Inspect(t.Context(), Conn(conn), c.sweep); err != nil {
				t.Fatal(err)
			}
			if len(i.Refused()) > 0 {
				t.Errorf("with all that was asked for it is refused:\n%s", list(i.Checks))
			}
		})
	}
}

// TestRowSecurityOfChildren holds that a policy that would hide rows of any table refuses the sweep.
func TestRowSecurityOfChildren(t *testing.T) {
	db := pgtest.New(t)
	pgtest.Role(t, "inspect_hidden", "login")
	for _, table := range []string{"t", "c", "d"} {
		db.Exec(t, "DROP SCHEMA IF EXISTS x CASCADE; CREATE SCHEMA x; SET search_path = x;"+inspectedTables+cIndexed+dTable+
			"GRANT USAGE ON SCHEMA x TO inspect_hidden; GRANT ALL ON ALL TABLES IN SCHEMA x TO inspect_hidden; ALTER TABLE "+table+" ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON "+table+" USING (false)")
		conn := db.Conn(t, func(c *pgx.ConnConfig) { c.User = "inspect_hidden" })
		i, err := Inspect(t.Context(), Conn(conn), on(owing(), taking(below("d", "c_id"))))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := refuse("rls", "row security would hide rows of x."+table).among(i.Checks); !ok || len(i.Refused()) != 1 {
			t.Errorf("row security of %s:\n%s", table, list(i.Checks))
		}
		if i, err = Inspect(t.Context(), Conn(conn), on(owing())); err != nil || (len(i.Refused()) > 0) != (table != "d") {
			t.Errorf("row security of %s, which is owed or not, %v:\n%s", table, err, list(i.Checks))
		}
	}
}
