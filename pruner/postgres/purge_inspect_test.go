package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
)

// emptied drops what a test before has made.
const emptied = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; "

// usersAndPosts are two tables of tenants, the second of which refers to the first.
const usersAndPosts = `CREATE TABLE users (tenant_id text, id int PRIMARY KEY, UNIQUE (tenant_id, id));
CREATE TABLE posts (tenant_id text, id int PRIMARY KEY, author int REFERENCES users, UNIQUE (tenant_id, id));
CREATE INDEX posts_author ON posts (author);
`

// purgeCheck is what an inspection has to say.
type purgeCheck struct {
	name, script string
	purge        policy.Purge
	want         []Check // Detail and Fix whole, or what they end with behind "..."
}

func excluding(p policy.Purge, tables ...string) policy.Purge {
	for _, t := range tables {
		p.Exclude = append(p.Exclude, policy.Exclusion{Table: public(t), Reason: "it says so"})
	}
	return p
}

// withChild gives the last table a child.
func withChild(p policy.Purge, c policy.Child) policy.Purge {
	p.Tables[len(p.Tables)-1].Children = append(p.Tables[len(p.Tables)-1].Children, c)
	return p
}

func refused(name, key, detail, fix string) Check { return Check{name, key, Refused, detail, fix} }
func warning(name, key, detail, fix string) Check { return Check{name, key, Warning, detail, fix} }

