package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// purgeSpecimenRows fills the tables of purgeSpecimenSchema: n rows of each kind, of twenty tenants, in no order of the heap.
func purgeSpecimenRows(n int) string {
	return fmt.Sprintf(`
INSERT INTO runs SELECT CASE g %% 20 WHEN 0 THEN 'acme' ELSE 'tenant-' || g %% 20 END, g, repeat('n', 50) FROM generate_series(1, %[1]d) g ORDER BY md5(g::text);
INSERT INTO marks SELECT id, tenant_id FROM runs; INSERT INTO logs SELECT id, tenant_id FROM runs;
INSERT INTO orders SELECT id, tenant_id FROM runs; INSERT INTO lines SELECT id * 2 + n, id FROM orders, generate_series(0, 1) n ORDER BY md5(id::text || n);
INSERT INTO parts SELECT id, n FROM lines, generate_series(1, 2) n ORDER BY md5(id::text || n);
INSERT INTO nodes SELECT g, CASE g %% 20 WHEN 0 THEN 'acme' ELSE 'tenant-' || g %% 20 END, CASE WHEN g > 100 THEN g - 100 END FROM generate_series(1, %[1]d) g;
INSERT INTO tenants SELECT DISTINCT tenant_id FROM runs; INSERT INTO seats SELECT id, tenant_id FROM runs; INSERT INTO labels SELECT id, tenant_id FROM runs;
INSERT INTO "Odd.One"."Run ""Events""" SELECT md5(tenant_id)::uuid, id FROM runs; INSERT INTO "Odd.One"."Notes --x" SELECT "Org's Id", "Order" FROM "Odd.One"."Run ""Events""";
INSERT INTO plans SELECT id, (enum_range(NULL::plan))[1 + id %% 2] FROM runs;
`, n)
}

// purgePlanValues are values for every parameter of the step's statements, at this limit.
func purgePlanValues(s *removal, limit int) map[string]string {
	v := s.values(limit, max(1, limit/firstLook), spot{})
	for i := range s.keys {
		v[argKey+strconv.Itoa(i)], v[argWhose+strconv.Itoa(i)], v[argEdge+strconv.Itoa(i)] = "100", "100", "1000000"
		if s.keys[i].typname == "text" {
			v[argKey+strconv.Itoa(i)], v[argWhose+strconv.Itoa(i)] = "acme", "acme"
		}
	}
	v[argLast+"0"], v[argWhose] = "100", "(0,1)"
	if s.spec.Table.Schema != "public" {
		v[argTenant] = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
	}
	return v
}

// castWords is how EXPLAIN writes a column that is compared as its domain's base type.
var castWords = regexp.MustCompile(`\(("(?:[^"]|"")*"|[\w.$]+)\)::\w+`)

