package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
)

// fillEvents and fillDeliveries make a history in which everything is there: of ten events seven are over, one is owed, one
// dead and one claimed.
const (
	fillEvents = `
INSERT INTO domain_events (type, payload, recorded_at, dedupe_key, retention_policy, retention_seconds)
SELECT 'type' || g % 7, '{}', now() - g * interval '1 second', CASE WHEN g % 5 = 0 THEN 'key' || g END,
       CASE g % 5 WHEN 1 THEN 'SUCCEEDED' WHEN 2 THEN 'SETTLED' WHEN 3 THEN 'LATER' END, CASE g % 5 WHEN 4 THEN 86400 END
  FROM generate_series($1::bigint, $2::bigint) g`
	fillDeliveries = `
INSERT INTO domain_event_deliveries (event_id, receiver, target, status, due_at, finished_at, claimed_by, claimed_at, claimed_until)
SELECT 1 + g % 10000, 'receiver' || g % 9, g, s.status, now() - g * interval '1 second',
       CASE WHEN s.status IN ('succeeded', 'dead') THEN now() - g * interval '1 second' END,
       CASE s.status WHEN 'claimed' THEN 'w' END, CASE s.status WHEN 'claimed' THEN now() END, CASE s.status WHEN 'claimed' THEN now() - (g - 100000) * interval '1 second' END
  FROM generate_series($1::bigint, $2::bigint) g,
       LATERAL (SELECT (array['pending', 'dead', 'claimed', 'succeeded', 'succeeded', 'succeeded', 'succeeded', 'succeeded', 'succeeded', 'succeeded'])[1 + (g / 7) % 10]) s (status)`
)

type planned struct {
	name  string
	args  []any
	rules []explaintest.Rule
}

// plans are the statements with what holds of their plans.
func plans() []planned {
	const d, e = "domain_event_deliveries", "domain_events"
	uses := explaintest.UsesIndex
	noScan := []explaintest.Rule{explaintest.NoSeqScan(d)}
	both := []explaintest.Rule{explaintest.NoSeqScan(d), explaintest.NoSeqScan(e)}
	event := uses(e, "domain_events_pkey").BoundOn("id")
	keyed := uses(d, "domain_event_deliveries_pkey").BoundOn("id")
	return []planned{
		{"first", []any{"key500"}, []explaintest.Rule{uses(e, "domain_events_dedupe").BoundOn("dedupe_key"), explaintest.NoSeqScan(e)}},
		{"claim", []any{"w", int64(1e6), int64(20)}, append(both,
			uses(d, d+"_due").In("due").BoundOn("due_at"), uses(d, d+"_claimed").In("lapsed").BoundOn("claimed_until"), keyed.In("taken"), event,
			unsorted("due"), unsorted("lapsed"))},
		{"acknowledge", []any{int64(7), "w", time.Now(), "succeeded", (*time.Time)(nil), ""}, append(noScan, keyed)},
		{"lock an event", []any{int64(7)}, []explaintest.Rule{event}},
		{"lock dead", []any{nil, nil, int64(20)}, append(both, uses(d, d+"_dead").Whole(), event, unsorted("dead"))},
		{"lock dead", []any{nil, "type3", int64(20)}, append(both, uses(d, d+"_dead").Whole(), event, unsorted("dead"))},
		{"lock dead of a receiver", []any{"receiver3", nil, int64(20)}, append(both, uses(d, d+"_dead").Whole(), event, unsorted("dead"))},
		{"lock dead of a receiver", []any{"receiver3", "type3", int64(20)}, append(both, uses(d, d+"_dead").Whole(), event, unsorted("dead"))},
		{"reopen dead", []any{[]int64{3, 4, 5}, nil, int64(20)}, append(noScan, keyed.In("reopened"))},
		{"reopen dead", []any{[]int64{3, 4, 5}, "receiver3", int64(20)}, append(noScan, keyed.In("reopened"))},
		{"reopen all", []any{int64(7)}, append(noScan, uses(d, d+"_key").In("every").BoundOn("event_id"))},
		{"counts", []any{int64(101)}, append(both,
			uses(d, d+"_due").As("o").Whole(), uses(d, d+"_claimed").As("c").Whole(), uses(d, d+"_dead").As("x").Whole(),
			uses(d, d+"_claimed").As("l").BoundOn("claimed_until"), uses(e, "domain_events_parked").As("p").Whole(), event.As("e"), explaintest.NoSort())},
		{"words", []any{int64(101)}, []explaintest.Rule{uses(e, "domain_events_policy").Whole(), explaintest.NoSeqScan(e)}},
		{"quiet", []any{time.Now()}, []explaintest.Rule{uses(d, d+"_succeeded").Whole(), explaintest.NoSeqScan(d)}},
	}
}

// unsorted holds that nothing is sorted within the plan of a WITH query: what it reads comes in the order of an index, and
// its LIMIT ends the reading. That its few rows are sorted later on is no matter.
type unsorted string

func (u unsorted) String() string { return "no Sort within WITH " + string(u) }

