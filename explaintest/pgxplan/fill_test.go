package pgxplan_test

import (
	"strings"
	"testing"

	et "github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestFill holds that a table is filled until the planner has a choice: the rule that fails on the small one holds then.
func TestFill(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE SCHEMA "My.Own"; CREATE TABLE "My.Own".events (id bigint, at timestamptz NOT NULL); CREATE INDEX events_at ON "My.Own".events (at);
INSERT INTO "My.Own".events SELECT g, now() FROM generate_series(1, 50) g`)
	conn := db.Conn(t)
	relation := `"My.Own".events`
	st := pgxplan.Statement{SQL: `SELECT id FROM "My.Own".events WHERE at >= $1 AND at < $2`, Args: []any{jan2, jan3}}
	rule := et.UsesIndex(relation, "events_at").RangeOn("at")

	p, err := pgxplan.Explain(t.Context(), conn, st)
	if err != nil {
		t.Fatal(err)
	}
	p.Root.Type = "Seq Scan" // whatever the planner guesses of a table without statistics
	if err := et.Check(p, rule); err == nil || !strings.Contains(err.Error(), "was never analysed") {
		t.Errorf("of a table that was never analysed the error is %v", err)
	}
	if err := pgxplan.Enough(t.Context(), conn, relation); err == nil || !strings.Contains(err.Error(), "has 50 rows in 1 pages") {
		t.Errorf("50 rows are enough: %v", err)
	}
	if p, err = pgxplan.Explain(t.Context(), conn, st); err != nil {
		t.Fatal(err)
	}
	if err := et.Check(p, rule); err == nil || !strings.Contains(err.Error(), "rightly read whole: fill in more rows") {
		t.Errorf("of a small table the error is %v", err)
	}

	if err := pgxplan.Fill(t.Context(), conn, relation, `INSERT INTO "My.Own".events SELECT g, timestamptz '2026-01-01' + g * interval '1 minute' FROM generate_series($1::bigint, $2::bigint) g`); err != nil {
		t.Fatal(err)
	}
	pgxplan.AssertControl(t.Context(), t, conn, `"My.Own".events_at`, st, rule, et.NoSeqScan(relation))
	if n := db.Int(t, `SELECT count(*) FROM "My.Own".events`); n != 20_050 {
		t.Errorf("the table has %d rows; want those of two insertions", n)
	}
	if n := db.Int(t, `SELECT count(DISTINCT id) FROM "My.Own".events WHERE at < now() - interval '1 second' OR at > now()`); n != 20_000 {
		t.Errorf("%d numbers were given to the rows; want each of 20,000 once", n)
	}
}

// TestFillErrors holds that what stays small is an error and leaves nothing.
func TestFillErrors(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE t (id bigint) PARTITION BY RANGE (id); CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (30001); CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (30001) TO (90000);
CREATE TABLE p (id bigint) PARTITION BY RANGE (id); CREATE VIEW v AS SELECT 1 AS id; CREATE TABLE few (id bigint PRIMARY KEY)`)
	conn := db.Conn(t)
	rows := " SELECT g FROM generate_series($1::bigint, $2::bigint) g"
	for _, c := range []struct{ relation, insert, says string }{
		{"nothing", "INSERT INTO nothing" + rows, `"nothing" does not exist`},
		{"p", "SELECT" + strings.TrimPrefix(rows, " SELECT"), "nor has it partitions"},
		{"v", "SELECT" + strings.TrimPrefix(rows, " SELECT"), "nor has it partitions"},
		{"few", "INSERT INTO few SELECT 1 FROM generate_series($1::bigint, $2::bigint) LIMIT 1", "duplicate key"},
		{"few", "INSERT INTO few" + rows + " WHERE g < 10", "few has 9 rows in 1 pages"},
	} {
		err := pgxplan.Fill(t.Context(), conn, c.relation, c.insert)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "fill "+c.relation) {
			t.Errorf("%s: the error is %v; want %q in it", c.insert, err, c.says)
		}
	}
	if n := db.Int(t, "SELECT count(*) FROM few"); n != 0 {
		t.Errorf("%d rows are left; want none", n)
	}
	if err := pgxplan.Fill(t.Context(), conn, "t", "INSERT INTO t"+rows); err != nil { // until the second partition has enough
		t.Error(err)
	}
	if n := db.Int(t, "SELECT count(*) FROM t_2"); n < 20_000 {
		t.Errorf("the second partition has %d rows", n)
	}
}
