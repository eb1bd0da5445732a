package postgres

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// canarySchema is what a statement that is not ours could reach. Sequences remember what was rolled back.
const canarySchema = `
CREATE SCHEMA canary;
CREATE SEQUENCE canary.told;
CREATE TABLE canary.canary (id int PRIMARY KEY, at timestamptz NOT NULL);
INSERT INTO canary.canary SELECT g, '2020-01-01' FROM generate_series(1, 5) g;
CREATE TABLE canary.expected (setting text NOT NULL);
INSERT INTO canary.expected VALUES ('');
CREATE FUNCTION canary.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('canary.told'); RETURN NULL; END $$;
CREATE TRIGGER tells AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON canary.canary FOR EACH STATEMENT EXECUTE FUNCTION canary.tell();
CREATE FUNCTION canary.tell_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('canary.told'); END $$;
CREATE EVENT TRIGGER tells_ddl ON ddl_command_start EXECUTE FUNCTION canary.tell_ddl();
-- tells where a batch is under way without the setting that its policy gives it, letter by letter
CREATE FUNCTION canary.compare() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('app.fuzzed', true) IS DISTINCT FROM (SELECT e.setting FROM canary.expected e) THEN PERFORM nextval('canary.told'); END IF;
  RETURN NULL; END $$;`

// fuzzed are tables whose names the server wrote, so that nothing here hangs on a quoting of ours, with a sweep over them.
type fuzzed struct {
	schema, table, other, column, value string
}

// The shapes of a sweep. In each the row 1 is due, 2 is kept by the guard, 3 by the window.
const (
	fuzzState = iota
	fuzzOwner
	fuzzParents
	fuzzShapes
)

// tables has the names as $1 schema, $2 table, $3 other, $4 column. The column of the age is named $4, that of the state
// $3, and that of the key $2.
const fuzzedTables = `SELECT format($x$
CREATE SCHEMA %1$I;
CREATE TABLE %1$I.%2$I (id int PRIMARY KEY, %2$I int NOT NULL UNIQUE, %3$I text, %4$I timestamptz NOT NULL);
CREATE INDEX %4$I ON %1$I.%2$I (%4$I, id);
CREATE TRIGGER %3$I AFTER DELETE ON %1$I.%2$I FOR EACH STATEMENT EXECUTE FUNCTION canary.compare();
CREATE TABLE %1$I.%3$I (id int PRIMARY KEY, %2$I int NOT NULL UNIQUE, %4$I text);
CREATE INDEX ON %1$I.%3$I (%2$I, id);
CREATE TABLE %1$I.neighbour (LIKE %1$I.%2$I INCLUDING ALL)$x$, $1::text, $2::text, $3::text, $4::text)`

const fuzzedRows = `SELECT format($x$
INSERT INTO %1$I.%2$I VALUES (1, 1, %5$L, '2020-01-01'), (2, 2, 'live', '2020-01-01'), (3, 3, %5$L, now()) ON CONFLICT DO NOTHING;
INSERT INTO %1$I.%3$I VALUES (1, 1, %5$L), (2, 2, 'live'), (3, 3, %5$L) ON CONFLICT DO NOTHING;
INSERT INTO %1$I.neighbour SELECT * FROM %1$I.%2$I ON CONFLICT DO NOTHING$x$, $1::text, $2::text, $3::text, $4::text, $5::text)`

const fuzzedLeft = `SELECT format($x$
SELECT concat_ws(' ', (SELECT string_agg(id::text, ',' ORDER BY id) FROM %1$I.%2$I), (SELECT string_agg(id::text, ',' ORDER BY id) FROM %1$I.%3$I), (SELECT count(*) FROM %1$I.neighbour))$x$, $1::text, $2::text, $3::text)`