func (u unsorted) Check(p *explaintest.Plan) (faults []explaintest.Fault) {
	var look func(n *explaintest.Node)
	look = func(n *explaintest.Node) {
		if n.Type == "Sort" || n.Type == "Incremental Sort" {
			faults = append(faults, explaintest.Fault{Node: n, Problem: "it sorts", Look: "the order of the index, and the LIMIT"})
		}
		for _, c := range n.Children {
			look(c)
		}
	}
	if cte := p.CTE(string(u)); cte != nil {
		look(cte)
	} else {
		faults = append(faults, explaintest.Fault{Problem: "there is no such WITH query"})
	}
	return faults
}

// settings are those of the transaction in which a statement is sent.
func settings(name string) map[string]string {
	switch name {
	case "lock dead", "lock dead of a receiver", "reopen dead":
		return map[string]string{"enable_sort": "off", "enable_bitmapscan": "off", "enable_seqscan": "off", "jit": "off"}
	}
	return nil
}

// filled is a database with enough rows that the planner has a choice.
func filled(t *testing.T) *pgx.Conn {
	t.Helper()
	db := installed.New(t)
	conn := db.Conn(t)
	must(t, pgxplan.Fill(t.Context(), conn, "domain_events", fillEvents))
	must(t, pgxplan.Fill(t.Context(), conn, "domain_event_deliveries", fillDeliveries))
	return conn
}

// TestPlans: every statement finds its rows through the index that is meant for it, in the custom and in the generic plan,
// whether the tables were analysed or not.
func TestPlans(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("public")
	seen := map[string]bool{"record": true, "in order": true} // the one inserts, the other sets
	check := func(name string) {
		for _, p := range plans() {
			seen[p.name] = true
			t.Run(name+"/"+p.name, func(t *testing.T) {
				pgxplan.Assert(t.Context(), t, conn, pgxplan.Statement{SQL: texts[p.name], Args: p.args, Settings: settings(p.name)}, append(p.rules, explaintest.NoJIT())...)
			})
		}
	}
	check("analysed")
	if want := slices.Sorted(maps.Keys(texts)); !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		t.Errorf("the plans of %q are looked at, there are %q", slices.Sorted(maps.Keys(seen)), want)
	}
	_, err := conn.Exec(t.Context(), `delete from pg_statistic where starelid in ('domain_events'::regclass, 'domain_event_deliveries'::regclass);
update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid in ('domain_events'::regclass, 'domain_event_deliveries'::regclass)`)
	must(t, err)
	check("never analysed")
}

// The controls: without its index a statement has no such plan.
func TestControls(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("public")
	const d, e = "domain_event_deliveries", "domain_events"
	uses := explaintest.UsesIndex
	for _, c := range []struct {
		index, text string
		args        []any
		rule        explaintest.Rule
	}{
		{d + "_due", "claim", []any{"w", int64(1e6), int64(20)}, uses(d, d+"_due").In("due").BoundOn("due_at")},
		{d + "_claimed", "claim", []any{"w", int64(1e6), int64(20)}, uses(d, d+"_claimed").In("lapsed").BoundOn("claimed_until")},
		{d + "_dead", "lock dead", []any{nil, nil, int64(20)}, uses(d, d+"_dead").Whole()},
		{d + "_succeeded", "quiet", []any{time.Now()}, uses(d, d+"_succeeded").Whole()},
		{e + "_policy", "words", []any{int64(101)}, uses(e, e+"_policy").Whole()},
		{e + "_parked", "counts", []any{int64(101)}, uses(e, e+"_parked").As("p").Whole()},
		{e + "_dedupe", "first", []any{"key500"}, uses(e, e+"_dedupe").BoundOn("dedupe_key")},
	} {
		t.Run(c.index, func(t *testing.T) {
			pgxplan.AssertControl(t.Context(), t, conn, c.index, pgxplan.Statement{SQL: texts[c.text], Args: c.args, Settings: settings(c.text)}, c.rule)
		})
	}
}

// What is looked at costs the same however much there is: a few blocks for each row that is returned.
func TestTheLooksAreBounded(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("public")
	for _, c := range []struct {
		text string
		args []any
		max  int
	}{
		{"claim", []any{"w", int64(1e6), int64(20)}, 1000}, // 20 rows that move through all indexes
		{"lock dead", []any{nil, nil, int64(20)}, 200},
		{"counts", []any{int64(101)}, 1600},
		{"words", []any{int64(101)}, 150},
		{"quiet", []any{time.Now()}, 150},
	} {
		for _, generic := range []bool{false, true} {
			p, err := pgxplan.Explain(t.Context(), conn, pgxplan.Statement{
				SQL: texts[c.text], Args: c.args, Settings: settings(c.text), Generic: generic, Analyze: true,
			})
			must(t, err)
			t.Logf("%s: %d buffers", c.text, p.Buffers())
			explaintest.Assert(t, p, explaintest.MaxBuffers(c.max))
		}
	}
}
