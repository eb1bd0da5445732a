package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// owned is the whole comparison of a case with the policy.
func owned(c ownCase) victim {
	return victim{fmt.Sprintf("rows go by their own windows: %s", c), func(ctx context.Context, b *bench) error {
		return c.run(ctx, b.t, b.db, Conn(b.db.Conn(b.t, berlin, b.forge)), b.edit)
	}}
}

const keptThing = `CREATE TABLE thing (id int PRIMARY KEY, own int, hold boolean, at timestamptz NOT NULL); CREATE INDEX ON thing (at, id);
INSERT INTO thing SELECT g, 3600, false, '2020-01-01 00:00+00' FROM generate_series(1, 5) g;`

// meanwhile is a batch that waits for a row, and what must come of it where the other session makes the row stay.
func meanwhile(name, sql string, opts ...func(*pgx.ConnConfig)) victim {
	return meanwhileIn(name, keptThing, sql, 50, count(5, 4, 0, 0, 1, 0), "2", opts...)
}

// meanwhileIn is the same of a table of this kind, at a limit.
func meanwhileIn(name, script, sql string, limit int, want pruner.Result, stays string, opts ...func(*pgx.ConnConfig)) victim {
	return victim{name, func(ctx context.Context, b *bench) error {
		s := policy.Sweep{Own: &policy.RowWindow{Column: "own", Unit: time.Second}, Guard: policy.Guard{Hold: "hold"}}
		if _, err := b.own(script, s, Options{}); err != nil {
			return err
		}
		s.Name, s.Table, s.Age, s.Window = "thing", policy.Name{Schema: "public", Table: "thing"}, "at", policy.Never
		s.Timeouts.Lock = 5 * time.Second
		conn, other := b.db.Conn(b.t, append(opts, b.forge)...), b.db.Conn(b.t)
		arms, err := Open(ctx, Conn(conn), s, Options{})
		if err != nil {
			return err
		}
		arms[0].edit = b.edit
		mustExec(b.t, other, begin+sql)
		batch := start(func() (pruner.Result, error) {
			res, err := arms[0].Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: limit})
			if err == nil && res.Examined == 0 && !res.End { // it found that more rows than the limit share an age
				res, err = arms[0].Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: limit, After: res.Next})
			}
			return res, err
		})
		for deadline := time.Now().Add(patience); len(batch.c) == 0 && time.Now().Before(deadline); {
			if b.db.Text(b.t, fmt.Sprintf("SELECT coalesce(wait_event_type, '') FROM pg_stat_activity WHERE pid = %d", conn.PgConn().PID())) == "Lock" {
				break
			}
		}
		mustExec(b.t, other, "COMMIT")
		res, err := batch.end(b.t)
		if err != nil {
			return err
		}
		res.Blocked = nil
		if got := counts(res); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the batch counted %+v; want %+v", got, want)
		}
		if left := b.db.Text(b.t, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM ONLY thing"); left != stays {
			return fmt.Errorf("%s is left; want %s", left, stays)
		}
		return nil
	}}
}