// FuzzNames sweeps tables of any name, by columns, states and settings of any text. Either the sweep is refused and nothing
// is touched, or exactly the due row goes, of exactly this table; and nothing that was not ours to say has run.
func FuzzNames(f *testing.F) {
	for i, s := range oddTexts {
		f.Add(byte(i), "s"+s, "t"+s, "o"+s, "c"+s, s)
		f.Add(byte(i+1), "s"+s, s+"t", s+"o", s+"c", "done"+s)
	}
	f.Add(byte(fuzzParents), "x", "tid", "owed", "at", "due")
	f.Add(byte(fuzzOwner), "x", "k0", "n", "held", "e")
	f.Add(byte(fuzzState), "a.b", "c.d", "e.f", "g.h", "null")
	for shape := range byte(fuzzShapes) { // no name of a table, but a state and a setting
		f.Add(shape, "x", "t", "o", "c", "done\x00")
		f.Add(shape, "x", "t", "o", "c", "done\xff")
	}
	db := pgtest.New(f)
	db.Exec(f, canarySchema)
	admin := db.Conn(f)
	swept := 0
	f.Cleanup(func() {
		// while names are being looked for, other processes sweep them
		if swept == 0 && flag.Lookup("test.fuzz").Value.String() == "" {
			f.Error("no sweep came to its end: every name was skipped or refused")
		}
	})
	conns := []*pgx.Conn{db.Conn(f, mode(pgx.QueryExecModeExec)), db.Conn(f, mode(pgx.QueryExecModeSimpleProtocol))}
	f.Fuzz(func(t *testing.T, shape byte, schema, table, other, column, value string) {
		n := fuzzed{schema, table, other, column, value}
		made := n.make(t, admin)
		if made {
			defer func() {
				mustExec(t, admin, formatted(t, admin, "SELECT format('DROP SCHEMA %I CASCADE', $1::text)", asStored(schema)))
			}()
			if _, err := admin.Exec(t.Context(), "UPDATE canary.expected SET setting = $1", n.held()); err != nil {
				t.Fatal(err)
			}
		}
		mustExec(t, admin, "SELECT setval('canary.told', 1, false)")
		for _, c := range conns {
			swept += n.sweep(t, admin, c, int(shape)%fuzzShapes, made)
		}
		if got := textOf(t, admin, "SELECT (SELECT last_value || ' ' || is_called FROM canary.told) || ' ' || (SELECT count(*) FROM canary.canary)"); got != "1 false 5" {
			t.Errorf("the canary says %s: something has run that was not to, or a setting was not what the policy says", got)
		}
	})
}

// formatted is a script that the server wrote.
func formatted(t *testing.T, admin *pgx.Conn, sql string, args ...any) (script string) {
	t.Helper()
	if err := admin.QueryRow(t.Context(), sql, args...).Scan(&script); err != nil {
		t.Fatal(err)
	}
	return script
}

// make makes the tables; false where the server can have none of such names. Names that are there already, or that are the
// same one twice, say nothing.
func (n fuzzed) make(t *testing.T, admin *pgx.Conn) bool {
	t.Helper()
	var script string
	err := admin.QueryRow(t.Context(), fuzzedTables, n.schema, n.table, n.other, n.column).Scan(&script)
	if err == nil {
		_, err = admin.PgConn().Exec(t.Context(), script).ReadAll()
	}
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return true
	case !errors.As(err, &pg):
		t.Fatal(err)
	case pg.Code == "22021": // not UTF-8, or a NUL
		return false
	}
	t.Skip(err)
	return false
}