// purgePlanFaults lists what the plan of a statement does that it must not, or does not do that it must.
func purgePlanFaults(s *removal, name string, e explained) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if e.JIT != nil {
		fault("the plan is compiled")
	}
	count := map[string]int{}
	scansPages := name == "look" && s.walk == byPages
	bound := func(n *node, what string, columns ...string) {
		if n.Type != "Index Scan" && n.Type != "Index Only Scan" {
			fault("%s are found by %s", what, n.Type)
		}
		for _, c := range columns {
			if !regexp.MustCompile(`[( ]` + regexp.QuoteMeta(plainIdent(c)) + ` = `).MatchString(n.Cond) {
				fault("the index condition %q of %s has no %s", n.Cond, what, c)
			}
		}
		count[what]++
	}
	byAddress := func(n *node, what string) {
		if n.Type != "Tid Scan" || n.TIDCond == "" {
			fault("%s are found by %s", what, n.Type)
		}
		count[what]++
	}
	e.Plan.each(func(n *node, above []*node) {
		n.Cond = castWords.ReplaceAllString(n.Cond, "$1")
		switch alias := numbered.ReplaceAllString(n.Alias, ""); {
		case n.Relation == "" || n.Type == "ModifyTable":
		case alias == "e":
			count["range"]++
			s.rangeFaults(n, name, fault, scansPages)
		case alias == "l":
			count["last row"]++
			s.edgeFaults(n, fault)
		case alias == "d" || alias == "p" && n.Relation == s.table().name.Table:
			byAddress(n, "rows by address")
		case alias == "x":
			i := slices.IndexFunc(s.chain[1:], func(l tier) bool { return l.table.name.Table == n.Relation })
			bound(n, "children", s.chain[i+1].columns()...)
			if strings.HasSuffix(name, "one_next") && !strings.Contains(n.Cond, ">") {
				fault("the index condition %q of the next children does not begin at the last key", n.Cond)
			}
		case alias == "u1" || alias == "u2":
			var columns []string
			for _, k := range s.chain[int(alias[1]-'0')].key {
				columns = append(columns, k.Parent)
			}
			if len(columns) == 1 {
				bound(n, "rows that a child refers to", columns...)
			} else {
				bound(n, "rows that a child refers to")
			}
		case alias == "c":
			i := slices.IndexFunc(s.refs, func(k reference) bool { return k.table.Table == n.Relation })
			bound(n, "referring rows", s.refs[i].columns()...)
		default:
			fault("the plan reads %s as %s", n.Relation, n.Alias)
		}
		switch n.Type {
		case "CTE Scan":
			if strings.HasPrefix(n.CTE, "held") && slices.ContainsFunc(above, func(m *node) bool { return m.Type == "Nested Loop" }) {
				fault("there is a loop in a loop")
			}
		case "Seq Scan", "Bitmap Heap Scan", "Gather", "Gather Merge":
			if !scansPages {
				fault("there is a %s on %q", n.Type, n.Relation)
			}
		case "Sort", "Incremental Sort":
			n.each(func(m *node, _ []*node) {
				if m.Relation != "" {
					fault("%s is sorted", m.Relation)
				}
			})
		}
	})
	want := map[string]int{}
	switch {
	case strings.HasPrefix(name, "pick"), strings.HasPrefix(name, "step"):
		want["range"] = 1
		if s.edged(purgeForms(s)[name]) {
			want["last row"] = 1
		}
		if strings.HasPrefix(name, "pick") {
			want["rows by address"] = len(s.chain)
		}
		if s.child() {
			want["children"] = len(s.chain) - 1
		}
	case name == "delete":
		want["rows by address"], want["referring rows"], want["rows that a child refers to"] = 1, len(s.refs), len(s.chain)-1
	case name == "look":
		want["range"], want["children"] = 1, len(s.chain)-1
	default:
		want["referring rows"] = len(s.refs)
	}
	for what, n := range want {
		if count[what] != n {
			fault("%d nodes for %q; want %d", count[what], what, n)
		}
	}
	return faults
}

// edgeFaults are those of how the tenant's last row is found: at the end of the index of the walk.
func (s *removal) edgeFaults(n *node, fault func(string, ...any)) {
	if n.Type != "Index Scan" && n.Type != "Index Only Scan" || n.Index != s.index || n.Filter != "" {
		fault("the last row is read by %s of %s, and searched for %q", n.Type, n.Index, n.Filter)
	}
	if col := regexp.QuoteMeta(plainIdent(s.column().name)); !regexp.MustCompile(`^\(` + col + `\)?(::text)? <= [^()]+(\(\w+\))?[^()]*\)$`).MatchString(n.Cond) {
		fault("the index condition of the last row is %q", n.Cond)
	}
}

// rangeFaults are those of how the tenant's rows are found.
func (s *removal) rangeFaults(n *node, name string, fault func(string, ...any), scansPages bool) {
	col := regexp.QuoteMeta(plainIdent(s.column().name))
	has := func(pattern string) {
		if !regexp.MustCompile(pattern).MatchString(n.Cond) {
			fault("the index condition %q of the range has no %s", n.Cond, pattern)
		}
	}
	one := strings.HasSuffix(name, "_one") || strings.HasSuffix(name, "_one_next")
	switch {
	case scansPages:
	case one && s.walk == byPages:
		if n.Type != "Tid Scan" {
			fault("the row that is emptied is found by %s", n.Type)
		}
	case s.walk == byPages:
		if n.Type != "Tid Range Scan" || !strings.Contains(n.TIDCond, "ctid >") || !strings.Contains(n.TIDCond, "ctid <") {
			fault("the pages are read by %s with TID Cond %q", n.Type, n.TIDCond)
		}
	case n.Type != "Index Scan" && n.Type != "Index Only Scan":
		fault("the range is read by %s", n.Type)
	case one:
		has(`[( ]` + regexp.QuoteMeta(plainIdent(s.keys[0].name)) + ` = `)
	case name == "look" && s.walk != byPages:
		has(`[( ]` + col + `\)?(::text)? = `)
	case s.walk == byIndex:
		has(`[( ]` + col + `\)?(::text)? = `)
		if n.Index != s.index {
			fault("the range is read through %s", n.Index)
		}
	default:
		if n.Index != s.index {
			fault("the range is read through %s", n.Index)
		}
		if n.Filter != "" {
			fault("the range is searched for %q", n.Filter)
		}
		switch {
		case !strings.HasSuffix(name, "_next"):
			has(`[( ]` + col + `\)?(::text)? >= `)
			has(`[( ]` + col + `\)?(::text)? <= `)
		case s.alone():
			has(`[( ]` + col + `\)?(::text)? > `)
			has(`[( ]` + col + `\)?(::text)? <= `)
		default:
			has(`ROW\(` + col + `(::text)?, [^()]+\) > ROW\(`)
			has(`ROW\(` + col + `(::text)?, [^()]+\) <= ROW\(`)
		}
	}
}

