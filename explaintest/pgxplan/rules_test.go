package pgxplan_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	et "github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
)

var (
	jan2 = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	jan3 = jan2.AddDate(0, 0, 1)
)

// sweep removes a bounded range of events by address, as a batch does.
var sweep = pgxplan.Statement{
	SQL: `DELETE FROM run_events d WHERE d.ctid = ANY (ARRAY(
  SELECT e.ctid FROM run_events e WHERE e.created_at >= $1 AND e.created_at < $2 ORDER BY e.created_at LIMIT $3))`,
	Args:    []any{jan2, jan3, 100},
	Analyze: true,
}

// TestControls proves each kind of rule on a real server: with the index it holds, without it it fails.
func TestControls(t *testing.T) {
	conn := casesDB.New(t).Conn(t)
	partitions := pgxplan.Statement{SQL: `DELETE FROM deliveries WHERE created_at < $1`, Args: []any{"2026-01-01 01:00:00+00"}}
	for name, c := range map[string]struct {
		index string
		st    pgxplan.Statement
		rule  et.Rule
	}{
		"index":        {"run_events_retention", sweep, et.UsesIndex("run_events", "run_events_retention").RangeOn("created_at")},
		"node type":    {"run_events_retention", sweep, et.NodeType("run_events", "Index Scan", "Index Only Scan").ReadSide()},
		"address":      {"run_events_retention", sweep, et.NodeType("run_events", "Index Scan", "Tid Scan")},
		"no scan":      {"public.run_events_retention", sweep, et.NoSeqScan("run_events")},
		"no sort":      {"run_events_retention", sweep, et.NoSort()},
		"no sort of":   {"run_events_retention", sweep, et.NoSort().On("public.run_events")},
		"buffers":      {"run_events_retention", sweep, et.MaxBuffers(300)}, // a delete looks at the row's page twice
		"filters":      {"run_events_retention", sweep, et.MaxRowsRemovedByFilter(0)},
		"filters of":   {"run_events_retention", sweep, et.MaxRowsRemovedByFilter(0).On("run_events").As("e")},
		"partitions":   {"deliveries_age", partitions, et.UsesIndex("deliveries", "deliveries_age").BoundOn("created_at")},
		"partitions 2": {"deliveries_age", partitions, et.NoSeqScan("deliveries").DeleteSide()},
		"a key":        {"runs_pkey", pgxplan.Statement{SQL: `SELECT status FROM runs WHERE tenant_id = $1 AND id = $2`, Args: []any{"tenant-1", "run-1"}}, et.UsesIndex("runs", "runs_pkey").BoundOn("tenant_id", "id")},
		"bitmap": {"jobs_state", pgxplan.Statement{SQL: `SELECT note FROM jobs WHERE state = 'done' AND finished_at < $1`, Args: []any{jan2},
			Settings: map[string]string{"enable_indexscan": "off"}}, et.NodeType("jobs", "Bitmap Heap Scan")},
	} {
		for _, c.st.Generic = range []bool{false, true} {
			if err := pgxplan.Control(t.Context(), conn, c.index, c.st, c.rule); err != nil {
				t.Errorf("%s, generic %t: %v", name, c.st.Generic, err)
			}
		}
	}
	// Nothing of that stayed.
	var events, indexes, names int
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM run_events), (SELECT count(*) FROM pg_indexes WHERE indexname IN ('run_events_retention', 'deliveries_age', 'runs_pkey')),
  (SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'explaintest%')`).Scan(&events, &indexes, &names); err != nil {
		t.Fatal(err)
	}
	if events != 20_000 || indexes != 3 || names != 0 {
		t.Errorf("%d events, %d indexes and %d prepared statements are left; want 20000, 3 and 0", events, indexes, names)
	}
}

// TestControlBites proves Control: a rule that needs no index does not pass, nor one that fails with it.
func TestControlBites(t *testing.T) {
	conn := casesDB.New(t).Conn(t)
	age := et.UsesIndex("run_events", "run_events_retention")
	for _, c := range []struct {
		index string
		rules []et.Rule
		says  string
	}{
		{"jobs_state", []et.Rule{age}, "without the index jobs_state these rules hold too, so they prove nothing about it: run_events is read through the index run_events_retention"},
		{"run_events_retention", []et.Rule{age, et.MaxBuffers(1_000_000)}, "these rules hold too, so they prove nothing about it: at most 1000000 shared buffers\n"},
		{"run_events_retention", []et.Rule{et.NodeType("run_events", "Tid Scan").DeleteSide()}, "these rules hold too"},
		{"run_events_retention", []et.Rule{et.NodeType("run_events", "Tid Scan")}, "with the index run_events_retention: the plan breaks a rule"},
		{"run_events_retention", nil, "no rule is given"},
		{"nothing", []et.Rule{age}, `"nothing" does not exist`},
	} {
		err := pgxplan.Control(t.Context(), conn, c.index, sweep, c.rules...)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("without %s: the error is %v; want %q in it", c.index, err, c.says)
		}
	}
}

// recorder takes what Assert would fail a test with.
type recorder struct{ errors []string }

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, args[0].(string)) }

// TestAssert holds that both plans of a statement are looked at.
func TestAssert(t *testing.T) {
	pool := casesDB.New(t).Pool(t)
	age := et.UsesIndex("run_events", "run_events_retention").RangeOn("created_at")
	pgxplan.Assert(t.Context(), t, pool, sweep, age, et.NodeType("run_events", "Tid Scan").DeleteSide())
	pgxplan.AssertControl(t.Context(), t, pool, "run_events_retention", sweep, age, et.NoSeqScan("run_events"))

	var r recorder
	pgxplan.Assert(t.Context(), &r, pool, sweep, et.NodeType("run_events", "Tid Scan"))
	pgxplan.AssertControl(t.Context(), &r, pool, "jobs_state", sweep, age)
	if len(r.errors) != 4 || !strings.HasPrefix(r.errors[0], "custom plan: the plan breaks a rule") || !strings.HasPrefix(r.errors[1], "generic plan: the plan breaks a rule") {
		t.Errorf("the errors are %q; want those of a custom and a generic plan, twice", r.errors)
	}
	// A list that is long in truth is a rare one for the generic plan.
	r = recorder{}
	most := pgxplan.Statement{SQL: `SELECT note FROM run_events WHERE created_at < $1`, Args: []any{"2027-01-01 00:00:00+00"}, Settings: map[string]string{"enable_bitmapscan": "off", "random_page_cost": "1"}}
	pgxplan.Assert(t.Context(), &r, pool, most, et.UsesIndex("run_events", "run_events_retention"))
	if len(r.errors) != 1 || !strings.HasPrefix(r.errors[0], "custom plan:") {
		t.Errorf("the errors are %q; want one, of the custom plan", r.errors)
	}
}

// TestExplainKeepsNothing holds that what is executed is rolled back, and only that: in a caller's transaction too, which
// lends its settings and its uncommitted rows.
func TestExplainKeepsNothing(t *testing.T) {
	conn := casesDB.New(t).Conn(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{"SET LOCAL enable_indexscan = off", "SET LOCAL enable_bitmapscan = off", "DELETE FROM run_events WHERE sequence > 3"} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	all := pgxplan.Statement{SQL: "DELETE FROM run_events WHERE created_at >= $1", Args: []any{jan2.AddDate(-1, 0, 0)}, Analyze: true, Settings: map[string]string{"enable_sort": "off"}}
	p, err := pgxplan.Explain(t.Context(), tx, all)
	if err != nil {
		t.Fatal(err)
	}
	if scans := p.Relation("run_events"); len(scans) != 1 || scans[0].Type != "Seq Scan" || scans[0].ActualRows != 4000 {
		t.Errorf("the plan does not see the transaction's settings and rows:\n%s", p)
	}
	if p.Settings["enable_sort"] != "off" || p.Settings["enable_indexscan"] != "off" {
		t.Errorf("the plan's settings are %v", p.Settings)
	}
	var left int
	var sort, mode string
	if err := tx.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM run_events), current_setting('enable_sort'), current_setting('plan_cache_mode')").Scan(&left, &sort, &mode); err != nil {
		t.Fatal(err)
	}
	if left != 4000 || sort != "on" || mode != "auto" {
		t.Errorf("%d events, enable_sort %s and plan_cache_mode %s are left; want 4000, on and auto", left, sort, mode)
	}
}

// TestExplainErrors holds that errors say what is wrong and leave the connection as it was.
func TestExplainErrors(t *testing.T) {
	conn := casesDB.New(t).Conn(t)
	for says, st := range map[string]pgxplan.Statement{
		"1 parameters and 0 arguments": {SQL: "SELECT note FROM run_events WHERE created_at < $1"},
		"0 parameters and 1 arguments": {SQL: "SELECT 1", Args: []any{1}},
		"argument $1":                  {SQL: "SELECT note FROM run_events WHERE sequence = $1", Args: []any{struct{ n int }{3}}},
		"nothing_of_it":                {SQL: "SELECT nothing_of_it FROM run_events"},
		"is Generic's to make":         {SQL: "SELECT 1", Settings: map[string]string{"plan_cache_mode": "auto"}},
		"no_setting":                   {SQL: "SELECT 1", Settings: map[string]string{"no_setting": "on"}},
		"multiple commands":            {SQL: "SELECT 1; COMMIT; DELETE FROM run_events"},
		"division by zero":             {SQL: "SELECT 1 / count(*) FROM runs WHERE id = $1", Args: []any{"none"}, Analyze: true},
		"syntax error":                 {SQL: "VACUUM run_events"},
		"statement timeout":            {SQL: "SELECT pg_sleep(60)", Analyze: true, Settings: map[string]string{"statement_timeout": "10"}},
	} {
		p, err := pgxplan.Explain(t.Context(), conn, st)
		if err == nil || p != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v; want %q in it", st.SQL, err, says)
		}
	}
	var events, names int
	if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM run_events), (SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'explaintest%')").Scan(&events, &names); err != nil {
		t.Fatal(err)
	}
	if events != 20_000 || names != 0 {
		t.Errorf("%d events and %d prepared statements are left; want 20000 and 0", events, names)
	}
}

// TestArguments holds that values arrive as they are, whatever their types and the connection's way to query.
func TestArguments(t *testing.T) {
	db := casesDB.New(t)
	db.Exec(t, `CREATE TYPE mood AS ENUM ('o''k', 'a\b'); CREATE TABLE feelings (m mood, at timestamptz, n numeric, ids bigint[], doc jsonb, raw bytea, note text)`)
	note := `quo'te \ "x" $1`
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		conn := db.Conn(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
		p, err := pgxplan.Explain(t.Context(), conn, pgxplan.Statement{
			SQL:      `SELECT FROM feelings WHERE m = $1 AND at < $2 AND n > $3 AND ids = $4 AND doc = $5 AND raw = $6 AND note = $7 AND note IS DISTINCT FROM $8 AND note > $9`,
			Args:     []any{"o'k", jan2, 1.5, []int64{1, 2}, map[string]any{"a": "b'"}, []byte("x'"), note, nil, ""},
			Settings: map[string]string{"standard_conforming_strings": "off", "timezone": "UTC"},
		})
		if err != nil {
			t.Fatal(err)
		}
		filter := p.Relation("feelings")[0].Filter
		for _, want := range []string{`'o''k'::mood`, `'2026-01-02 00:00:00+00'::timestamp with time zone`, `n > 1.5`, `'{1,2}'::bigint[]`, `'{"a": "b''"}'::jsonb`, `'\x7827'::bytea`, `quo''te \`, `note IS DISTINCT FROM NULL`, `note > ''::text`} {
			if !strings.Contains(strings.ReplaceAll(filter, `\\`, `\`), want) {
				t.Errorf("mode %v: the filter is %s; want %s in it", mode, filter, want)
			}
		}
	}
}

// TestTemporaryTables holds that the catalog of a session's own tables is read.
func TestTemporaryTables(t *testing.T) {
	conn := casesDB.New(t).Conn(t)
	for _, sql := range []string{"CREATE TEMPORARY TABLE mine AS SELECT g AS id FROM generate_series(1, 50000) g", "CREATE INDEX mine_id ON mine (id)", "ANALYZE mine"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	st := pgxplan.Statement{SQL: "SELECT FROM mine WHERE id = $1", Args: []any{7}}
	pgxplan.AssertControl(t.Context(), t, conn, "mine_id", st, et.UsesIndex("mine", "mine_id").BoundOn("id"))
}