func purgeChecks() []purgeCheck {
	users, usersPosts := purgeOf("users"), purgeOf("posts", "users")
	ranked := `CREATE TABLE orders (tenant_id text, id int PRIMARY KEY, UNIQUE (tenant_id, id)); CREATE TABLE lines (id int PRIMARY KEY, order_id int); CREATE INDEX ON lines (order_id);`
	lines := policy.Child{Table: public("lines"), Key: keyTo("id", "order_id")}
	return []purgeCheck{
		{"all is well", usersAndPosts, usersPosts, nil},

		{"a table that is not there", "", users, []Check{refused("kind", "tables.0.table", "table public.users does not exist", "")}},
		{"a view", "CREATE VIEW users AS SELECT 'a' AS tenant_id", users, []Check{refused("kind", "tables.0.table", "public.users is a view, not a table", "name an ordinary table")}},
		{"a partitioned table", "CREATE TABLE users (tenant_id text) PARTITION BY LIST (tenant_id)", users,
			[]Check{refused("kind", "tables.0.table", "public.users is a partitioned table, which is planned, not in this version", "name its partitions, each as a table of its own")}},
		{"an inheritance parent", "CREATE TABLE users (tenant_id text); CREATE TABLE more () INHERITS (users)", excluding(users, "more"),
			[]Check{refused("kind", "tables.0.table", "public.users is an inheritance parent: rows of other tables appear in it", "name the tables that inherit from it, each as a table of its own")}},
		{"published, without an identity", "CREATE TABLE users (tenant_id text); CREATE PUBLICATION p FOR TABLE users", users,
			[]Check{refused("kind", "tables.0.table", "public.users is in publication p, which publishes deletes, and has no replica identity", `ALTER TABLE "public"."users" REPLICA IDENTITY FULL;`)}},
		{"a child that is not there", ranked, withChild(purgeOf("orders"), policy.Child{Table: public("gone"), Key: keyTo("id", "x")}),
			[]Check{refused("kind", "tables.0.children.0.table", "child table public.gone does not exist", "")}},

		{"no such column", "CREATE TABLE users (tenant text, id int)", users, []Check{refused("column", "tables.0.column", `public.users has no column "tenant_id"; it has tenant, id`, "")}},
		{"a column in which two tenants are one", "CREATE TABLE users (tenant_id char(4))", users,
			[]Check{refused("column", "tables.0.column", "column tenant_id of public.users is character(4); whose a row is can be told from text, varchar, uuid, whole numbers and enums, and in others two tenants could be one", "")}},
		{"a column of numbers with a point", "CREATE TABLE users (tenant_id numeric)", users, []Check{refused("column", "tables.0.column", "... could be one", "")}},
		{"a collation that is not deterministic", "CREATE COLLATION IF NOT EXISTS ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE users (tenant_id text COLLATE ci)", users,
			[]Check{refused("column", "tables.0.column", "column tenant_id of public.users has a collation that is not deterministic: two tenants could be one", "")}},
		{"a domain over a collation that is not deterministic", "CREATE COLLATION IF NOT EXISTS ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE DOMAIN d AS text COLLATE ci; CREATE DOMAIN dd AS d; CREATE TABLE users (tenant_id dd)", users,
			[]Check{refused("column", "tables.0.column", "... not deterministic: two tenants could be one", "")}},
		{"a child with the column", ranked + "ALTER TABLE lines ADD tenant_id text", withChild(purgeOf("orders"), lines),
			[]Check{refused("column", "tables.0.children.0", "public.lines has a column tenant_id itself, and so is no child; declare it as a table", "- {table: public.lines, column: tenant_id} among tables, before public.orders")}},
		{"a child's key without its column", ranked, withChild(purgeOf("orders"), policy.Child{Table: public("lines"), Key: keyTo("id", "order")}),
			[]Check{refused("column", "tables.0.children.0.key", `public.lines has no column "order"; it has id, order_id`, "")}},
		{"a child's key without its parent's column", ranked, withChild(purgeOf("orders"), policy.Child{Table: public("lines"), Key: keyTo("nr", "order_id")}),
			[]Check{refused("column", "tables.0.children.0.key", `public.orders has no column "nr"; it has tenant_id, id`, "")}},
		{"a child's key of another type", ranked + "ALTER TABLE lines ALTER order_id TYPE bigint", withChild(purgeOf("orders"), lines),
			[]Check{refused("column", "tables.0.children.0.key", "public.orders.id is integer and public.lines.order_id is bigint; a key is compared in one type and collation", "")}},
		{"a child's key that two rows can have", ranked + "ALTER TABLE orders DROP CONSTRAINT orders_pkey", withChild(purgeOf("orders"), lines),
			[]Check{refused("column", "tables.0.children.0.key", "(id) is no primary key or unique index of public.orders; a row could refer to rows of two tenants", "")}},

		{"a child without a foreign key", ranked, withChild(purgeOf("orders"), lines),
			[]Check{warning("foreign key", "tables.0.children.0", "no foreign key leads from public.lines to public.orders by (order_id): rows whose row of public.orders is gone already cannot be found", "")}},
		{"a large child without an index", ranked + "ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders; DROP INDEX lines_order_id_idx; UPDATE pg_class SET reltuples = 1e6 WHERE relname = 'lines'", withChild(purgeOf("orders"), lines), []Check{
			refused("foreign key", "tables.0", "lines_order_id_fkey of public.lines (order_id) has no index; each row removed from public.orders scans it", `CREATE INDEX CONCURRENTLY ON "public"."lines" ("order_id");`),
			refused("index", "tables.0.children.0", "no index of public.lines leads with (order_id); each row of public.orders scans it", ""),
		}},
		{"a small child without an index", ranked + "DROP INDEX lines_order_id_idx; ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders", withChild(purgeOf("orders"), lines), []Check{
			warning("foreign key", "tables.0", "lines_order_id_fkey of public.lines (order_id) has no index; each row removed from public.orders scans it, which is small now", "... (\"order_id\");"),
			warning("index", "tables.0.children.0", "no index of public.lines leads with (order_id); each row of public.orders scans it, which is small now", ""),
		}},

		{"an index that does not order", "CREATE TABLE users (tenant_id text, id int PRIMARY KEY); CREATE INDEX u ON users (tenant_id)", users,
			[]Check{warning("index", "tables.0", "u leads with tenant_id and does not order the rows of one tenant; each batch walks what those before it have left", `CREATE INDEX CONCURRENTLY ON "public"."users" ("tenant_id", "id");`)}},
		{"no index", "CREATE TABLE users (tenant_id text, id int PRIMARY KEY); INSERT INTO users SELECT 'a', g FROM generate_series(1, 1000) g", users,
			[]Check{warning("index", "tables.0", "no index of public.users leads with tenant_id; all of its 5 pages are read, 1024 of them a batch at most", `CREATE INDEX CONCURRENTLY ON "public"."users" ("tenant_id", "id");`)}},
		{"no index, and one page", "CREATE TABLE users (tenant_id text, id int); INSERT INTO users VALUES ('a', 1)", users,
			[]Check{warning("index", "tables.0", "no index of public.users leads with tenant_id; its one page is read", `CREATE INDEX CONCURRENTLY ON "public"."users" ("tenant_id");`)}},
		{"no index, and no key", "CREATE TABLE users (tenant_id text, id int)", users,
			[]Check{warning("index", "tables.0", "no index of public.users leads with tenant_id; all of its 0 pages are read, 1024 of them a batch at most", `CREATE INDEX CONCURRENTLY ON "public"."users" ("tenant_id");`)}},

		{"a wrong order", usersAndPosts, purgeOf("users", "posts"),
			[]Check{refused("order", "tables.1", "public.posts refers to public.users by posts_author_fkey, and stands after it", "tables in this order: public.posts, public.users")}},
		{"a circle", usersAndPosts + "ALTER TABLE users ADD pinned int REFERENCES posts; CREATE INDEX ON users (pinned)", usersPosts,
			[]Check{refused("order", "tables", "public.posts, public.users refer to each other in a circle: no order lets their rows go", "")}},
		{"children in a wrong order", ranked + `CREATE TABLE notes (id int, order_id int REFERENCES orders, line int REFERENCES lines); CREATE INDEX ON notes (order_id); CREATE INDEX ON notes (line); ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders`,
			withChild(withChild(purgeOf("orders"), lines), policy.Child{Table: public("notes"), Key: keyTo("id", "order_id")}),
			[]Check{refused("order", "tables.0.children.1", "public.notes refers to public.lines by notes_line_fkey, and stands after it", "put public.notes before public.lines among the children of public.orders, or among tables")}},
		{"rows that refer to each other", "CREATE TABLE users (tenant_id text, id int PRIMARY KEY, boss int REFERENCES users, UNIQUE (tenant_id, id)); CREATE INDEX ON users (boss)", users, nil},

		{"a key of a table that is not named", usersAndPosts + "ALTER TABLE posts DROP tenant_id", users,
			[]Check{refused("foreign key", "tables.0", "posts_author_fkey of public.posts refers to public.users, and the purge does not name public.posts",
				`children: [{table: public.posts, key: {id: author}}] of public.users, or a table of its own before it, or exclude: {public.posts: "why its rows stay"}`)}},
		{"a key of a table that is excluded", usersAndPosts, excluding(users, "posts"),
			[]Check{warning("foreign key", "tables.0", "posts_author_fkey of public.posts, which is excluded: the rows of public.users that it refers to stay, and are reported as stuck", "")}},
		{"a cascade to a table that is excluded", strings.Replace(usersAndPosts, "REFERENCES users", "REFERENCES users ON DELETE CASCADE", 1), excluding(users, "posts"),
			[]Check{refused("excluded", "exclude.public.posts", "rows of public.posts are to stay, and posts_author_fkey would change them as rows of public.users go (ON DELETE CASCADE)", "declare it among tables or as a child, or drop the key's action")}},
		{"a key that is emptied", strings.Replace(usersAndPosts, "REFERENCES users", "REFERENCES users ON DELETE SET NULL", 1), excluding(users, "posts"),
			[]Check{refused("excluded", "exclude.public.posts", "... (ON DELETE SET NULL)", "declare it among tables or as a child, or drop the key's action")}},
		{"a key of a partitioned table", usersAndPosts + "CREATE TABLE logs (day int, who int REFERENCES users) PARTITION BY LIST (day); CREATE TABLE logs_1 PARTITION OF logs FOR VALUES IN (1); CREATE INDEX ON logs (who)", usersPosts,
			[]Check{refused("foreign key", "tables.1", "logs_who_fkey of public.logs refers to public.users, and the purge does not name public.logs", "children: [{table: public.logs...")}},
		{"a key on what the table is a partition of", "CREATE TABLE all_users (tenant_id text, id int, PRIMARY KEY (tenant_id, id)) PARTITION BY LIST (tenant_id); CREATE TABLE users PARTITION OF all_users FOR VALUES IN ('a'); CREATE TABLE logs (org text, who int, FOREIGN KEY (org, who) REFERENCES all_users); CREATE INDEX ON logs (org, who)", users,
			[]Check{refused("foreign key", "tables.0", "... of public.logs refers to public.users, and the purge does not name public.logs", "children: [{table: public.logs, key: {tenant_id: org, id: who}}]...")}},

		{"forgotten tables", "CREATE TABLE users (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE invoices (id int, tenant_id int); CREATE MATERIALIZED VIEW totals AS SELECT tenant_id, count(*) FROM users GROUP BY 1; CREATE VIEW seen AS SELECT tenant_id FROM users; CREATE TEMP TABLE passing (tenant_id text)", users,
			[]Check{
				refused("forgotten", "tables", "table public.invoices has a column tenant_id, and the purge neither names nor excludes it", `exclude: {public.invoices: "why its rows stay"}, or - {table: public.invoices, column: tenant_id} among tables`),
				refused("forgotten", "tables", "materialized view public.totals has a column tenant_id, and the purge neither names nor excludes it", `exclude: {public.totals: "why its rows stay"}`),
			}},
		{"a forgotten foreign table", "CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE FOREIGN TABLE ft (tenant_id text) SERVER files OPTIONS (filename '/none'); CREATE TABLE users (tenant_id text, id int, PRIMARY KEY (tenant_id, id))", users,
			[]Check{refused("forgotten", "tables", "foreign table public.ft has a column tenant_id, and the purge neither names nor excludes it", `exclude: {public.ft: "why its rows stay"}`)}},
		{"a forgotten leaf", "CREATE TABLE users (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE logs (tenant_id text) PARTITION BY LIST (tenant_id); CREATE TABLE logs_a PARTITION OF logs FOR VALUES IN ('a')", users,
			[]Check{refused("forgotten", "tables", "table public.logs_a has a column tenant_id, and the purge neither names nor excludes it", "...")}},
		{"a column by another name is looked for too", "CREATE TABLE users (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE logs (org text); CREATE TABLE more (org text)", purgeOf("users", "logs org"),
			[]Check{warning("index", "tables.1", "...", "..."), refused("forgotten", "tables", "table public.more has a column org, and the purge neither names nor excludes it", "...")}},
		{"the key of the tenants' own table says nothing elsewhere", "CREATE TABLE tenants (id text PRIMARY KEY); CREATE TABLE users (tenant_id text REFERENCES tenants, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE other (id int)", purgeOf("users", "tenants id"), nil},
		{"what is excluded", usersAndPosts + "CREATE TABLE audit (tenant_id text)", excluding(usersPosts, "audit", "gone"),
			[]Check{warning("excluded", "exclude.public.gone", "public.gone does not exist", "leave it out")}},

		{"triggers", usersAndPosts + `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; CREATE TRIGGER veto BEFORE DELETE ON users FOR EACH ROW WHEN (current_setting('app.x', true) IS NULL) EXECUTE FUNCTION f(); CREATE TRIGGER says AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION f()`, usersPosts,
			[]Check{warning("trigger", "tables.1", "says on public.users fires on DELETE", ""), warning("trigger", "tables.1", "veto on public.users fires on DELETE, and can keep a row; its condition reads app.x, which set can give", "")}},
		{"a rule", usersAndPosts + "CREATE RULE keep AS ON DELETE TO users DO INSTEAD NOTHING", usersPosts, []Check{refused("trigger", "tables.1", "rule keep rewrites DELETE on public.users", "")}},
		{"a setting that is none", usersAndPosts, func() policy.Purge {
			p := usersPosts
			p.Set = []policy.Setting{{Name: "search_path_", Value: "x"}}
			return p
		}(), []Check{refused("server", "set.search_path_", "...", "")}},
	}
}

