package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// numbered is what EXPLAIN puts behind an alias that a statement uses more than once.
var numbered = regexp.MustCompile(`_\d+$`)

// parentPlanFaults lists what a plan of a statement of the parent form does that it must not, or does not do that it must.
// The statement has the name that parentStatementsOf gives it.
func parentPlanFaults(a *Arm, name string, e explained) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if e.JIT != nil {
		fault("the plan is compiled")
	}
	s, first := parentShapes(a)[name]
	tableOf := map[string]*child{}
	for _, c := range a.children {
		tableOf[c.table.name.Table] = c
	}
	count := map[string]int{}
	e.Plan.each(func(n *node, above []*node) {
		alias := numbered.ReplaceAllString(n.Alias, "")
		locked := slices.ContainsFunc(above, func(m *node) bool { return m.Type == "LockRows" })
		byIndex := n.Type == "Index Scan" || n.Type == "Index Only Scan"
		bound := func(what string, columns ...string) {
			if !byIndex {
				fault("%s are found by %s", what, n.Type)
			}
			for _, c := range columns {
				if !regexp.MustCompile(`[( ]` + regexp.QuoteMeta(plainIdent(c)) + `\)? = `).MatchString(n.Cond) {
					fault("the index condition %q of %s has no %s", n.Cond, what, c)
				}
			}
		}
		byAddress := func(what string) {
			if n.Type != "Tid Scan" || n.TIDCond == "" {
				fault("%s are found by %s with TID Cond %q", what, n.Type, n.TIDCond)
			}
			count[what]++
		}
		switch target := n.Relation == a.table.name.Table; {
		case n.Relation == "" || n.Type == "ModifyTable":
		case target && alias == "e" && s.chunk:
			byAddress("the parent that is emptied")
		case target && alias == "e":
			count["range"]++
			if !byIndex || n.Index != a.index.name {
				fault("the range is read by %s through the index %q", n.Type, n.Index)
			}
			upper := regexp.MustCompile(`[( ]` + plainIdent(a.sweep.Age) + ` < `)
			lower := regexp.MustCompile(`[( ]` + plainIdent(a.sweep.Age) + ` >= `)
			if s.next {
				lower = regexp.MustCompile(`ROW\(` + plainIdent(a.sweep.Age) + `,`)
			}
			for _, want := range []*regexp.Regexp{upper, lower} {
				if !want.MatchString(n.Cond) {
					fault("the index condition %q has no %s", n.Cond, want)
				}
			}
			if n.Filter != "" && a.keyed() { // an index without a key passes over what stays by address
				fault("the range is searched for %q", n.Filter)
			}
		case target && alias == "d" && first:
			byAddress("rows to be locked")
			if !locked {
				fault("rows are read again without a lock")
			}
		case target && alias == "p":
			byAddress("picked parents")
		case alias == "d":
			byAddress("rows to be removed")
		case alias == "o":
			count["owed"]++
			var keys []string
			for _, k := range a.owed.key {
				keys = append(keys, k.Child)
			}
			bound("rows that protect", keys...)
			if want := map[string]string{"deliveries": "deliveries_open"}[n.Relation]; want != "" && n.Index != want {
				fault("rows that protect are found through %q; want %s", n.Index, want)
			}
		case a.owner != nil && n.Relation == a.owner.name.Table:
			bound("owners", "tenant_id", "id")
		case tableOf[n.Relation] != nil:
			count["children"]++
			c := tableOf[n.Relation]
			bound("children", c.childColumns()...)
			if strings.HasPrefix(name, "chunk_next") && c.parent == nil && len(c.keyset) > 0 && !slices.ContainsFunc(above, func(m *node) bool { return removing(m) }) {
				if !regexp.MustCompile(`[( ]` + plainIdent(c.keyset[0].name) + ` >=? `).MatchString(n.Cond) {
					fault("the index condition %q of the next children does not begin at the last key", n.Cond)
				}
			}
		default:
			fault("the plan reads %s", n.Relation)
		}
		switch n.Type {
		case "Seq Scan", "Bitmap Heap Scan", "Gather", "Gather Merge":
			fault("there is a %s on %q", n.Type, n.Relation)
		case "Sort", "Incremental Sort":
			n.each(func(m *node, _ []*node) {
				if m.Relation != "" {
					fault("%s is sorted", m.Relation)
				}
			})
		}
	})
	want := map[string]int{}
	owed := map[bool]int{true: 1}[a.owed != nil]
	switch {
	case s.chunk:
		want["the parent that is emptied"], want["owed"] = 1, owed
	case first:
		want["range"], want["owed"] = 1, owed
	case name == "recheck":
		want["picked parents"], want["owed"] = 1, 1
	case strings.HasPrefix(name, "child_"), strings.HasPrefix(name, "chunk_"):
		want["picked parents"], want["rows to be removed"] = 1, 1
	case name == "parents":
		want["rows to be removed"] = 1
	case name == "after":
		want["picked parents"], want["rows to be removed"], want["owed"] = 1, 1, owed
	}
	if first && s.deletes() {
		want["rows to be locked"] = 1
	}
	for _, what := range slices.Sorted(maps.Keys(want)) {
		if count[what] != want[what] && name != "parents" {
			fault("%d nodes for %q; want %d", count[what], what, want[what])
		}
	}
	return faults
}

