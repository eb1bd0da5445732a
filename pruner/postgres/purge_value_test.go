package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// alike are tenants that something less exact could take for each other, or for a command.
var alike = []string{
	"acme", "Acme", "ACME", "acme ", " acme", "acme\t", "acme\n", "'; DROP TABLE x; --", `acme\`, `ac\me`, `\x61636d65`, "acme''", `"acme"`, "$1", "$$", "%", "acme%", "acme*", "a_me",
	"äcme", "a\u0308cme", "ＡＣＭＥ", "租户", "🏢", "null", "NULL", "all", "0", "00", "true", "{}", "{acme}", "acme,Acme", "--", "/*", "*/", "E'x'", "::text", "acme\u200b", "acme\u00a0",
}

// TestPurgeIsExact purges one of many tenants whose names are alike, in every exec mode, and has every other keep its rows.
func TestPurgeIsExact(t *testing.T) {
	db := pgtest.New(t)
	admin := db.Conn(t)
	mustExec(t, admin, `CREATE TABLE x (id int PRIMARY KEY, t text NOT NULL, v varchar(30) NOT NULL, UNIQUE (t, id)); CREATE INDEX x_v ON x (v); CREATE TABLE y (id int PRIMARY KEY, x int NOT NULL REFERENCES x); CREATE INDEX ON y (x)`)
	p := policy.Purge{Name: "exact", Tables: []policy.PurgeTable{{Table: public("x"), Column: "t", Children: []policy.Child{{Table: public("y"), Key: keyTo("id", "x")}}}, {Table: public("x"), Column: "v"}}}
	for _, m := range execModes {
		conn := db.Conn(t, mode(m))
		for n, of := range alike {
			if m != execModes[0] && n%5 > 0 {
				continue
			}
			mustExec(t, admin, "TRUNCATE x, y")
			mustExec(t, admin, "INSERT INTO x SELECT n + 100 * g, t, t FROM unnest($1::text[]) WITH ORDINALITY u(t, n), generate_series(0, 1) g", alike)
			mustExec(t, admin, "INSERT INTO y SELECT id, id FROM x")
			opened := openPurge(t, Conn(conn), p, of)
			sums, err := purgeAll(t.Context(), opened, 2)
			if err != nil {
				t.Fatalf("%s, %q: %v", m, of, err)
			}
			if sums[0].Removed != 2 || sums[1].Removed != 2 || sums[2].Removed != 0 {
				t.Errorf("%s, %q: removed %+v", m, of, sums)
			}
			same(t, fmt.Sprintf("%s: rows beside those of %q", m, of), rowsOf(t, db, "x", "y"), fmt.Sprintf("x %[1]d y %[1]d", 2*len(alike)-2))
			same(t, "rows of it", db.Int(t, "SELECT count(*) FROM x WHERE t = $1 OR v = $1", of), int64(0))
		}
	}
}

// TestPurgeTypes holds which values name a tenant of a column, and which spelling the purge goes by.
func TestPurgeTypes(t *testing.T) {
	const id = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
	db := pgtest.New(t)
	conn := db.Conn(t)
	mustExec(t, conn, `CREATE TYPE plan AS ENUM ('free', 'Paid', '100%'); CREATE DOMAIN org AS uuid; CREATE DOMAIN orgs AS org; CREATE DOMAIN short AS varchar(5) CHECK (VALUE <> '');
CREATE TABLE r (id int PRIMARY KEY, t text, v varchar(3), u uuid, d orgs, s short, i2 smallint, i4 int, i8 bigint, e plan)`)
	for _, c := range []struct{ columns, value, want string }{ // want: the tenant, or what the error says
		{"t", "acme", "acme"}, {"t", " acme ", " acme "}, {"t", "007", "007"}, {"v", "longer than it", "longer than it"},
		{"u", id, id}, {"u", strings.ToUpper(id), id}, {"d", strings.ToUpper(id), id},
		{"u", "{" + id + "}", `! "{` + id + `}" is read as "` + id + `" by a column of type uuid; write it so`},
		{"u", strings.ReplaceAll(id, "-", ""), "! " + `"a0eebc999c0b4ef8bb6d6bb9bd380a11" is read as "` + id + `" by a column of type uuid; write it so`},
		{"u", "acme", `! "acme" is no tenant of these tables: invalid input syntax for type uuid: "acme"`},
		{"t u", id, id}, {"t u", strings.ToUpper(id), `! "` + strings.ToUpper(id) + `" is "` + id + `" in some tables and another tenant in others; write it so`},
		{"i4", "7", "7"}, {"i4", "-7", "-7"}, {"i8", "9223372036854775807", "9223372036854775807"},
		{"i4", "007", `! "007" is read as "7" by a column of type integer; write it so`}, {"i4", "+7", `! "+7" is read as "7" by a column of type integer; write it so`},
		{"i4", " 7", `! " 7" is read as "7" by a column of type integer; write it so`},
		{"i2", "70000", `! "70000" is no tenant of these tables: value "70000" is out of range for type smallint`}, {"i4", "7; DROP TABLE r", "! "}, {"i4", "1e3", "! "},
		{"e", "free", "free"}, {"e", "FREE", `! "FREE" is no tenant of these tables: invalid input value for enum plan: "FREE"`}, {"e", "free ", "! "},
		{"s", "abc", "abc"}, {"s", "abc ", "abc "},
		{"t", "", "! no tenant is named; write whose rows are to go"}, {"t", " ", `! " " is no tenant: there are only blanks in it`}, {"t", "\t\u00a0\n", "! "},
		{"t", "a\x00b", `! "a\x00b" is no tenant: it contains a NUL, which no column can have`}, {"t", "a\xffb", `! "a\xffb" is no text: it is not valid UTF-8`},
		{"t", "%", `! "%" looks like a pattern; a tenant is one value, and no row has exactly this one`}, {"t", "acme*", "! "}, {"t", "a%b", "! "},
		{"t", "NULL", `! "NULL" looks like a word; a tenant is one value, and no row has exactly this one`}, {"t", "All", "! "}, {"e", "100%", "! "}, {"t", "a_b", "a_b"}, {"t", "nullify", "nullify"},
	} {
		p := policy.Purge{Name: "types"}
		for _, column := range strings.Fields(c.columns) {
			p.Tables = append(p.Tables, policy.PurgeTable{Table: public("r"), Column: column})
		}
		i, err := InspectPurge(t.Context(), Conn(conn), p, c.value)
		switch want, no := strings.CutPrefix(c.want, "! "); {
		case no:
			var is *tenant.Error
			if !errors.As(err, &is) || i != nil || want != "" && is.What != want || want == "" && !strings.HasPrefix(is.What, fmt.Sprintf("%q ", c.value)) {
				t.Errorf("%s = %q: %v; want %s", c.columns, c.value, err, want)
			}
		case err != nil:
			t.Errorf("%s = %q: %v", c.columns, c.value, err)
		case i.Tenant != want || len(i.Refused()) > 0:
			t.Errorf("%s = %q: the tenant is %q, %+v", c.columns, c.value, i.Tenant, i.Refused())
		}
	}
	// A pattern or a word that is somebody's name is a tenant, where any table says so.
	mustExec(t, conn, "INSERT INTO r (id, t, e) VALUES (1, 'a%', '100%'), (2, 'ALL', 'free')")
	for of, want := range map[string]bool{"a%": true, "ALL": true, "all": false, "%": false, "100%": false} {
		p := policy.Purge{Name: "types", Tables: []policy.PurgeTable{{Table: public("r"), Column: "v"}, {Table: public("r"), Column: "t"}}}
		if _, err := InspectPurge(t.Context(), Conn(conn), p, of); (err == nil) != want {
			t.Errorf("%q: %v", of, err)
		}
	}
	same(t, "rows", rowsOf(t, db, "r"), "r 2")
}

// TestPurgeColumnTypes purges by a column of every type that may say whose a row is, in every exec mode and by every walk.
func TestPurgeColumnTypes(t *testing.T) {
	db := pgtest.New(t)
	admin := db.Conn(t)
	mustExec(t, admin, `CREATE TYPE plan AS ENUM ('free', 'Paid'); CREATE DOMAIN org AS uuid NOT NULL; CREATE DOMAIN orgs AS org; CREATE DOMAIN label AS text COLLATE "C"`)
	for typ, values := range map[string][2]string{
		"text": {"acme", "Acme"}, "varchar(5)": {"acme", "acme "}, "uuid": {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"}, "smallint": {"7", "70"}, "integer": {"-7", "7"},
		"bigint": {"9223372036854775807", "9223372036854775806"}, "plan": {"free", "Paid"}, "orgs": {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a10"}, "label": {"b", "B"}, `text COLLATE "C"`: {"ä", "a"},
	} {
		for n, index := range []string{"CREATE UNIQUE INDEX ON w (t, id)", "CREATE UNIQUE INDEX ON w (t DESC, id DESC)", "CREATE INDEX ON w (t)", "CREATE INDEX ON w (t, id DESC)", "SELECT"} {
			mustExec(t, admin, fmt.Sprintf("DROP TABLE IF EXISTS w; CREATE TABLE w (id int PRIMARY KEY, t %s); %s; INSERT INTO w SELECT g, CASE g %% 2 WHEN 0 THEN %s ELSE %s END::%s FROM generate_series(1, 30) g", typ, index, literal(values[0]), literal(values[1]), typ))
			m := execModes[n%len(execModes)]
			s := openPurge(t, Conn(db.Conn(t, mode(m))), purgeOf("w t"), values[0])
			same(t, "the walk", s.steps[0].walk, []walk{byKey, byKey, byIndex, byIndex, byPages}[n])
			sums, err := purgeAll(t.Context(), s, 4)
			if err != nil || sums[0].Removed != 15 {
				t.Errorf("%s, %s, %s: %+v, %v", typ, index, m, sums, err)
			}
			same(t, "left", db.Text(t, "SELECT string_agg(DISTINCT t::text, '') || count(*) FROM w"), values[1]+"15")
		}
	}
}

// TestPurgeOddNames purges tables whose names are made to break out of a statement, in every exec mode.
func TestPurgeOddNames(t *testing.T) {
	odd := []string{`a"b`, "a.b", "A B", `x"; DROP TABLE bystander; --`, "x'; DROP TABLE bystander; --", "x\n; DROP TABLE bystander", "$1", "--", "/*", "%s%d", "select", "ctid_", `\`, "租户", "d", "tid", "k0", "e.x"}
	for n, name := range odd {
		db := pgtest.New(t)
		admin := db.Conn(t)
		q, qn, up := ident(name), ident("n"+name), ident("u"+name)
		mustExec(t, admin, "CREATE TABLE bystander (); CREATE SCHEMA "+q)
		mustExec(t, admin, fmt.Sprintf(`CREATE TABLE %[1]s.%[1]s (%[1]s text NOT NULL, %[2]s int, %[3]s int, CONSTRAINT %[3]s PRIMARY KEY (%[1]s, %[2]s), CONSTRAINT %[1]s FOREIGN KEY (%[1]s, %[3]s) REFERENCES %[1]s.%[1]s ON DELETE CASCADE)`, q, qn, up))
		mustExec(t, admin, fmt.Sprintf(`CREATE INDEX ON %[1]s.%[1]s (%[1]s, %[3]s); CREATE TABLE %[1]s.%[2]s (id int PRIMARY KEY, %[2]s text, %[3]s int, CONSTRAINT %[1]s FOREIGN KEY (%[2]s, %[3]s) REFERENCES %[1]s.%[1]s ON DELETE CASCADE)`, q, qn, up))
		mustExec(t, admin, fmt.Sprintf(`CREATE INDEX ON %[1]s.%[2]s (%[2]s, %[3]s); CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.%[4]s = 9 THEN RETURN NULL; END IF; RETURN OLD; END'; CREATE TRIGGER %[1]s BEFORE DELETE ON %[1]s.%[1]s FOR EACH ROW EXECUTE FUNCTION %[1]s()`, q, qn, up, strings.ReplaceAll(qn, "'", "''")))
		mustExec(t, admin, fmt.Sprintf(`INSERT INTO %[1]s.%[1]s SELECT t, g, CASE WHEN g > 5 THEN g - 5 END FROM generate_series(1, 10) g, unnest('{acme,other}'::text[]) t; INSERT INTO %[1]s.%[2]s SELECT g, 'acme', g FROM generate_series(1, 10) g; INSERT INTO %[1]s.%[2]s VALUES (11, 'other', 1)`, q, qn))
		p := policy.Purge{Name: "odd", Key: name, Tables: []policy.PurgeTable{{Table: policy.Name{Schema: name, Table: name}, Children: []policy.Child{
			{Table: policy.Name{Schema: name, Table: "n" + name}, Key: []policy.ChildKey{{Parent: name, Child: "n" + name}, {Parent: "n" + name, Child: "u" + name}}}}}}}
		conn := db.Conn(t, mode(execModes[n%len(execModes)]))
		opened := openPurge(t, Conn(conn), p, "acme")
		for _, limit := range []int{3, 100} {
			sums, err := purgeAll(t.Context(), opened, limit)
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			// Row 9 is vetoed, and row 4 is referred to by it.
			table := name + "." + name
			same(t, fmt.Sprintf("%q, stuck", name), sums[1].Blocked, []pruner.Block{{Constraint: name, Table: table, Rows: 2}})
			same(t, fmt.Sprintf("%q, left", name), leftOf(t, opened, 100), "0 2")
		}
		same(t, "of the other", db.Text(t, fmt.Sprintf("SELECT count(*)::text FROM %[1]s.%[1]s WHERE %[1]s = 'other'", q)), "10")
		same(t, "the bystander", db.Text(t, "SELECT 'bystander'::regclass::text"), "bystander")
	}
}