// rowClauses are those about rows that are held, or that have windows of their own.
func rowClauses() []clause {
	const past = `CASE WHEN ([ed])\."at" < \$\d::timestamptz( - interval '\d+ seconds')? AND `
	byAge, zero, windows := owned(ownCase{kind: ownSeconds, index: "age"}), owned(ownCase{kind: ownSeconds, index: "age", zero: true}), owned(ownCase{kind: ownSeconds, index: "age", byState: true})
	generated, expression := owned(ownCase{kind: ownSeconds, index: "generated"}), owned(ownCase{kind: ownSeconds, index: "expression"})
	held := meanwhile("a hold that is set while the batch waits keeps its row", "UPDATE thing SET hold = true WHERE id = 2")
	longer := meanwhile("an own window that is made longer while the batch waits is heeded", "UPDATE thing SET own = 1000000 WHERE id = 2")
	lost := meanwhile("an own window that is taken away while the batch waits is heeded", "UPDATE thing SET own = NULL WHERE id = 2")
	return []clause{
		{name: "hold: keeps", edit: re(` AND [ed]\."hold" IS NOT TRUE`, ""), victim: byAge},
		{name: "hold: is counted", edit: inQuery("tally", re(`NOT (coalesce\(e\."state" IN \([^)]*\), false\)) OR coalesce\(.*?false\) AND e\."hold" IS TRUE`, "NOT $1")), victim: byAge},
		{name: "hold: once past the window of the state", edit: re(`OR coalesce\([ed]\."state" .*?, false\) AND ([ed]\."hold" IS TRUE)`, "OR $1"), victim: windows},
		{name: "hold: again", under: follow("thing", "id"), edit: inQuery("gone", re(` AND d\."hold" IS NOT TRUE`, "")), victim: held},
		{name: "own: its sum", edit: re(`THEN \(\(\(([ed])\."at" AT TIME ZONE .*? ELSE`, "THEN true ELSE"), victim: byAge},
		{name: "own: its sum, again", under: follow("thing", "id"), edit: inQuery("gone", re(`THEN \(\(\(d\."at" AT TIME ZONE .*? ELSE`, "THEN true ELSE")), victim: longer},
		{name: "own: of this part, again", under: follow("thing", "id"), edit: inQuery("gone", re(`d\."own" IS NOT NULL AND CASE.* ELSE false END`, "true")), victim: lost},
		{name: "own: now, and not the cutoff", edit: re(`\((\$\d::timestamptz) \+ interval '3600 seconds'\)`, "$1"), victim: byAge},
		{name: "own: past the floor", edit: re(past, "CASE WHEN "), victim: generated},
		{name: "own: past the floor, of an expression", edit: re(past, "CASE WHEN "), victim: expression},
		{name: "own: usable before it is added", edit: re(` AND [ed]\."own" > '0'::bigint AND [ed]\."own" <= '\d+'::bigint THEN`, " THEN"), victim: byAge},
		{name: "own: above zero", edit: re(`[ed]\."own" > '0'::bigint AND `, ""), victim: byAge},
		{name: "own: no longer than the longest", edit: re(` AND [ed]\."own" <= '\d+'::bigint`, ""), victim: byAge},
		{name: "own: zero is for ever", edit: re(` AND [ed]\."own" <> '0'::bigint`, ""), victim: zero},
		{name: "own: unusable ones past the floor", edit: re(`\(e\."at" < \$\d::timestamptz - interval '3600 seconds' AND NOT`, "(NOT"), victim: generated},
		{name: "own: raised ones", edit: re(`THEN e\."own" \* interval '1 second' < interval '3600 seconds'`, "THEN true"), victim: byAge},
		{name: "own: an age that is one", edit: re(`[ed]\."at" >= '1990-01-01 00:00:00\+00'::timestamptz AND `, ""), victim: generated},
		{name: "own: in UTC", edit: re(` AT TIME ZONE 'UTC'::text`, ""), victim: owned(ownCase{kind: ownKind{"smallint", 24 * time.Hour, -1 << 15, 1<<15 - 1}, index: "age"})},
		{name: "part: without a window", edit: re(`[ed]\."own" IS NULL( AND)?`, "true$1"), victim: byAge},
		{name: "part: with a window", edit: inQuery("tally", re(`e\."own" IS NOT NULL AND NOT`, "NOT")), victim: byAge},
		{name: "part: what a partial index settles", edit: inQuery("(edge|tally)", re(`     AND e\."keep_seconds" IS NULL\n`, "")), victim: plans("part_within", "")},
		{name: "part: what an index of expiries settles", edit: inQuery("(edge|tally)", re(`     AND e\."keep_seconds" IS NOT NULL\n`, "")), victim: plans("own_generated", "")},
		{name: "expiry: as the index has it", edit: re(`\* interval '1 day'`, "* interval '24 hours'"), victim: plans("own_expression", "")},
	}
}