// explainAt explains a statement at each limit, custom and generic, with so many addresses picked.
func (p planner) explainAt(t *testing.T, name string, st statement, limits []int, addresses int, values func(limit int) map[string]string, look func(name, where string, e explained)) {
	t.Helper()
	for _, limit := range limits {
		for _, generic := range []bool{true, false} {
			e, err := p.explain(t.Context(), "FORMAT JSON", name, st, values(limit), generic)
			if err != nil {
				t.Fatal(name, err)
			}
			look(name, fmt.Sprintf("limit %d, %d addresses, generic %t", limit, addresses, generic), e)
		}
	}
}

// explainParents explains every statement of the arm's batches under the settings that it runs with.
func explainParents(t *testing.T, p planner, limits []int, look func(name, where string, e explained)) {
	t.Helper()
	for name, st := range parentStatementsOf(p.arm) {
		if name == "settings" || name == "keys" {
			continue
		}
		for _, picked := range []string{`{}`, `{"(0,1)"}`, "{" + strings.TrimSuffix(strings.Repeat(`"(0,1)",`, 5000), ",") + "}"} {
			_, first := parentShapes(p.arm)[name]
			if first && picked != "{}" {
				continue // it only writes them
			}
			p.begin(t)
			if !first {
				mustExec(t, p.conn, nearKeysSQL)
			}
			mustExec(t, p.conn, fmt.Sprintf("SELECT set_config('%s', %s, true), set_config('%s', '{}', true)", setPicked, literal(picked), setPassed))
			if err := p.prepare(t.Context(), name, st); err != nil {
				t.Fatal(err)
			}
			p.explainAt(t, name, st, limits, countTIDs(picked), func(limit int) map[string]string { return parentPlanValues(p.arm, limit) }, look)
			p.end(t)
		}
	}
}

// TestPlansOfParents holds the plans of the parent form: at small and large limits, custom and generic, on small and large
// tables, analysed and not.
func TestPlansOfParents(t *testing.T) {
	for _, n := range []int{300, 5000} {
		conn := parentDB.New(t).Conn(t)
		mustExec(t, conn, parentRows(n))
		for _, stats := range []string{"never analysed", "analysed", "vacuumed"} {
			switch stats {
			case "analysed":
				mustExec(t, conn, "ANALYZE")
			case "vacuumed":
				mustExec(t, conn, "VACUUM")
			}
			for _, sp := range parentSpecimens() {
				seen, arm := 0, sp.open(t, Conn(conn))
				explainParents(t, planner{conn, arm}, []int{1, 5000}, func(name, where string, e explained) {
					seen++
					for _, f := range parentPlanFaults(arm, name, e) {
						t.Errorf("%s %s, %d rows, %s, %s: %s", sp.name, name, n, stats, where, f)
					}
				})
				if seen < 30 {
					t.Errorf("only %d plans of %s were looked at", seen, sp.name)
				}
			}
		}
	}
}