// explainPurge explains every statement of the step under the settings that it runs with.
func explainPurge(t *testing.T, p planner, s *removal, limits []int, look func(name, where string, e explained)) {
	t.Helper()
	for name, st := range purgeStatementsOf(s) {
		if name == "settings" {
			continue
		}
		for _, picked := range []string{`{}`, "{" + strings.TrimSuffix(strings.Repeat(`"(0,1)",`, 5000), ",") + "}"} {
			if picked != "{}" && (strings.HasPrefix(name, "pick") || strings.HasPrefix(name, "step") || name == "look") {
				continue // it only writes them
			}
			beginPurge(t, p, s, picked)
			if err := p.prepare(t.Context(), name, st); err != nil {
				t.Fatal(err)
			}
			p.explainAt(t, name, st, limits, countTIDs(picked), func(limit int) map[string]string { return purgePlanValues(s, limit) }, look)
			p.end(t)
		}
	}
}

// beginPurge begins a transaction with the settings of a batch and with these picked.
func beginPurge(t testing.TB, p planner, s *removal, picked string) {
	t.Helper()
	mustExec(t, p.conn, "BEGIN ISOLATION LEVEL READ COMMITTED")
	mustExec(t, p.conn, s.settingsSQL().inline(map[string]string{argStatementTimeout: "30000", argLockTimeout: "500"}))
	mustExec(t, p.conn, fmt.Sprintf("SELECT set_config('%s', %s, true), set_config('%s', '{}', true)", setPicked, literal(picked), setPassed))
}

// TestPlansOfPurges holds the plans of a purge: at small and large limits, custom and generic, on small and large tables,
// analysed and not, and where one tenant has nearly all rows.
func TestPlansOfPurges(t *testing.T) {
	for _, n := range []int{300, 4000} {
		conn := purgeDB.New(t).Conn(t)
		mustExec(t, conn, purgeSpecimenRows(n))
		for _, stats := range []string{"never analysed", "analysed", "one tenant"} {
			switch stats {
			case "analysed":
				mustExec(t, conn, "VACUUM ANALYZE")
			case "one tenant":
				mustExec(t, conn, "DELETE FROM nodes WHERE tenant_id <> 'acme'; UPDATE runs SET tenant_id = 'acme'; UPDATE marks SET tenant_id = 'acme'; UPDATE logs SET org = 'acme'; UPDATE orders SET tenant_id = 'acme'; UPDATE seats SET tenant_id = 'acme'")
				mustExec(t, conn, "VACUUM ANALYZE")
			}
			for _, sp := range purgeSpecimens() {
				seen, s := 0, sp.open(t, Conn(conn))
				explainPurge(t, planner{conn: conn}, s, []int{1, 5000}, func(name, where string, e explained) {
					seen++
					for _, f := range purgePlanFaults(s, name, e) {
						t.Errorf("%s %s, %d rows, %s, %s: %s", sp.name, name, n, stats, where, f)
					}
				})
				if seen < 20 {
					t.Errorf("only %d plans of %s were looked at", seen, sp.name)
				}
			}
		}
	}
}

