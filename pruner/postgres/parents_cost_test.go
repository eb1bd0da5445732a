package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// bill adds up what the statements of a session cost, as the server explains each of them once it has run. What a foreign
// key's own checks read is not in it.
type bill struct {
	mu sync.Mutex
	c  cost
}

// billed is a connection whose statements are added up.
func billed(t testing.TB, db *pgtest.DB, opts ...func(*pgx.ConnConfig)) (*pgx.Conn, *bill) {
	t.Helper()
	b := &bill{}
	conn := db.Conn(t, append(opts, func(c *pgx.ConnConfig) {
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			_, plan, ok := strings.Cut(n.Message, "plan:")
			if !ok {
				return
			}
			var e explained
			if err := json.Unmarshal([]byte(plan), &e); err != nil {
				panic(err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.c.buffers += e.Plan.Hit + e.Plan.Read
			b.c.wal += e.Plan.WAL
		}
	})...)
	mustExec(t, conn, `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_buffers = on; SET auto_explain.log_wal = on;
SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET client_min_messages = log`)
	return conn, b
}

// take is what was spent since the last time.
func (b *bill) take() cost {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.c
	b.c = cost{}
	return c
}

// priced is a batch and what it cost.
type priced struct {
	pruner.Result
	cost
}

// pricedPass runs a pass and says what each batch cost.
func pricedPass(t testing.TB, db *pgtest.DB, s policy.Sweep, limit int) (all []priced, sum priced) {
	t.Helper()
	conn, b := billed(t, db)
	arms, err := Open(context.Background(), Conn(conn), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.take()
	var at pruner.Cursor
	for {
		res, err := arms[0].Prune(context.Background(), pruner.Batch{Cutoff: raceCutoff, Limit: limit, After: at})
		if err != nil {
			t.Fatal(err)
		}
		p := priced{res, b.take()}
		all = append(all, p)
		sum.Result = plus(sum.Result, res)
		sum.buffers += p.buffers
		sum.wal += p.wal
		if res.End {
			return all, sum
		}
		at = res.Next
	}
}

func buffersOfAll(ps []priced) (bs []int) {
	for _, p := range ps {
		bs = append(bs, p.buffers)
	}
	return bs
}

// TestIdleParents holds what a batch costs that finds nothing that is past its window.
func TestIdleParents(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, outboxTables)
	db.Exec(t, `INSERT INTO ev SELECT g, timestamptz '2021-01-01 00:00+00' + g * interval '1 second' FROM generate_series(1, 20000) g; INSERT INTO dl SELECT g, g, 'r', 'ok' FROM generate_series(1, 20000) g`)
	db.Exec(t, "VACUUM ANALYZE")
	_, sum := pricedPass(t, db, outboxOfEv(), 1000)
	t.Logf("%d buffers", sum.buffers)
	if sum.buffers > 6 || sum.buffers == 0 || sum.wal > 0 || sum.Examined > 0 {
		t.Errorf("an idle batch cost %+v; want 6 buffers at most", sum)
	}
}

// TestChunksCostTheSame empties a parent of 20,000 children, 500 at a time: no chunk walks the dead entries that those
// before it have left, nor with a snapshot open elsewhere that keeps every dead row.
func TestChunksCostTheSame(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprintf("old snapshot %t", snapshot), func(t *testing.T) {
			db := pgtest.New(t)
			db.Exec(t, outboxTables)
			db.Exec(t, `INSERT INTO ev VALUES (1, '2020-01-01 01:00+00'); INSERT INTO dl SELECT g, 1, 'receiver-' || lpad(g::text, 6, '0'), CASE g % 5 WHEN 0 THEN 'dead' ELSE 'ok' END FROM generate_series(1, 20000) g`)
			db.Exec(t, "VACUUM ANALYZE")
			if snapshot {
				mustExec(t, db.Conn(t), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ev")
			}
			s := outboxOfEv()
			s.Batch.Limit = 500
			all, sum := pricedPass(t, db, s, 500)
			var chunks []priced
			for _, p := range all {
				if p.Children == 500 {
					chunks = append(chunks, p)
				}
			}
			t.Logf("%d buffers, %d bytes of WAL; chunks %v, and the others %d", sum.buffers, sum.wal, buffersOfAll(chunks), len(all)-len(chunks))
			if sum.Children != 20000 || sum.Removed != 1 || len(chunks) != 40 {
				t.Fatalf("the pass counted %+v in %d chunks", sum, len(chunks))
			}
			first, most := chunks[0].buffers, 0
			for _, c := range chunks {
				most = max(most, c.buffers)
			}
			if float64(most) > 1.2*float64(first) {
				t.Errorf("the first chunk read %d buffers and another %d", first, most)
			}
			if sum.buffers > chunkBuffers {
				t.Errorf("it read %d buffers in all; want %d at most", sum.buffers, chunkBuffers)
			}
		})
	}
}

