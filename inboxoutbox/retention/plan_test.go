package retention_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/policy"
)

// A history of which a tenth is not finished.
const (
	fillInbox = `
INSERT INTO "inbox_outbox".inbox (handler, event_id, state, completed_at)
SELECT 'handler' || g % 7, 'event' || g, CASE WHEN g % 10 > 0 THEN 'completed' ELSE 'pending' END, CASE WHEN g % 10 > 0 THEN now() - g * interval '1 second' END
  FROM generate_series($1::bigint, $2::bigint) g`
	fillOutbox = `
INSERT INTO "inbox_outbox".outbox (event_id, topic, body, delivered_at)
SELECT 'event' || g, 'topic', '{}', CASE WHEN g % 10 > 0 THEN now() - g * interval '1 second' END
  FROM generate_series($1::bigint, $2::bigint) g`
	fillLeases = `
INSERT INTO "inbox_outbox".leases (handler, partition, holder, token, expires_at)
SELECT 'handler' || g % 7, 'partition' || g, 'holder', gen_random_uuid(), now() - (g - 10000) * interval '1 second'
  FROM generate_series($1::bigint, $2::bigint) g`
)

// What is counted is read in the order of the age, through the index of the sweep, up to its bound: in the custom and in the
// generic plan, whether the tables were analysed or not.
func TestPlans(t *testing.T) {
	conn, texts := installed.New(t).Conn(t), retention.Statements("inbox_outbox")
	_, err := conn.Exec(t.Context(), `set search_path = inbox_outbox`)
	must(t, err)
	must(t, pgxplan.Fill(t.Context(), conn, "inbox", fillInbox))
	must(t, pgxplan.Fill(t.Context(), conn, "outbox", fillOutbox))
	must(t, pgxplan.Fill(t.Context(), conn, "leases", fillLeases))
	uses := explaintest.UsesIndex
	inbox := []explaintest.Rule{explaintest.NoSeqScan("inbox"), uses("inbox", "inbox_retention").BoundOn("completed_at"), explaintest.NoSort()}
	outbox := []explaintest.Rule{explaintest.NoSeqScan("outbox"), uses("outbox", "outbox_retention").BoundOn("delivered_at"), explaintest.NoSort()}
	all := slices.Concat(inbox, outbox, []explaintest.Rule{explaintest.NoSeqScan("leases"), uses("leases", "leases_expiry").BoundOn("expires_at")})
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	seen := map[string]bool{"recorded": true, "record": true, "lock": true, "replace": true} // of the one row that there is
	check := func(name string) {
		for _, p := range []struct {
			name  string
			args  []any
			rules []explaintest.Rule
			max   int // buffers
		}{
			{"due inbox", []any{int64(7 * 86400), int64(3600), int64(101)}, inbox, 20},
			{"due outbox", []any{int64(7 * 86400), int64(3600), int64(101)}, outbox, 20},
			{"left", []any{policy.DefaultSince, ago(time.Hour), ago(time.Hour), ago(time.Hour), int64(101)}, all, 100},
		} {
			seen[p.name] = true
			t.Run(name+"/"+p.name, func(t *testing.T) {
				pgxplan.Assert(t.Context(), t, conn, pgxplan.Statement{SQL: texts[p.name], Args: p.args}, append(p.rules, explaintest.NoJIT())...)
				for _, generic := range []bool{false, true} {
					plan, err := pgxplan.Explain(t.Context(), conn, pgxplan.Statement{SQL: texts[p.name], Args: p.args, Generic: generic, Analyze: true})
					must(t, err)
					t.Logf("%d buffers", plan.Buffers())
					explaintest.Assert(t, plan, explaintest.MaxBuffers(p.max))
				}
			})
		}
	}
	check("analysed")
	if want := slices.Sorted(maps.Keys(texts)); !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		t.Errorf("the plans of %q are looked at, there are %q", slices.Sorted(maps.Keys(seen)), want)
	}
	_, err = conn.Exec(t.Context(), `delete from pg_statistic where starelid in ('inbox'::regclass, 'outbox'::regclass, 'leases'::regclass);
update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid in ('inbox'::regclass, 'outbox'::regclass, 'leases'::regclass)`)
	must(t, err)
	check("never analysed")

	for index, text := range map[string]string{"inbox_retention": "due inbox", "outbox_retention": "due outbox"} {
		table, age, _ := strings.Cut(map[string]string{"due inbox": "inbox completed_at", "due outbox": "outbox delivered_at"}[text], " ")
		t.Run("without "+index, func(t *testing.T) {
			pgxplan.AssertControl(t.Context(), t, conn, index, pgxplan.Statement{SQL: texts[text], Args: []any{int64(7 * 86400), int64(3600), int64(101)}}, uses(table, index).BoundOn(age))
		})
	}
}