// TestPurgeChecks holds what an inspection says of each fault, and that it says nothing else.
func TestPurgeChecks(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t)
	for _, c := range purgeChecks() {
		t.Run(c.name, func(t *testing.T) {
			mustExec(t, conn, emptied+c.script)
			i, err := InspectPurge(t.Context(), Conn(conn), c.purge, "acme")
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(i.Checks), func(c Check) bool { return c.Result == OK })
			without, err := CheckPurge(t.Context(), Conn(conn), c.purge)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "checked without a tenant", without.Checks, i.Checks)
			if _, err := without.Open(Conn(conn)); err == nil || as[*RefusedError](err) || !strings.Contains(err.Error(), "checked for no tenant") {
				t.Errorf("a check without a tenant opens: %v", err)
			}
			own, err := InspectOwnPurge(t.Context(), Conn(conn), c.purge, "acme")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "of a component's own", own.Checks, slices.DeleteFunc(slices.Clone(i.Checks), func(c Check) bool { return c.Name == "forgotten" }))
			matches := func(want, have string) bool {
				if before, after, ok := strings.Cut(want, "..."); ok {
					return strings.HasPrefix(have, before) && strings.HasSuffix(have, after)
				}
				return want == have
			}
			for _, w := range c.want {
				n := slices.IndexFunc(got, func(g Check) bool {
					return g.Name == w.Name && g.Key == w.Key && g.Result == w.Result && matches(w.Detail, g.Detail) && matches(w.Fix, g.Fix)
				})
				if n < 0 {
					t.Errorf("it does not say %+v", w)
				} else {
					got = slices.Delete(got, n, n+1)
				}
			}
			for _, g := range got {
				t.Errorf("it says %+v", g)
			}
			_, err = i.Open(Conn(conn))
			if is := as[*RefusedError](err); is != (len(i.Refused()) > 0) {
				t.Errorf("%d checks refuse it, and Open says %v", len(i.Refused()), err)
			} else if is && !strings.HasPrefix(err.Error(), "purge tenant is refused; ") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPurgeRights holds that every right that is missing is named at once, that its grants are enough, and that a role that