// chunkBuffers bounds the emptying of 20,000 children, with a sixth to spare: each is read through the index, found by its
// address and removed.
const chunkBuffers = 70_000

// TestParentsCostTheSame holds that the rows of a later batch cost no more than those of an earlier one.
func TestParentsCostTheSame(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprintf("old snapshot %t", snapshot), func(t *testing.T) {
			db := pgtest.New(t)
			db.Exec(t, outboxTables)
			db.Exec(t, `INSERT INTO ev SELECT g, timestamptz '2020-01-01 00:00+00' + g * interval '1 second' FROM generate_series(1, 8000) g ORDER BY md5(g::text);
INSERT INTO dl SELECT e.id * 10 + r, e.id, 'r' || r, CASE WHEN e.id % 20 = 0 AND r = 1 THEN 'pending' ELSE 'ok' END FROM ev e, generate_series(1, 4) r ORDER BY md5(e.id::text || r)`)
			db.Exec(t, "VACUUM ANALYZE")
			if snapshot {
				mustExec(t, db.Conn(t), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ev")
			}
			all, sum := pricedPass(t, db, outboxOfEv(), 1000)
			if sum.Removed != 7600 || sum.Children != 30400 || sum.Held != 400 {
				t.Fatalf("the pass counted %+v", sum)
			}
			perRow := func(p priced) float64 { return float64(p.buffers) / float64(p.Removed+p.Children) }
			var full []priced
			for _, p := range all[2:] { // the first ones find out how many children parents have
				if p.Removed+p.Children > 700 {
					full = append(full, p)
				}
			}
			t.Logf("%.2f buffers a row in all; batches %v", perRow(sum), buffersOfAll(all))
			if len(full) < 20 {
				t.Fatalf("only %d batches were full", len(full))
			}
			first, last := perRow(full[0]), perRow(full[len(full)-1])
			if last > 1.2*first {
				t.Errorf("a row cost %.2f buffers at first and %.2f at last", first, last)
			}
			if got := perRow(sum); got > parentBuffers {
				t.Errorf("a row cost %.2f buffers; want %.2f at most", got, parentBuffers)
			}
		})
	}
}

// parentBuffers bounds what a removed row costs, of which four are children and one is a parent, with a sixth to spare.
const parentBuffers = 9.2

// TestHeldParentsAreReadOnce holds that owed events at the head of the table are read once in a drain, not once in a batch.
func TestHeldParentsAreReadOnce(t *testing.T) {
	drained := func(head int) (sum priced) {
		db := pgtest.New(t)
		db.Exec(t, outboxTables)
		db.Exec(t, fmt.Sprintf(`INSERT INTO ev SELECT g, timestamptz '2020-01-02 00:00+00' + g * interval '1 second' FROM generate_series(1, 4000) g; INSERT INTO dl SELECT g, g, 'r', 'ok' FROM generate_series(1, 4000) g;
INSERT INTO ev SELECT -g, timestamptz '2020-01-01 00:00+00' + g * interval '1 second' FROM generate_series(1, %[1]d) g; INSERT INTO dl SELECT -g, -g, 'r', 'pending' FROM generate_series(1, %[1]d) g`, head))
		db.Exec(t, "VACUUM ANALYZE")
		_, sum = pricedPass(t, db, outboxOfEv(), 500)
		return sum
	}
	const head = 5000
	without, with := drained(0), drained(head)
	extra := with.buffers - without.buffers
	t.Logf("%d held events at the head cost %d buffers more", head, extra)
	if with.Held != head || with.Removed != without.Removed || without.Removed != 4000 {
		t.Fatalf("%+v and %+v are not to be compared", with, without)
	}
	if perRow := float64(extra) / head; perRow > 4.3 {
		t.Errorf("each held event at the head cost %.2f buffers; want 4.3 at most", perRow)
	}
}