// TestPlanFaultsOfPurges proves the rules: with an index gone, or a clause, each finds what it is there for.
func TestPlanFaultsOfPurges(t *testing.T) {
	conn := purgeDB.New(t).Conn(t)
	mustExec(t, conn, purgeSpecimenRows(300))
	mustExec(t, conn, "ANALYZE")
	re := func(pattern, with string) func(string) string {
		return func(sql string) string { return regexp.MustCompile(pattern).ReplaceAllString(sql, with) }
	}
	for _, c := range []struct {
		specimen, statement, before string
		edit                        func(string) string
		want                        string
	}{
		{"purge_key", "pick", "ALTER TABLE runs DROP CONSTRAINT runs_pkey", nil, "the range is read by Seq Scan"},
		{"purge_key", "pick", "ALTER TABLE runs DROP CONSTRAINT runs_pkey; CREATE INDEX other ON runs (tenant_id)", nil, "runs is sorted"},
		{"purge_key", "pick_next", "ALTER TABLE runs DROP CONSTRAINT runs_pkey; CREATE INDEX other ON runs (id)", nil, "the range is read"},
		{"purge_key", "pick", "", re(`e\."tenant_id" >= (\S+)`, "e.\"tenant_id\" >= $1 AND e.\"note\" <> 'x'"), "the range is searched for"},
		{"purge_key", "pick", "", re(`ORDER BY e\."tenant_id", e\."id"`, `ORDER BY e."note"`), "runs is sorted"},
		{"purge_key", "pick", "", re(`ORDER BY l\."tenant_id" DESC`, `ORDER BY l."note" DESC, l."tenant_id"`), "runs is sorted"},
		{"purge_key", "pick", "", re(`l\."tenant_id" <= (\S+)`, "($1) IS NOT NULL"), "the index condition of the last row"},
		{"purge_key", "pick", "", re(`AND \(SELECT true FROM seen s LIMIT 1\)`, "AND l.\"note\" <> 'x'"), "searched for"},
		{"purge_child", "pick", "ALTER TABLE orders DROP CONSTRAINT orders_tenant_id_id_key", nil, "the last row is read by"},
		{"purge_key", "pick_next", "", re(`<= (\([^\n]*?\))  --`, "IS DISTINCT FROM $1  --"), "has no ROW"},
		{"purge_index", "pick", "DROP INDEX marks_tenant", nil, "the range is read by Seq Scan"},
		{"purge_pages", "pick", "", re(`e\.ctid < (\S+) `, "($1) IS NOT NULL "), "the pages are read by Tid Range Scan"},
		{"purge_pages", "pick", "CREATE INDEX ON logs (org); SET LOCAL enable_tidscan = off", re(`\(e\."org" = (\S+)\) IS TRUE`, `e."org" = $1`), "the pages are read by Index Scan"},
		{"purge_child", "pick", "ALTER TABLE lines DROP CONSTRAINT lines_order_id_id_key", nil, "children are found by Seq Scan"},
		{"purge_child", "pick_one_next", "", re(`\(x\."id"\) > \((\S+)\)`, "($1) IS NOT NULL"), "does not begin at the last key"},
		{"purge_child", "pick", "", re(`d\.ctid = ANY \(ARRAY\(SELECT s\.tid`, "true OR d.ctid = ANY (ARRAY(SELECT s.tid"), "rows by address are found by"},
		{"purge_child", "pick", "", re(`\((s\.t0 IN \(SELECT h\.tid FROM held0 h\))\) IS TRUE`, "$1"), "there is a loop in a loop"},
		{"purge_child", "delete", "ALTER TABLE lines DROP CONSTRAINT lines_order_id_fkey; ALTER TABLE orders DROP CONSTRAINT orders_pkey, DROP CONSTRAINT orders_tenant_id_id_key", nil, "rows that a child refers to are found by Seq Scan"},
		{"purge_referred", "delete", "ALTER TABLE lines DROP CONSTRAINT lines_order_id_id_key", nil, "referring rows are found by Seq Scan"},
		{"purge_referred", "after", "ALTER TABLE lines DROP CONSTRAINT lines_order_id_id_key", nil, "referring rows are found by Seq Scan"},
		{"purge_self", "delete", "DROP INDEX nodes_up", nil, "referring rows are found by Seq Scan"},
		{"purge_key", "delete", "", re(`d\.ctid = ANY \(current_setting\('prunectl\.picked'\)::tid\[\]\)`, "true"), "rows by address are found by"},
		{"purge_key", "delete", "CREATE TABLE heir () INHERITS (runs)", re("FROM ONLY", "FROM"), `2 nodes for "rows by address"`},
	} {
		i := slices.IndexFunc(purgeSpecimens(), func(s purgeSpecimen) bool { return s.name == c.specimen })
		s := purgeSpecimens()[i].open(t, Conn(conn))
		p := planner{conn: conn}
		beginPurge(t, p, s, `{"(0,1)"}`)
		if c.before != "" {
			mustExec(t, conn, c.before)
		}
		st := purgeStatementsOf(s)[c.statement]
		if c.edit != nil {
			edited := c.edit(st.sql)
			if edited == st.sql {
				t.Errorf("%s %s: the edit changes nothing", c.specimen, c.statement)
			}
			st.sql = edited
		}
		if err := p.prepare(t.Context(), "spoiled", st); err != nil {
			t.Fatal(c.specimen, c.statement, err)
		}
		e, err := p.explain(t.Context(), "FORMAT JSON", "spoiled", st, purgePlanValues(s, 5000), true)
		if err != nil {
			t.Fatal(err)
		}
		if faults := purgePlanFaults(s, c.statement, e); !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s %s, %s: the rules find %q; want %q", c.specimen, c.statement, c.before, faults, c.want)
		}
		p.end(t)
	}
}