// is kept from rows is refused.
func TestPurgeRights(t *testing.T) {
	db := pgtest.New(t)
	admin := db.Conn(t)
	mustExec(t, admin, usersAndPosts+`CREATE SCHEMA own; CREATE TABLE own.audit (id int, who int REFERENCES users); CREATE INDEX ON own.audit (who); REVOKE ALL ON SCHEMA public FROM public;
DROP ROLE IF EXISTS "Purger ""x"""; CREATE ROLE "Purger ""x"""; INSERT INTO users VALUES ('acme', 1), ('acme', 2); INSERT INTO own.audit VALUES (1, 1)`)
	defer mustExec(t, admin, `DROP OWNED BY "Purger ""x"""; DROP ROLE "Purger ""x"""`)
	p := purgeOf("posts", "users")
	p.Exclude = []policy.Exclusion{{Table: policy.Name{Schema: "own", Table: "audit"}, Reason: "the law"}}
	conn := db.Conn(t)
	mustExec(t, conn, `SET ROLE "Purger ""x"""`)
	inspect := func() []Check {
		t.Helper()
		i, err := InspectPurge(t.Context(), Conn(conn), p, "acme")
		if err != nil {
			t.Fatal(err)
		}
		return i.Refused()
	}
	got := inspect()
	want := []Check{refused("rights", "", "missing: USAGE on schema public; SELECT on public.posts; DELETE on public.posts; UPDATE on one column of public.posts, to lock a row before it goes; "+
		"SELECT on public.users; DELETE on public.users; UPDATE on one column of public.users, to lock a row before it goes; USAGE on schema own; SELECT (who) on own.audit", got[0].Fix)}
	same(t, "refused", got, want)
	mustExec(t, admin, got[0].Fix)
	same(t, "refused with the grants", len(inspect()), 0)
	opened := openPurge(t, Conn(conn), p, "acme")
	sums, err := purgeAll(t.Context(), opened, 100)
	if err != nil || sums[1].Removed != 1 || sums[1].Stuck != 1 {
		t.Errorf("%+v, %v", sums, err)
	}
	for _, table := range []string{"public.users", "own.audit"} {
		mustExec(t, admin, "ALTER TABLE "+table+" ENABLE ROW LEVEL SECURITY")
		same(t, "refused with row security on "+table, inspect(), []Check{refused("rls", "", "row security would hide rows of "+table+" from this role", "purge with a role that has BYPASSRLS")})
		if _, err := passOf(t.Context(), opened.Steps()[1], 100); err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("a purge that was opened before says %v", err)
		}
		mustExec(t, admin, "ALTER TABLE "+table+" DISABLE ROW LEVEL SECURITY")
	}
}

// TestPurgeIsWrongByItself holds that nothing is asked of the server where the purge has faults that need none.
func TestPurgeIsWrongByItself(t *testing.T) {
	conn := pgtest.New(t).Conn(t)
	_ = conn.Close(t.Context())
	if _, err := InspectPurge(t.Context(), Conn(conn), policy.Purge{Name: "tenant"}, "acme"); err == nil || !strings.HasPrefix(err.Error(), "purge tenant: tables: ") {
		t.Errorf("%v", err)
	}
}
