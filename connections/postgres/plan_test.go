package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/connections/postgres"
	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
)

// A third of all rows is one tenant's, so that reading the table whole looks cheap to a plan for that one; half are revoked.
const fillTable = `
INSERT INTO connections (tenant_id, id, kind, name, created_at, updated_at, revoked_at)
SELECT CASE WHEN g % 3 = 0 THEN 'large' ELSE 'tenant' || g % 500 END, 'c' || g, 'k', 'n', now() - g * interval '1 minute', now() - g * interval '1 minute',
       CASE WHEN g % 2 = 0 THEN now() END
  FROM generate_series($1::bigint, $2::bigint) g`

type planned struct {
	name  string
	args  []any
	rules []explaintest.Rule
}

// plans are the statements with what holds of their plans.
func plans() []planned {
	uses := explaintest.UsesIndex
	key := uses("connections", "connections_pkey").BoundOn("tenant_id", "id")
	after := time.Now().Add(-24 * time.Hour)
	return []planned{
		{"get", []any{"large", "c300"}, []explaintest.Rule{key}},
		{"update", []any{"large", "c300", "m", "{}", true, []byte("s")}, []explaintest.Rule{key}},
		{"revoke", []any{"large", "c300"}, []explaintest.Rule{key}},
		{"list", []any{"large", after, "c300", int64(101)}, []explaintest.Rule{uses("connections", "connections_listed").BoundOn("tenant_id", "created_at"), explaintest.NoSort()}},
		{"has", []any{"large"}, []explaintest.Rule{uses("connections", "connections_pkey").BoundOn("tenant_id"), explaintest.NoSort()}},
	}
}

// filled is a database with enough rows that the planner has a choice.
func filled(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := installed.New(t).Conn(t)
	must(t, pgxplan.Fill(t.Context(), conn, "connections", fillTable))
	return conn
}

// Every statement finds its rows through the index that is meant for it, in the custom and in the generic plan, whether the
// table was analysed or not.
func TestPlans(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("public")
	// One inserts, and finds what is in the way through the unique index that it names; one is on no table.
	seen := map[string]bool{"create": true, "settings": true}
	check := func(name string) {
		for _, p := range plans() {
			seen[p.name] = true
			t.Run(name+"/"+p.name, func(t *testing.T) {
				pgxplan.Assert(t.Context(), t, conn, pgxplan.Statement{SQL: texts[p.name], Args: p.args}, append(p.rules, explaintest.NoSeqScan("connections"), explaintest.NoJIT())...)
			})
		}
	}
	check("analysed")
	if want := slices.Sorted(maps.Keys(texts)); !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		t.Errorf("the plans of %q are looked at, there are %q", slices.Sorted(maps.Keys(seen)), want)
	}
	_, err := conn.Exec(t.Context(), `delete from pg_statistic where starelid = 'connections'::regclass;
update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid = 'connections'::regclass`)
	must(t, err)
	check("never analysed")
}

// The control: without its index a list has no such plan.
func TestControls(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("public")
	for _, p := range plans() {
		if p.name == "list" {
			pgxplan.AssertControl(t.Context(), t, conn, "connections_listed", pgxplan.Statement{SQL: texts[p.name], Args: p.args}, p.rules[0])
		}
	}
}

// What is looked at costs the same however much there is: a few blocks, and some for each row that is returned.
func TestTheLooksAreBounded(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("public")
	for _, c := range []struct {
		text string
		args []any
		max  int
	}{
		{"get", []any{"large", "c300"}, 10},
		{"list", []any{"large", time.Now().Add(-24 * time.Hour), "c300", int64(101)}, 150},
		{"list", []any{"large", time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), "c300", int64(101)}, 10},
		{"has", []any{"large"}, 10},
		{"has", []any{"nobody"}, 10},
	} {
		for _, generic := range []bool{false, true} {
			p, err := pgxplan.Explain(t.Context(), conn, pgxplan.Statement{SQL: texts[c.text], Args: c.args, Generic: generic, Analyze: true})
			must(t, err)
			t.Logf("%s: %d buffers", c.text, p.Buffers())
			explaintest.Assert(t, p, explaintest.MaxBuffers(c.max))
		}
	}
}