// TestPlanFaultsOfParents proves the rules: with an index gone, or a clause, each finds what it is there for.
func TestPlanFaultsOfParents(t *testing.T) {
	conn := parentDB.New(t).Conn(t)
	mustExec(t, conn, parentRows(300))
	mustExec(t, conn, "ANALYZE")
	for _, c := range []struct {
		specimen, statement, before string
		edit                        func(string) string
		want                        string
	}{
		{"parents_outbox", "remove", "DROP INDEX events_age", nil, "the range is read by"},
		{"parents_outbox", "remove_next", "DROP INDEX events_age; CREATE INDEX ON events (recorded_at)", nil, "events is sorted"},
		{"parents_unkeyed", "remove", "DROP INDEX pages_age", nil, "there is a Seq Scan"},
		{"parents_outbox", "remove", "DROP INDEX deliveries_open", nil, "want deliveries_open"},
		{"parents_outbox", "recheck", "DROP INDEX deliveries_open", nil, "want deliveries_open"},
		{"parents_unkeyed", "remove", "DROP INDEX pins_page", nil, "rows that protect are found by Seq Scan"},
		{"parents_unkeyed", "recheck", "DROP INDEX pins_page", nil, "rows that protect are found by Seq Scan"},
		{"parents_unkeyed", "child_links", "DROP INDEX links_page", nil, "children are found by Seq Scan"},
		{"parents_unkeyed", "parents", "DROP INDEX links_page", nil, "children are found by Seq Scan"},
		{"parents_unkeyed", "after", "DROP INDEX links_page", nil, "children are found by Seq Scan"},
		{"parents_unkeyed", "remove", "DROP INDEX links_page", nil, "children are found by Seq Scan"},
		{"parents_outbox", "chunk_next_deliveries", "ALTER TABLE deliveries DROP CONSTRAINT deliveries_event_id_receiver_key; CREATE INDEX ON deliveries (event_id)", nil, "is sorted"},
		{"parents_outbox", "chunk_next_deliveries", "ALTER TABLE deliveries DROP CONSTRAINT deliveries_event_id_receiver_key; CREATE INDEX ON deliveries (event_id)", nil, "does not begin at the last key"},
		{"parents_nested", "child_attempts", "ALTER TABLE attempts DROP CONSTRAINT attempts_pkey", nil, "children are found by Seq Scan"},
		{"parents_owner", "remove", "ALTER TABLE runs DROP CONSTRAINT runs_pkey", nil, "owners are found by Seq Scan"},
		{"parents_outbox", "remove", "", func(sql string) string { return strings.Replace(sql, "FOR UPDATE SKIP LOCKED", "", 1) }, "without a lock"},
		{"parents_outbox", "remove", "", func(sql string) string {
			return strings.Replace(sql, "WHERE d.ctid = ANY", "WHERE true OR d.ctid = ANY", 1)
		}, "rows to be locked are found by"},
		{"parents_outbox", "remove", "", func(sql string) string {
			return strings.Replace(sql, `AND e."recorded_at" >=`, `AND e."note" <> 'x' AND e."recorded_at" >=`, 1)
		}, "the range is searched for"},
		{"parents_outbox", "child_deliveries", "CREATE TABLE heir () INHERITS (deliveries)", func(sql string) string { return strings.ReplaceAll(sql, "FROM ONLY", "FROM") }, "the plan reads heir"},
	} {
		i := slices.IndexFunc(parentSpecimens(), func(s specimen) bool { return s.name == c.specimen })
		arm := parentSpecimens()[i].open(t, Conn(conn))
		p := planner{conn, arm}
		p.begin(t)
		if c.before != "" {
			mustExec(t, conn, c.before)
		}
		st := parentStatementsOf(arm)[c.statement]
		if _, first := parentShapes(arm)[c.statement]; !first {
			mustExec(t, conn, nearKeysSQL)
		}
		mustExec(t, conn, fmt.Sprintf(`SELECT set_config('%s', '{"(0,1)"}', true), set_config('%s', '{}', true)`, setPicked, setPassed))
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
		e, err := p.explain(t.Context(), "FORMAT JSON", "spoiled", st, parentPlanValues(arm, 5000), true)
		if err != nil {
			t.Fatal(err)
		}
		if faults := parentPlanFaults(arm, c.statement, e); !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s %s, %s: the rules find %q; want %q", c.specimen, c.statement, c.before, faults, c.want)
		}
		p.end(t)
	}
}
