package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// pricedPurge runs a pass over a step of a purge and says what each batch cost.
func pricedPurge(t testing.TB, db *pgtest.DB, p policy.Purge, step, limit int) (all []priced, sum priced) {
	t.Helper()
	conn, b := billed(t, db)
	s := openPurge(t, Conn(conn), p, "acme").Steps()[step]
	b.take()
	var at pruner.Cursor
	for {
		res, err := s.Remove(context.Background(), tenant.Batch{Limit: limit, After: at})
		if err != nil {
			t.Fatal(err)
		}
		x := priced{res, b.take()}
		all = append(all, x)
		sum.Result = plusPurged(sum.Result, res)
		sum.buffers += x.buffers
		sum.wal += x.wal
		if res.End {
			return all, sum
		}
		at = res.Next
	}
}

// flatPurge holds that full batches cost the same from the first to the last, and what a row costs in all.
func flatPurge(t *testing.T, all []priced, sum priced, limit int, most float64) {
	t.Helper()
	var full []priced
	for _, p := range all {
		if p.Removed == limit {
			full = append(full, p)
		}
	}
	t.Logf("%.2f buffers and %d bytes of WAL a row; batches %v", float64(sum.buffers)/float64(max(1, sum.Removed)), sum.wal/max(1, sum.Removed), buffersOfAll(all))
	if len(full) < 8 {
		t.Fatalf("only %d batches were full", len(full))
	}
	worst := 0
	for _, p := range full {
		worst = max(worst, p.buffers)
	}
	if first := full[0].buffers; float64(worst) > 1.2*float64(first) {
		t.Errorf("the first batch read %d buffers and another %d", first, worst)
	}
	if got := float64(sum.buffers) / float64(sum.Removed); got > most {
		t.Errorf("a row cost %.2f buffers; want %.2f at most", got, most)
	}
}

// TestPurgeBatchesCostTheSame removes 10,000 rows of one tenant of twenty by key, by pages, and under a row that has all of
// them, also beside a snapshot that keeps every dead row.
func TestPurgeBatchesCostTheSame(t *testing.T) {
	const tables = `CREATE TABLE runs (tenant_id text NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
CREATE TABLE logs (org text, id int, note text); CREATE TABLE orders (id int PRIMARY KEY, tenant_id text NOT NULL, UNIQUE (tenant_id, id)); CREATE TABLE lines (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders, UNIQUE (order_id, id));
INSERT INTO runs SELECT CASE WHEN g % 5 = 0 THEN 'acme' ELSE 'tenant-' || g % 20 END, g, repeat('n', 50) FROM generate_series(1, 50000) g ORDER BY md5(g::text);
INSERT INTO logs SELECT tenant_id, id, note FROM runs; INSERT INTO orders SELECT g, CASE WHEN g % 5 = 0 THEN 'acme' ELSE 'other' END FROM generate_series(1, 10000) g;
INSERT INTO lines SELECT g, 5000 FROM generate_series(1, 10000) g`
	p := purgeOf("runs", "logs org", "orders")
	p.Tables[2].Children = []policy.Child{{Table: public("lines"), Key: keyTo("id", "order_id")}}
	for _, snapshot := range []bool{false, true} {
		db := pgtest.New(t)
		db.Exec(t, tables)
		db.Exec(t, "VACUUM ANALYZE")
		if snapshot {
			oldSnapshot(t, db)
		}
		for step, c := range []struct {
			name string
			most float64 // buffers a row, with a sixth to spare
		}{{"key", purgeByKey}, {"pages", purgeByPages}, {"lines", purgeInOne}} {
			t.Run(fmt.Sprintf("%s, old snapshot %t", c.name, snapshot), func(t *testing.T) {
				all, sum := pricedPurge(t, db, p, step, 1000)
				if sum.Removed != 10_000 || sum.Examined != 10_000 {
					t.Fatalf("the pass counted %+v", sum.Result)
				}
				flatPurge(t, all, sum, 1000, c.most)
			})
		}
	}
}

// What a removed row costs: it is found, locked, removed, and looked for again; its index entries are not touched.
const (
	purgeByKey   = 7.3
	purgeByPages = 7.2
	purgeInOne   = 11.0
)

// TestPurgePagesAreReadOnce holds that a table which no index serves is read once in a pass, however few of its rows are
// the tenant's, and by at most maxPages a batch.
func TestPurgePagesAreReadOnce(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE logs (org text, note text) WITH (autovacuum_enabled = off); INSERT INTO logs SELECT CASE g % 1000 WHEN 0 THEN 'acme' ELSE 'other' END, repeat('n', 1500) FROM generate_series(1, 12000) g`)
	pages := int(db.Int(t, "SELECT pg_relation_size('logs') / 8192"))
	all, sum := pricedPurge(t, db, purgeOf("logs org"), 0, 5000)
	t.Logf("%d pages, %d buffers in all; batches %v", pages, sum.buffers, buffersOfAll(all))
	if sum.Removed != 12 || len(all) != (pages+maxPages-1)/maxPages || sum.buffers > pages+12*9+10*len(all) {
		t.Errorf("%d rows in %d batches, %d buffers for %d pages", sum.Removed, len(all), sum.buffers, pages)
	}
	small, _ := pricedPurge(t, db, purgeOf("logs org"), 0, 100)
	for _, p := range small {
		if p.buffers > 120 {
			t.Errorf("a batch of 100 rows at most read %d buffers", p.buffers)
		}
	}
}

// TestPurgeLoserReadsNothing holds what a batch costs that finds the gate shut, and one that finds no row.
func TestPurgeLoserReadsNothing(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables+shopRows)
	conn, b := billed(t, db)
	p := openPurge(t, Conn(conn), shop(), "nobody")
	holder := db.Conn(t)
	mustExec(t, holder, fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d)", p.steps[0].gate))
	for n, s := range p.steps {
		b.take()
		same(t, "busy", stepUnderway(t.Context(), s, 50).must(t), pruner.Result{Busy: true})
		if c := b.take(); c.buffers > 0 {
			t.Errorf("step %d: the loser read %d buffers", n, c.buffers)
		}
	}
	mustExec(t, holder, "ROLLBACK")
	for n, s := range p.steps {
		b.take()
		same(t, "nothing", stepUnderway(t.Context(), s, 50).must(t).Examined, 0)
		if c := b.take(); c.buffers > 4 || c.wal > 0 {
			t.Errorf("step %d: an empty batch cost %+v", n, c)
		}
	}
}
