package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/pruner"
)

// node is one node of a plan, as EXPLAIN (FORMAT JSON) writes it in every version.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Alias    string `json:"Alias"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	TIDCond  string `json:"TID Cond"`
	Filter   string `json:"Filter"`
	Subplan  string `json:"Subplan Name"`
	Strategy string `json:"Strategy"`
	CTE      string `json:"CTE Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Records  int    `json:"WAL Records"`
	WAL      int    `json:"WAL Bytes"`
	FPI      int    `json:"WAL FPI"`
	Loops    int    `json:"Actual Loops"`
	Plans    []node `json:"Plans"`
}

// explained is one element of EXPLAIN (FORMAT JSON).
type explained struct {
	Plan node            `json:"Plan"`
	JIT  json.RawMessage `json:"JIT"`
}

// each calls f for every node, with the nodes above it.
func (n *node) each(f func(n *node, above []*node)) { n.walk(nil, f) }

func (n *node) walk(above []*node, f func(*node, []*node)) {
	f(n, above)
	above = append(slices.Clone(above), n)
	for i := range n.Plans {
		n.Plans[i].walk(above, f)
	}
}

// form is what the plan does to tables, without what depends on the data: which nodes stand over a table, in which order.
// What it does with rows that it has read already may change with their number.
func (n *node) form() string {
	var b strings.Builder
	n.each(func(n *node, above []*node) {
		tables := false
		n.each(func(m *node, _ []*node) { tables = tables || m.Relation != "" })
		if !tables {
			return
		}
		fmt.Fprintf(&b, "%s%s", strings.Repeat("  ", len(above)), n.Type)
		for _, s := range []string{n.Strategy, n.Subplan, n.Relation, n.Alias, n.Index, n.CTE} {
			if s != "" && !strings.HasPrefix(s, "InitPlan") { // numbered and named differently in 17 and later
				b.WriteString(" " + s)
			}
		}
		b.WriteString("\n")
	})
	return b.String()
}

// planner explains the statements of one arm under the settings of its batches, in a transaction that is never committed.
type planner struct {
	conn *pgx.Conn
	arm  *Arm
}

func (p planner) begin(t testing.TB) {
	t.Helper()
	mustExec(t, p.conn, "BEGIN ISOLATION LEVEL READ COMMITTED")
	st := p.arm.settingsSQL()
	mustExec(t, p.conn, st.inline(map[string]string{argStatementTimeout: "30000", argLockTimeout: "500"}))
}

func (p planner) end(t testing.TB) {
	t.Helper()
	mustExec(t, p.conn, "ROLLBACK")
	if err := p.conn.DeallocateAll(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// prepare makes a prepared statement of st: only such a one has a generic plan.
func (p planner) prepare(ctx context.Context, name string, st statement) error {
	return p.conn.PgConn().Exec(ctx, "PREPARE "+name+" AS "+st.sql).Close()
}

// explain plans a prepared statement with these values.
func (p planner) explain(ctx context.Context, options, name string, st statement, values map[string]string, generic bool) (explained, error) {
	mode := map[bool]string{false: "force_custom_plan", true: "force_generic_plan"}[generic]
	if _, err := p.conn.PgConn().Exec(ctx, "SET LOCAL plan_cache_mode = "+mode).ReadAll(); err != nil {
		return explained{}, err
	}
	var args []string
	for _, a := range st.args {
		args = append(args, literal(values[a]))
	}
	call := name
	if len(args) > 0 {
		call += "(" + strings.Join(args, ", ") + ")"
	}
	rs, err := p.conn.PgConn().Exec(ctx, "EXPLAIN ("+options+") EXECUTE "+call).ReadAll()
	if err != nil {
		return explained{}, err
	}
	var es []explained
	if err := json.Unmarshal(rs[0].Rows[0][0], &es); err != nil {
		return explained{}, err
	}
	return es[0], nil
}

// planFaults lists what a plan of a batch does that it must not, or does not do that it must.
func planFaults(a *Arm, s shape, e explained) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if e.JIT != nil {
		fault("the plan is compiled")
	}
	count := map[string]int{}
	e.Plan.each(func(n *node, above []*node) {
		under := func(typ string) bool {
			return slices.ContainsFunc(above, func(m *node) bool { return m.Type == typ })
		}
		switch {
		case n.Relation == "":
		case n.Type == "ModifyTable":
			count["delete"]++
		case removing(n):
			if n.Type != "Tid Scan" || n.TIDCond == "" {
				fault("rows to be removed are found by %s with TID Cond %q", n.Type, n.TIDCond)
			}
			if n.Cond != "" {
				fault("rows to be removed are found by the condition %q", n.Cond)
			}
			count["by address"]++
		case n.Relation == a.table.name.Table:
			count["range"]++
			if n.Type != "Index Scan" && n.Type != "Index Only Scan" {
				fault("the range of %s is read by %s", n.Relation, n.Type)
			}
			// What only matches and the guard protect is told in the rows that were read; searching for them would have no bound.
			untied := s.group && len(a.ties.columns) == 0
			picked := slices.ContainsFunc(above, func(m *node) bool { return m.Subplan == "CTE picked" })
			if n.Filter != "" && !untied && !picked {
				fault("the range is searched for %q", n.Filter)
			}
			if n.Index != a.index.name {
				fault("the range is read through the index %q; want %s", n.Index, a.index.name)
			}
			for _, want := range rangeConds(a, s) {
				if !want.MatchString(n.Cond) {
					fault("the index condition %q has no %s", n.Cond, want)
				}
			}
		case a.owner != nil && n.Relation == a.owner.name.Table:
			count["owner"]++
			if n.Type != "Index Scan" && n.Type != "Index Only Scan" {
				fault("owners are read by %s", n.Type)
			}
			for _, k := range a.arm.Owner.Key {
				if !regexp.MustCompile(`[( ]` + regexp.QuoteMeta(plainIdent(k.Owner)) + ` = `).MatchString(n.Cond) {
					fault("the index condition %q on owners has no %s", n.Cond, k.Owner)
				}
			}
			if under("LockRows") {
				count["locked owner"]++
			}
		default:
			fault("the plan reads %s", n.Relation)
		}
		switch n.Type {
		case "Seq Scan", "Bitmap Heap Scan", "Gather", "Gather Merge":
			fault("there is a %s on %q", n.Type, n.Relation)
		case "Sort", "Incremental Sort":
			n.each(func(m *node, _ []*node) {
				if m.Relation != "" && !removing(m) {
					fault("%s is sorted", m.Relation)
				}
			})
		}
	})
	want := map[string]int{"range": 2} // edge and tally, or edge, keys and picked
	if a.owner != nil {
		want["range"] = 3
	}
	if s.group {
		want["range"] = 1
	}
	switch {
	case s.look:
		want["range"] = 1
	case s.mode == pruner.Remove:
		want["delete"], want["by address"] = 1, 1
	case s.mode == pruner.SkipLocked:
		want["delete"], want["by address"] = 1, 2
	}
	if a.owner != nil {
		want["owner"], want["locked owner"] = 2, 1
		if a.arm.Owner.Final || s.look {
			want["locked owner"] = 0
		}
	}
	for _, what := range []string{"range", "delete", "by address", "owner", "locked owner"} {
		if count[what] != want[what] {
			fault("%d nodes for %q; want %d", count[what], what, want[what])
		}
	}
	return faults
}

// plainIdent is a name as EXPLAIN writes it.
func plainIdent(name string) string {
	if regexp.MustCompile(`^[a-z_][a-z0-9_]*$`).MatchString(name) && name != "order" {
		return name
	}
	return ident(name)
}

// rangeConds are the conditions that an index scan of the range must have.
func rangeConds(a *Arm, s shape) (conds []*regexp.Regexp) {
	add := func(pattern, op string) {
		conds = append(conds, regexp.MustCompile(`[( ]`+pattern+`\)? `+op+` `))
	}
	at := rangePattern(a)
	lower, upper := ">=", "<="
	if a.ties.desc {
		lower, upper = upper, lower
	}
	switch {
	case !s.group:
		add(at, "<")
		add(at, ">=")
	case len(a.ties.columns) == 0:
		add(at, "=")
	default:
		add(at, upper)
		if !s.next {
			add(at, lower)
			break
		}
		row := at
		for _, c := range a.ties.columns {
			row += regexp.QuoteMeta(", " + plainIdent(c.name))
		}
		conds = append(conds, regexp.MustCompile(`ROW\(\(*`+row+`\)`))
	}
	for _, e := range a.arm.Equal {
		if slices.Contains(a.index.columns, e.Column) {
			add(regexp.QuoteMeta(plainIdent(e.Column)), "=")
		}
	}
	return conds
}

// specimenRows fills the tables of specimenSchema: n events and jobs, ages of 90 days up to now, 2 % of the owners alive,
// in no order of the heap, so that nothing but the statement gives an order.
func specimenRows(n int) string {
	return fmt.Sprintf(`
INSERT INTO runs SELECT 'tenant-' || g %% 20, 'run-' || g, CASE WHEN g %% 50 = 0 THEN 'running' WHEN g %% 3 = 0 THEN 'failed' ELSE 'completed' END, repeat('n', 50)
  FROM generate_series(0, %[1]d / 20) g;
INSERT INTO run_events SELECT 'tenant-' || g / 20 %% 20, 'run-' || g / 20, g %% 20, CASE WHEN g %% 7 = 0 THEN 'keep' ELSE 'step' END, now() - interval '90 days' + g * (interval '90 days' / %[1]d), repeat('n', 50)
  FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO jobs SELECT g, (enum_range(NULL::job_state))[1 + g %% 5], 'q' || g %% 3, CASE WHEN g %% 5 > 1 THEN now() - interval '90 days' + g * (interval '90 days' / %[1]d) END, repeat('n', 50)
  FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO tasks SELECT j.id, j.state, j.finished_at, j.note FROM jobs j;
INSERT INTO tickets SELECT g, (ARRAY['open', 'closed', 'spam', 'closed'])[1 + g %% 4], now() - interval '90 days' + g * (interval '90 days' / %[1]d), repeat('n', 50) FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO notes SELECT g, (ARRAY['a', 'b', NULL])[1 + g %% 3], now() - interval '90 days' + g * (interval '90 days' / %[1]d), repeat('n', 50) FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO lines SELECT n.* FROM notes n;
INSERT INTO marks SELECT n.id, n.created_at, n.note FROM notes n;
INSERT INTO watched SELECT g, (ARRAY['completed', 'failed', 'open'])[1 + g %% 3], now() - interval '90 days' + g * (interval '90 days' / %[1]d), repeat('n', 50) FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
INSERT INTO "Audit-Log"."Run ""Events""" SELECT g, CASE WHEN g %% 3 > 0 THEN 'It''s done' ELSE 'Open' END::"Audit-Log"."Status", now() - interval '90 days' + g * (interval '90 days' / %[1]d) FROM generate_series(0, %[1]d - 1) g ORDER BY md5(g::text);
`, n) + rowSpecimenRows(n)
}

// planValues are values for every parameter of a batch's statements, at this limit.
func planValues(a *Arm, limit int) map[string]string {
	v := map[string]string{
		argCutoff: timestamptz(a.arm.Window.Cutoff(time.Now()).Time().UnixMicro()), argAfter: timestamptz(a.sweep.Since.UnixMicro()), argLimit: strconv.Itoa(limit), argPassed: "{}",
	}
	for i, c := range a.ties.columns {
		v[argTie+strconv.Itoa(i)] = "1"
		if c.typname == "text" {
			v[argTie+strconv.Itoa(i)] = "tenant-1"
		}
	}
	return v
}

// planned is a statement of an arm with its shape, for plans: those of batches, and the looks.
type planned struct {
	shape
	statement
}

func plannedOf(a *Arm) map[string]planned {
	m := map[string]planned{"plan": {shape{look: true}, a.planSQL()}}
	for name, s := range shapesOf(a) {
		m[name] = planned{s, a.render(s)}
	}
	return m
}

// TestPlans holds that every statement of a batch has one plan and the right one: whatever the limit, custom and generic,
// on small and large tables, analysed and not.
func TestPlans(t *testing.T) {
	forms := map[string]map[string][]string{} // by statement, by plan: where
	for _, n := range []int{300, 100_000} {
		conn := specimenDB.New(t).Conn(t)
		mustExec(t, conn, specimenRows(n))
		for _, stats := range []string{"never analysed", "analysed", "vacuumed"} {
			switch stats {
			case "analysed":
				mustExec(t, conn, "ANALYZE")
			case "vacuumed":
				mustExec(t, conn, "VACUUM")
			}
			for _, sp := range specimens() {
				arm := sp.open(t, Conn(conn))
				p := planner{conn, arm}
				p.begin(t)
				for name, pl := range plannedOf(arm) {
					s, st := pl.shape, pl.statement
					if err := p.prepare(t.Context(), name, st); err != nil {
						t.Fatal(err)
					}
					look := func(where string, limit int, generic bool) {
						e, err := p.explain(t.Context(), "FORMAT JSON", name, st, planValues(arm, limit), generic)
						if err != nil {
							t.Fatal(err)
						}
						where = fmt.Sprintf("%d rows, %s, %s", n, stats, where)
						for _, f := range planFaults(arm, s, e) {
							t.Errorf("%s %s, %s: %s", sp.name, name, where, f)
						}
						key := sp.name + " " + name
						if forms[key] == nil {
							forms[key] = map[string][]string{}
						}
						forms[key][e.Plan.form()] = append(forms[key][e.Plan.form()], where)
					}
					look("generic", 5000, true)
					limits := []int{5000}
					if s.mode == pruner.Remove && !s.look {
						limits = []int{1, 100, 5000, 20000}
					}
					for _, limit := range limits {
						look(fmt.Sprintf("custom at %d", limit), limit, false)
					}
				}
				p.end(t)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(forms)) {
		if len(forms[key]) > 1 {
			var b strings.Builder
			for form, where := range forms[key] {
				fmt.Fprintf(&b, "\n%d times, as with %s:\n%s", len(where), where[0], form)
			}
			t.Errorf("%s has %d plans:%s", key, len(forms[key]), b.String())
		}
	}
}

// removing reports whether the node looks for the rows to be removed: alias d, or d_1 where the statement has two.
func removing(n *node) bool { return n.Alias == "d" || strings.HasPrefix(n.Alias, "d_") }

// TestPlansOfGroups holds that a group of equal ages is walked through the serving index, however large it is beside the
// table and whatever other index has its key in order: the primary key would lead past all rows of other ages.
func TestPlansOfGroups(t *testing.T) {
	for _, script := range []string{
		specimenRows(20_000) + `UPDATE lines SET created_at = '2020-01-01'; UPDATE jobs SET finished_at = '2020-01-01' WHERE id > 10000; UPDATE tasks SET finished_at = '2020-01-01' WHERE id > 10000;`,
		specimenRows(20_000) + `UPDATE lines SET created_at = date_trunc('month', created_at); UPDATE jobs SET finished_at = date_trunc('month', finished_at);`,
	} {
		conn := specimenDB.New(t).Conn(t)
		mustExec(t, conn, script)
		mustExec(t, conn, "VACUUM ANALYZE")
		for _, sp := range specimens() {
			arm := sp.open(t, Conn(conn))
			if len(arm.ties.columns) == 0 || arm.owner != nil {
				continue
			}
			p := planner{conn, arm}
			p.begin(t)
			for name, s := range map[string]shape{"first": {group: true}, "next": {group: true, next: true}} {
				st := arm.render(s)
				if err := p.prepare(t.Context(), name, st); err != nil {
					t.Fatal(err)
				}
				for _, limit := range []int{1, 100, 5000} {
					for _, generic := range []bool{false, true} {
						values := planValues(arm, limit)
						values[argAfter], values[argTie+"0"] = "2020-01-01 00:00:00+00", "15000"
						e, err := p.explain(t.Context(), "FORMAT JSON", name, st, values, generic)
						if err != nil {
							t.Fatal(err)
						}
						for _, f := range planFaults(arm, s, e) {
							t.Errorf("%s %s, limit %d, generic %t: %s", sp.name, name, limit, generic, f)
						}
					}
				}
			}
			p.end(t)
		}
	}
}

// TestPlansBesideOtherIndexes holds what is left to the planner where several indexes serve: which of them it takes, but
// not whether the range bounds it.
func TestPlansBesideOtherIndexes(t *testing.T) {
	conn := specimenDB.New(t).Conn(t)
	mustExec(t, conn, specimenRows(20_000)+`
CREATE INDEX ON run_events (created_at); CREATE INDEX ON run_events (tenant_id, run_id, created_at); CREATE INDEX ON run_events (tenant_id, run_id); CREATE INDEX ON run_events (kind, created_at);
CREATE INDEX ON jobs (finished_at DESC); CREATE INDEX ON jobs (state); CREATE INDEX ON jobs (state, finished_at); CREATE INDEX ON jobs (queue, finished_at, id); CREATE INDEX ON jobs (finished_at) WHERE state = 'discarded';
CREATE INDEX ON tasks (state); CREATE INDEX ON tasks (finished_at, id); CREATE INDEX ON notes (kind); CREATE INDEX ON notes (created_at); CREATE INDEX ON lines (kind, created_at); CREATE INDEX ON marks (id, created_at);
CREATE INDEX ON runs (status); CREATE INDEX ON runs (id); CREATE INDEX ON runs (status, tenant_id, id);`)
	mustExec(t, conn, "VACUUM ANALYZE")
	for _, sp := range specimens() {
		arm := sp.open(t, Conn(conn))
		p := planner{conn, arm}
		p.begin(t)
		for name, s := range shapesOf(arm) {
			st := arm.render(s)
			if err := p.prepare(t.Context(), name, st); err != nil {
				t.Fatal(err)
			}
			for _, generic := range []bool{false, true} {
				e, err := p.explain(t.Context(), "FORMAT JSON", name, st, planValues(arm, 5000), generic)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range planFaults(arm, s, e) {
					// Any index whose condition is the age will do, and any by which an owner is one row by its statistics.
					if !strings.HasPrefix(f, "the range is read through the index") && !strings.Contains(f, "on owners has no") {
						t.Errorf("%s %s, generic %t: %s", sp.name, name, generic, f)
					}
				}
			}
		}
		p.end(t)
	}
}

// TestPlanFaults proves the rules: with an index gone, or with the delete side by range, each finds what it is there for.
func TestPlanFaults(t *testing.T) {
	conn := specimenDB.New(t).Conn(t)
	mustExec(t, conn, specimenRows(300))
	mustExec(t, conn, "ANALYZE")
	const compiled = "SET LOCAL jit = on; SET LOCAL jit_above_cost = 0"
	byRange := func(sql string) string {
		return strings.Replace(strings.Replace(sql, "d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])", "true", 1), ") IS TRUE", ")", 1)
	}
	for _, c := range []struct {
		specimen string
		s        shape
		before   string
		edit     func(string) string
		want     string
	}{
		{"owner", shape{}, "DROP INDEX run_events_retention", nil, "the range is read through the index"},
		{"owner", shape{}, "DROP INDEX run_events_retention", nil, "the index condition"},
		{"state", shape{}, "DROP INDEX jobs_finished", nil, "the range is read through the index"},
		{"state", shape{group: true, next: true}, "DROP INDEX jobs_finished", nil, "ROW"},
		{"state_arm", shape{}, "DROP INDEX tasks_finished; CREATE INDEX ON tasks (finished_at)", nil, "has no [( ]state"},
		{"none_gate", shape{group: true}, "DROP INDEX lines_age; CREATE INDEX ON lines (created_at)", nil, "lines is sorted"},
		{"owner", shape{}, "ALTER TABLE runs DROP CONSTRAINT runs_pkey", nil, "owners are read by Seq Scan"},
		{"owner", shape{}, "ALTER TABLE runs DROP CONSTRAINT runs_pkey; CREATE INDEX ON runs (tenant_id)", nil, "on owners has no id"},
		{"owner", shape{}, "", byRange, "rows to be removed are found by Index Scan"},
		{"owner", shape{}, "", func(sql string) string { return strings.Replace(sql, " FOR SHARE SKIP LOCKED", " OFFSET 0", 1) }, `0 nodes for "locked owner"`},
		{"owner", shape{}, "CREATE TABLE heir () INHERITS (run_events)", func(sql string) string { return strings.ReplaceAll(sql, "FROM ONLY", "FROM") }, "the plan reads heir"},
		{"owner", shape{}, compiled, nil, "the plan is compiled"},
		{"state", shape{}, "", func(sql string) string {
			return strings.Replace(sql, "   ORDER BY", "     AND e.note = 'x' ORDER BY", 1)
		}, "the range is searched for"},
		{"owner", shape{}, "SET LOCAL enable_sort = on", nil, "run_events is sorted"},
	} {
		if c.before == compiled && textOf(t, conn, "SELECT pg_jit_available()::text") != "true" {
			continue // a server without LLVM compiles nothing
		}
		i := slices.IndexFunc(specimens(), func(s specimen) bool { return s.name == c.specimen })
		arm := specimens()[i].open(t, Conn(conn))
		p := planner{conn, arm}
		p.begin(t)
		if c.before != "" {
			mustExec(t, conn, c.before)
		}
		st := arm.render(c.s)
		if c.edit != nil {
			st.sql = c.edit(st.sql)
		}
		if err := p.prepare(t.Context(), "spoiled", st); err != nil {
			t.Fatal(err)
		}
		e, err := p.explain(t.Context(), "FORMAT JSON", "spoiled", st, planValues(arm, 5000), true)
		if err != nil {
			t.Fatal(err)
		}
		if faults := planFaults(arm, c.s, e); !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s, %s: the rules find %q; want %q", c.specimen, c.before, faults, c.want)
		}
		p.end(t)
	}
}