// plansOf is a pool whose sessions keep the plan of every statement that they run, as the server ran it.
type plansOf struct {
	mu    sync.Mutex
	plans []string
}

func (p *plansOf) pool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	must(t, err)
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if _, plan, ok := strings.Cut(n.Message, "plan:\n"); ok {
			p.mu.Lock()
			p.plans = append(p.plans, plan)
			p.mu.Unlock()
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_level = notice; set auto_explain.log_format = json;
set auto_explain.log_analyze = on; set auto_explain.log_timing = off; set auto_explain.log_buffers = on`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// node is a node of such a plan.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []node
}

// sorts reports whether the plan scans the table, or sorts what it reads of it. What a WITH query has kept of a batch is
// another matter: its few rows may be sorted.
func (n node) sorts(table string) bool {
	if n.Type == "Seq Scan" && n.Relation == table || strings.HasSuffix(n.Type, "Sort") && n.reads(table) {
		return true
	}
	return slices.ContainsFunc(n.Plans, func(c node) bool { return c.sorts(table) })
}

func (n node) reads(table string) bool {
	return n.Relation == table || slices.ContainsFunc(n.Plans, func(c node) bool { return c.reads(table) })
}

// 490,000 rows of one and the same age: each batch walks on by the key behind the age. The plans are those of the batches as
// they were run, the first ones and those deep within the group.
func TestRowsOfOneAgeAreWalkedByTheirKey(t *testing.T) {
	const limit = 100
	for ledger, c := range map[string]struct {
		fill, index, age string
		rows             int
	}{
		"inbox": {`insert into inbox_outbox.inbox (handler, event_id, state, completed_at)
select 'h' || g % 3, g::text, 'completed', '2026-01-02 03:04:05Z' from generate_series(1, $1) g`, "inbox_retention", "completed_at", 490_000},
		"outbox": {`insert into inbox_outbox.outbox (event_id, topic, body, delivered_at)
select g::text, 't', '{}', '2026-01-02 03:04:05Z' from generate_series(1, $1) g`, "outbox_retention", "delivered_at", 49_000},
		"leases": {`insert into inbox_outbox.leases
select 'h' || g % 3, g::text, 'w', gen_random_uuid(), '2026-01-02 03:04:05Z' from generate_series(1, $1) g`, "leases_expiry", "expires_at", 49_000},
	} {
		t.Run(ledger, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, c.fill, c.rows)
			db.Exec(t, `analyze inbox_outbox.`+ledger)
			var kept plansOf
			pool := kept.pool(t, db.DSN)
			r := cleanUp(t, pool, inboxoutbox.Settings{Batch: limit}, retention.CleanupOptions{Budget: policy.Budget{Rows: 200 * limit}})
			for _, l := range r.Ledgers {
				// Only a batch that missed its time target makes those after it smaller, and more.
				slow := l.Report.SlowestBatch > policy.DefaultTarget && l.Report.Batches > 200
				if l.Name == ledger && (l.Report.Removed != 200*limit || l.Report.Batches != 200 && !slow || l.Index != c.index) {
					t.Errorf("%s", l)
				}
			}
			if left := db.Int(t, `select count(*) from inbox_outbox.`+ledger); left != int64(c.rows-200*limit) {
				t.Errorf("%d are left", left)
			}
			deletes, walks, most := 0, 0, 0
			for _, text := range kept.plans {
				if !strings.Contains(text, `"Operation": "Delete"`) || !strings.Contains(text, `"Relation Name": "`+ledger+`"`) {
					continue
				}
				deletes++
				if regexp.MustCompile(`"Index Cond": "[^\n]*ROW\((\w+\.)?` + c.age + `, `).MatchString(text) {
					walks++
				}
				var p struct{ Plan node }
				must(t, json.Unmarshal([]byte(text), &p))
				if !strings.Contains(text, `"Index Name": "`+c.index+`"`) || p.Plan.sorts(ledger) {
					t.Fatalf("a batch was run as\n%s", text)
				}
				most = max(most, p.Plan.Hit+p.Plan.Read)
			}
			t.Logf("at most %d buffers a batch", most)
			if most > 2*limit {
				t.Errorf("a batch of %d read %d buffers beside what it deleted", limit, most)
			}
			// Two looks at ranges of ages come before it is known that one age has them all, and the first batch has no key yet.
			if deletes < 202 || walks != deletes-3 {
				t.Errorf("%d batches were seen, of which %d walked by the key", deletes, walks)
			}
		})
	}
}
