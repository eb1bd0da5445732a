package postgres

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// purgeSpecimenSchema has a table for each kind of statement of a purge. Nothing in it depends on the server's version.
const purgeSpecimenSchema = purgeTables + `
CREATE TYPE plan AS ENUM ('free', 'paid');
CREATE DOMAIN org_id AS uuid;
CREATE TABLE tenants (id text PRIMARY KEY, note text);
CREATE TABLE seats (n int PRIMARY KEY, tenant_id text NOT NULL REFERENCES tenants, note text);
CREATE INDEX seats_tenant ON seats (tenant_id, n);
CREATE TABLE labels (n int, tenant text NOT NULL REFERENCES tenants);
CREATE INDEX labels_tenant ON labels (tenant, n);
CREATE SCHEMA "Odd.One";
CREATE TABLE "Odd.One"."Run ""Events""" ("Org's Id" org_id NOT NULL, "Order" int NOT NULL, "select" text, PRIMARY KEY ("Org's Id", "Order"));
CREATE TABLE "Odd.One"."Notes --x" ("k0" org_id, "tid" int, note text,
  CONSTRAINT "fk; DROP TABLE ""x""; --
new line $1" FOREIGN KEY ("k0", "tid") REFERENCES "Odd.One"."Run ""Events""" ON DELETE CASCADE);
CREATE INDEX ON "Odd.One"."Notes --x" ("k0", "tid");
CREATE TABLE plans (id int PRIMARY KEY, plan plan NOT NULL);
`

var purgeDB = pgtest.NewTemplate("purges", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	return c.PgConn().Exec(ctx, purgeSpecimenSchema).Close()
})

// purgeSpecimen is a step of a purge that differs from the others in the text of its statements.
type purgeSpecimen struct {
	name, tenant string
	purge        policy.Purge
	step         int
}

