package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
)

// A history in which everything is there: of ten rows of the inbox eight are completed, and two thirds of the others have a
// lock, lapsed or not; so it is with the outbox. Half of the leases have expired.
const (
	fillInbox = `
INSERT INTO "inbox_outbox".inbox (handler, event_id, state, received_at, completed_at, lock_token, locked_until)
SELECT 'handler' || g % 7, 'event' || g, CASE WHEN g % 10 < 8 THEN 'completed' ELSE 'pending' END, now() - g * interval '1 second',
       CASE WHEN g % 10 < 8 THEN now() - g * interval '1 second' END,
       CASE WHEN g % 10 >= 8 AND g % 3 > 0 THEN gen_random_uuid() END, CASE WHEN g % 10 >= 8 AND g % 3 > 0 THEN now() + (g % 3 - 1.5) * interval '1 hour' END
  FROM generate_series($1::bigint, $2::bigint) g`
	fillOutbox = `
INSERT INTO "inbox_outbox".outbox (event_id, topic, body, available_at, delivered_at, claim_token, claimed_until)
SELECT 'event' || g, 'topic' || g % 7, '{}', s.available, CASE WHEN g % 10 < 8 THEN now() - g * interval '1 second' END,
       CASE WHEN g % 10 >= 8 AND g % 3 > 0 THEN gen_random_uuid() END, CASE WHEN g % 10 >= 8 AND g % 3 > 0 THEN s.available END
  FROM generate_series($1::bigint, $2::bigint) g,
       LATERAL (SELECT CASE WHEN g % 3 = 1 THEN now() + g * interval '1 second' ELSE now() - g * interval '1 second' END) s (available)`
	fillLeases = `
INSERT INTO "inbox_outbox".leases (handler, partition, holder, token, expires_at)
SELECT 'handler' || g % 7, 'partition' || g, 'holder', gen_random_uuid(), now() + (g - 50000) * interval '1 second'
  FROM generate_series($1::bigint, $2::bigint) g`
)

type planned struct {
	name  string
	args  []any
	rules []explaintest.Rule
}

// plans are the statements with what holds of their plans.
func plans() []planned {
	const token = "00000000-0000-0000-0000-000000000000"
	uses := explaintest.UsesIndex
	of := func(table string, rules ...explaintest.Rule) []explaintest.Rule {
		return append(rules, explaintest.NoSeqScan(table))
	}
	inbox := of("inbox", uses("inbox", "inbox_pkey").BoundOn("handler", "event_id"))
	outbox := of("outbox", uses("outbox", "outbox_pkey").BoundOn("record_id"))
	leases := of("leases", uses("leases", "leases_pkey").BoundOn("handler", "partition"))
	return []planned{
		{"received", []any{"handler3", "event3"}, inbox},
		{"complete", []any{"handler3", "event3", token}, inbox},
		{"release", []any{"handler3", "event3", token}, inbox},
		{"added", []any{"event3"}, of("outbox", uses("outbox", "outbox_event_id_key").BoundOn("event_id"))},
		{"claim", []any{int64(1e6), int64(20)}, of("outbox",
			uses("outbox", "outbox_ready").In("ready").BoundOn("available_at"), uses("outbox", "outbox_pkey").In("taken").BoundOn("record_id"), unsorted("ready"))},
		{"deliver", []any{int64(7), token}, outbox},
		{"retry", []any{int64(7), token, time.Now()}, outbox},
		{"held", []any{"handler3", "partition3"}, leases},
		{"renew", []any{"handler3", "partition3", token, int64(1e6)}, leases},
		{"give back", []any{"handler3", "partition3", token}, leases},
		{"health", []any{int64(101)}, append(of("inbox", of("outbox", of("leases")...)...),
			uses("inbox", "inbox_ready").Whole(), uses("outbox", "outbox_ready").As("o").Whole(), uses("outbox", "outbox_ready").As("w").BoundOn("available_at"),
			uses("leases", "leases_expiry").BoundOn("expires_at"), explaintest.NoSort())},
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

// filled is a database with enough rows that the planner has a choice.
func filled(t *testing.T) *pgx.Conn {
	t.Helper()
	db := installed.New(t)
	conn := db.Conn(t)
	_, err := conn.Exec(t.Context(), `set search_path = inbox_outbox`)
	must(t, err)
	must(t, pgxplan.Fill(t.Context(), conn, "inbox", fillInbox))
	must(t, pgxplan.Fill(t.Context(), conn, "outbox", fillOutbox))
	must(t, pgxplan.Fill(t.Context(), conn, "leases", fillLeases))
	return conn
}

// Every statement finds its rows through the index that is meant for it, in the custom and in the generic plan, whether the
// tables were analysed or not.
func TestPlans(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("inbox_outbox")
	// These insert, and find what is in the way through the unique index that they name.
	seen := map[string]bool{"receive": true, "add": true, "acquire": true}
	check := func(name string) {
		for _, p := range plans() {
			seen[p.name] = true
			t.Run(name+"/"+p.name, func(t *testing.T) {
				pgxplan.Assert(t.Context(), t, conn, pgxplan.Statement{SQL: texts[p.name], Args: p.args}, append(p.rules, explaintest.NoJIT())...)
			})
		}
	}
	check("analysed")
	if want := slices.Sorted(maps.Keys(texts)); !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		t.Errorf("the plans of %q are looked at, there are %q", slices.Sorted(maps.Keys(seen)), want)
	}
	_, err := conn.Exec(t.Context(), `delete from pg_statistic where starelid in ('inbox'::regclass, 'outbox'::regclass, 'leases'::regclass);
update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid in ('inbox'::regclass, 'outbox'::regclass, 'leases'::regclass)`)
	must(t, err)
	check("never analysed")
}

// The controls: without its index a statement has no such plan.
func TestControls(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("inbox_outbox")
	uses := explaintest.UsesIndex
	for _, c := range []struct {
		index, text string
		args        []any
		rule        explaintest.Rule
	}{
		{"outbox_ready", "claim", []any{int64(1e6), int64(20)}, uses("outbox", "outbox_ready").In("ready").BoundOn("available_at")},
		{"inbox_ready", "health", []any{int64(101)}, uses("inbox", "inbox_ready").Whole()},
		{"leases_expiry", "health", []any{int64(101)}, uses("leases", "leases_expiry").BoundOn("expires_at")},
	} {
		t.Run(c.index, func(t *testing.T) {
			pgxplan.AssertControl(t.Context(), t, conn, c.index, pgxplan.Statement{SQL: texts[c.text], Args: c.args}, c.rule)
		})
	}
}

// What is looked at costs the same however much there is: a few blocks for each row that is returned. What others have
// claimed is not read on the way to what is ready.
func TestTheLooksAreBounded(t *testing.T) {
	conn, texts := filled(t), postgres.Statements("inbox_outbox")
	for _, c := range []struct {
		text string
		args []any
		max  int
	}{
		{"claim", []any{int64(1e6), int64(20)}, 700}, // 20 rows that move through all indexes
		{"health", []any{int64(101)}, 100},
	} {
		for _, generic := range []bool{false, true} {
			p, err := pgxplan.Explain(t.Context(), conn, pgxplan.Statement{SQL: texts[c.text], Args: c.args, Generic: generic, Analyze: true})
			must(t, err)
			t.Logf("%s: %d buffers", c.text, p.Buffers())
			explaintest.Assert(t, p, explaintest.MaxBuffers(c.max))
		}
	}
}