// policy has the value in one place alone, and what a column holds of it in the others: so each place is asked whether it
// lets pass what no column can hold.
func (n fuzzed) policy(shape int) policy.Sweep {
	name := func(table string) policy.Name { return policy.Name{Schema: n.schema, Table: table} }
	s := policy.Sweep{Name: "fuzzed", Table: name(n.table), Age: n.column, Window: policy.MustWindow(24 * time.Hour), Set: []policy.Setting{{Name: "app.fuzzed", Value: n.held()}}}
	terminal := policy.Texts(n.held())
	switch shape {
	case fuzzState:
		s.Guard.State = &policy.StateGuard{Column: n.other, Terminal: terminal}
		s.Only = []policy.Match{{Column: n.other, Values: policy.Texts(n.value, "live")}}
	case fuzzOwner:
		s.Guard.Owner = &policy.OwnerGuard{Table: name(n.other), Key: []policy.KeyPair{{Target: n.table, Owner: n.table}}, Column: n.column, Terminal: policy.Texts(n.value)}
	case fuzzParents:
		s.Set[0].Value = n.value
		s.Guard.Owed = &policy.OwedGuard{Table: name(n.other), Key: []policy.ChildKey{{Parent: n.table, Child: n.table}}, Column: n.column, Terminal: terminal}
		s.Children = []policy.Child{{Table: name(n.other), Key: s.Guard.Owed.Key}}
	}
	return s
}

// sweep asks everything of the engine that renders a name, and removes what is due: one row, or none where it is refused.
func (n fuzzed) sweep(t *testing.T, admin, c *pgx.Conn, shape int, made bool) (removed int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	left := func() string {
		if !made {
			return ""
		}
		return textOf(t, admin, formatted(t, admin, fuzzedLeft, n.schema, n.table, n.other))
	}
	storable := n.held() == n.value
	if made {
		mustExec(t, admin, formatted(t, admin, fuzzedRows, n.schema, n.table, n.other, n.column, n.held()))
	}
	before := left()
	s := n.policy(shape)
	i, err := Inspect(ctx, Conn(c), s)
	if err != nil || len(i.Refused()) > 0 {
		if after := left(); after != before {
			t.Errorf("it is refused, and of %s are left %s", before, after)
		}
		if made && storable && n.value != "live" && !n.long() {
			if err == nil {
				err = fmt.Errorf("refused: %v", i.Refused())
			}
			t.Errorf("%+v: %v", n, err)
		}
		return 0
	}
	if !made || n.long() || !storable {
		t.Fatalf("%+v passes, and is no name or value that the server has", n)
	}
	arms, err := i.Arms(Conn(c), Options{OneSweeper: true})
	if err != nil {
		t.Fatal(err)
	}
	cutoff := s.Window.Cutoff(time.Now())
	for _, a := range arms {
		_, err := a.Explain(ctx, cutoff, 10)
		if p, e := a.Plan(ctx, cutoff, 10); err != nil || e != nil || p.Due != 1 || p.Held != 1 {
			t.Errorf("%+v: the plan is %+v, %v, %v", n, p, err, e)
		}
		_, err = a.HeldBy(ctx, cutoff, 10)
		if _, e := a.Undated(ctx, 10); err != nil || e != nil {
			t.Errorf("%+v: what is held, %v; what is undated, %v", n, err, e)
		}
		for b, rounds := (pruner.Batch{Cutoff: cutoff, Limit: 1}), 0; ; rounds++ {
			res, err := a.Prune(ctx, b)
			if err != nil || rounds > 10 {
				t.Fatalf("%+v: batch %d: %v", n, rounds, err)
			}
			if removed += res.Removed; res.End {
				break
			}
			b.After = res.Next
			b.Mode = pruner.SkipLocked
		}
	}
	want := "2,3 1,2,3 3"
	if shape == fuzzParents {
		want = "2,3 2,3 3"
	}
	if after := left(); removed != 1 || after != want {
		t.Errorf("%+v: %d removed, and of %s are left %s, not %s", n, removed, before, after, want)
	}
	return removed
}

// held is the value, or the nearest to it that a column can hold.
func (n fuzzed) held() string {
	return strings.ReplaceAll(strings.ToValidUTF8(n.value, ""), "\x00", "")
}

// long reports whether a name is one that the server cuts, so that no table has it.
func (n fuzzed) long() bool {
	for _, name := range []string{n.schema, n.table, n.other, n.column} {
		if asStored(name) != name {
			return true
		}
	}
	return false
}