func purgeSpecimens() []purgeSpecimen {
	all := purgeOfAll()
	root := purgeOf("tenants id", "runs", "marks", "logs org", "orders", "nodes", "seats", "labels tenant")
	root.Tables = append(root.Tables[1:], root.Tables[0])
	root.Tables[3].Children = all.Tables[3].Children
	exclude := func(p policy.Purge, tables ...string) policy.Purge {
		for _, t := range tables {
			p.Exclude = append(p.Exclude, policy.Exclusion{Table: public(t), Reason: "not here"})
		}
		return p
	}
	all = exclude(all, "seats", "labels")
	odd := policy.Purge{Name: "odd", Set: []policy.Setting{{Name: "app.purging", Value: `it's \ on`}}, Tables: []policy.PurgeTable{{
		Table: policy.Name{Schema: "Odd.One", Table: `Run "Events"`}, Column: "Org's Id",
		Children: []policy.Child{{Table: policy.Name{Schema: "Odd.One", Table: "Notes --x"}, Key: []policy.ChildKey{{Parent: "Org's Id", Child: "k0"}, {Parent: "Order", Child: "tid"}}}},
	}}}
	plans := policy.Purge{Name: "plans", Tables: []policy.PurgeTable{{Table: public("plans"), Column: "plan"}}}
	tenants := exclude(root, "none")
	tenants.Tables = slices.Clone(tenants.Tables)
	tenants.Tables[len(tenants.Tables)-1].Children = []policy.Child{{Table: public("labels"), Key: keyTo("id", "tenant")}}
	tenants.Tables = slices.DeleteFunc(tenants.Tables, func(t policy.PurgeTable) bool { return t.Table.Table == "labels" })
	return []purgeSpecimen{
		{"purge_key", "acme", all, 0},
		{"purge_index", "acme", all, 1},
		{"purge_pages", "acme", all, 2},
		{"purge_grandchild", "acme", all, 3},
		{"purge_child", "acme", all, 4},
		{"purge_referred", "acme", all, 5},
		{"purge_self", "acme", all, 6},
		{"purge_child_of_root", "acme", tenants, 8},
		{"purge_root", "acme", tenants, 9},
		{"purge_odd_child", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", odd, 0},
		{"purge_odd", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", odd, 1},
		{"purge_plans", "free", plans, 0},
	}
}

// open returns the step.
func (sp purgeSpecimen) open(t testing.TB, db *DB) *removal {
	t.Helper()
	return openPurge(t, db, sp.purge, sp.tenant).steps[sp.step]
}

// purgeForms lists the forms of a step's pick by name.
func purgeForms(s *removal) map[string]form {
	m := map[string]form{"pick": {}, "step": {mode: pruner.StepStuck}}
	if s.walk == byKey {
		m["pick_next"] = form{next: true}
	}
	if s.child() {
		m["pick_one"], m["step_one"] = form{one: true}, form{mode: pruner.StepStuck, one: true}
		if s.chunked() {
			m["pick_one_next"] = form{one: true, last: true}
		}
	}
	return m
}

// purgeStatementsOf lists every statement of the step's batches by name.
func purgeStatementsOf(s *removal) map[string]statement {
	m := map[string]statement{"settings": s.settingsSQL(), "look": s.lookSQL(), "delete": s.deleteSQL(), "after": s.afterSQL(form{})}
	for name, f := range purgeForms(s) {
		m[name] = s.pickSQL(f)
	}
	if s.child() && !s.chunked() {
		m["after_one"] = s.afterSQL(form{one: true})
	}
	return m
}

// purgeWords are what the statements say beside the rules for values: which key keeps a row, the one row that is emptied,
// the row before the first that is left, and a list of addresses.
var purgeWords = []string{
	"the value 1 is spliced in", "the value 2 is spliced in", "the literal 'remote_apply' has no type", "the literal 'on' has no type", "IN with one value misses a partial index that = finds",
	"= ANY is for a list of addresses alone, and stands after tid",
}

// purgesKept lists the statements that have a golden copy: each clause of each kind once or more.
var purgesKept = map[string][]string{
	"purge_key":           {"settings", "pick", "pick_next", "step", "delete", "after", "look"},
	"purge_index":         {"pick", "step", "delete", "after"},
	"purge_pages":         {"pick", "delete", "look"},
	"purge_grandchild":    {"pick", "pick_next", "pick_one", "step_one", "delete", "after_one", "look"},
	"purge_child":         {"pick", "pick_next", "step", "pick_one", "pick_one_next", "delete", "after"},
	"purge_referred":      {"delete", "after"},
	"purge_self":          {"delete", "after"},
	"purge_child_of_root": {"pick", "pick_next", "pick_one"},
	"purge_root":          {"pick", "pick_next", "delete", "after"},
	"purge_odd_child":     {"settings", "pick", "pick_one", "delete"},
	"purge_odd":           {"pick_next", "delete", "after"},
	"purge_plans":         {"pick"},
}

// TestGoldenPurges holds the text of the statements of a purge against their reviewed copies, and to the rules that keep
// such text right. The server takes each of them too.
func TestGoldenPurges(t *testing.T) {
	conn := purgeDB.New(t).Conn(t)
	kind := goldens{}
	n := 0
	for _, sp := range purgeSpecimens() {
		all := purgeStatementsOf(sp.open(t, Conn(conn)))
		for _, name := range slices.Sorted(maps.Keys(all)) {
			n++
			if _, err := conn.PgConn().Prepare(t.Context(), "", all[name].sql, nil); err != nil {
				t.Errorf("%s: the server refuses %s: %v\n%s", sp.name, name, err, all[name].sql)
			}
			for _, fault := range lint(all[name]) {
				if !slices.Contains(purgeWords, fault) {
					t.Errorf("%s, %s: %s\n%s", sp.name, name, fault, all[name].sql)
				}
			}
		}
		kind.hold(t, filepath.Join("testdata", "sql", "purges", strings.TrimPrefix(sp.name, "purge_")), all, purgesKept[sp.name])
	}
	if n < 70 {
		t.Errorf("only %d statements were looked at", n)
	}
	kind.whole(t, filepath.Join("testdata", "sql", "purges", "*.sql"), nil)
}

// TestPurgesNameNoTenant holds that a tenant is a parameter of every statement, and stands in none.
func TestPurgesNameNoTenant(t *testing.T) {
	conn := purgeDB.New(t).Conn(t)
	for _, sp := range purgeSpecimens() {
		for name, st := range purgeStatementsOf(sp.open(t, Conn(conn))) {
			if strings.Contains(st.sql, sp.tenant) {
				t.Errorf("%s of %s has the tenant in its text:\n%s", name, sp.name, st.sql)
			}
		}
	}
}
