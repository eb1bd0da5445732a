package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
)

// cost is what a batch's statement did, in units that no machine changes.
type cost struct {
	buffers, wal  int // shared buffers looked at, bytes of WAL
	examined      int
	removed, held int
}

// meter runs the batches of an arm for real, each in a transaction of its own under its own settings, as the engine does,
// but under EXPLAIN ANALYZE, and commits them.
type meter struct {
	planner
	cutoff policy.Cutoff
	limit  int
	edit   func(shape, string) string
}

func newMeter(t testing.TB, conn *pgx.Conn, s policy.Sweep, o Options, limit int) *meter {
	t.Helper()
	arms, err := Open(context.Background(), Conn(conn), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return &meter{planner: planner{conn, arms[0]}, cutoff: arms[0].arm.Window.Cutoff(time.Now()), limit: limit}
}

// total adds up a plan. What the query proper reads is in its root; a DELETE whose rows nobody reads runs after it.
func total(e explained) (c cost) {
	read := false
	e.Plan.each(func(n *node, _ []*node) { read = read || n.CTE == "gone" })
	c.buffers, c.wal = e.Plan.Hit+e.Plan.Read, e.Plan.WAL
	e.Plan.each(func(n *node, _ []*node) {
		if n.Type == "ModifyTable" && !read {
			c.buffers += n.Hit + n.Read
			c.wal += n.WAL
		}
	})
	return c
}

// batch runs one batch from a cursor of microseconds, and returns the next one; end says that there is none.
func (m *meter) batch(ctx context.Context, after int64) (c cost, next int64, end bool, err error) {
	values := map[string]string{
		argCutoff: timestamptz(m.cutoff.Time().UnixMicro()), argAfter: timestamptz(after), argLimit: fmt.Sprint(m.limit), argStatementTimeout: "60000", argLockTimeout: "1000",
	}
	st := m.arm.render(shape{})
	if m.edit != nil {
		st.sql = m.edit(shape{}, st.sql)
	}
	table, age := tableName(m.arm.table.name), ident(m.arm.sweep.Age)
	in := fmt.Sprintf("FROM %s WHERE %s >= %s AND %[2]s < %[4]s", table, age, literal(timestamptz(after)), literal(values[argCutoff]))
	var edge *int64
	if err := m.conn.QueryRow(ctx, fmt.Sprintf("SELECT (extract(epoch FROM %s) * 1000000)::bigint %s ORDER BY %s OFFSET %d LIMIT 1", age, in, age, m.limit)).Scan(&edge); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return c, 0, false, err
	}
	until := m.cutoff.Time().UnixMicro()
	if edge != nil {
		until = *edge
	}
	count := fmt.Sprintf("SELECT count(*) %s AND %s < %s", in, age, literal(timestamptz(until)))
	var before, behind int
	if err := m.conn.QueryRow(ctx, count).Scan(&before); err != nil {
		return c, 0, false, err
	}
	script := []string{"BEGIN ISOLATION LEVEL READ COMMITTED", m.arm.settingsSQL().inline(values), "PREPARE batch AS " + st.sql}
	for _, sql := range script {
		if err := m.conn.PgConn().Exec(ctx, sql).Close(); err != nil {
			return c, 0, false, err
		}
	}
	e, err := m.explain(ctx, "ANALYZE, BUFFERS, WAL, TIMING OFF, FORMAT JSON", "batch", st, values, true)
	if err != nil {
		return c, 0, false, err
	}
	if err := m.conn.PgConn().Exec(ctx, "COMMIT; DEALLOCATE batch").Close(); err != nil {
		return c, 0, false, err
	}
	if err := m.conn.QueryRow(ctx, count).Scan(&behind); err != nil {
		return c, 0, false, err
	}
	c = total(e)
	c.examined, c.removed, c.held = before, before-behind, behind
	return c, until, edge == nil, nil
}

// drain runs batches to the end and returns what each cost.
func (m *meter) drain(t testing.TB) (cs []cost) {
	t.Helper()
	at := m.arm.sweep.Since.UnixMicro()
	for end := false; !end; {
		var c cost
		var err error
		if c, at, end, err = m.batch(context.Background(), at); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
	}
	return cs
}

func sum(cs []cost) (s cost) {
	for _, c := range cs {
		s.buffers += c.buffers
		s.wal += c.wal
		s.examined += c.examined
		s.removed += c.removed
		s.held += c.held
	}
	return s
}

// costRuns are the runs of the populations here, of 100 events each.
const costRuns = 400

var costDB = pgtest.NewTemplate("costs", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.PgConn().Exec(ctx, population(costRuns)).Close(); err != nil {
		return err
	}
	return c.PgConn().Exec(ctx, "VACUUM ANALYZE").Close()
})

// full are the batches that examined as much as they may.
func full(cs []cost, limit int) (f []cost) {
	for _, c := range cs {
		if c.examined > limit*9/10 {
			f = append(f, c)
		}
	}
	return f
}

func buffersOf(cs []cost) []int {
	var bs []int
	for _, c := range cs {
		bs = append(bs, c.buffers)
	}
	return bs
}

// flat is an error if batches cost more the further a drain has come.
func flat(cs []cost, limit int) error {
	f := full(cs, limit)
	if len(f) < 10 {
		return fmt.Errorf("only %d batches were full", len(f))
	}
	if first, last := f[0].buffers, f[len(f)-1].buffers; float64(last) > 1.2*float64(first) {
		return fmt.Errorf("the first batch read %d buffers and the last %d; all: %v", first, last, buffersOf(cs))
	}
	return nil
}

// oldSnapshot opens a session that must see every row that is there now, so that nothing dead can be forgotten.
func oldSnapshot(t testing.TB, db *pgtest.DB) {
	t.Helper()
	mustExec(t, db.Conn(t), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM runs")
}

// TestBatchesCostTheSame holds that a batch does not read what the batches before it left behind, nor with a snapshot
// open elsewhere that keeps every dead row, and that a row has its price.
func TestBatchesCostTheSame(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprintf("old snapshot %t", snapshot), func(t *testing.T) {
			db := costDB.New(t)
			if snapshot {
				oldSnapshot(t, db)
			}
			m := newMeter(t, db.Conn(t), runEvents(), Options{}, 1000)
			cs := m.drain(t)
			if err := flat(cs, m.limit); err != nil {
				t.Error(err)
			}
			s := sum(cs)
			perRow := float64(s.buffers) / float64(s.examined)
			t.Logf("%d rows examined, %d removed, %.2f buffers a row, batches %v", s.examined, s.removed, perRow, buffersOf(cs))
			if perRow > 5 {
				t.Errorf("a row cost %.2f buffers; want 5 at most", perRow)
			}
			if s.removed == 0 || s.removed+s.held != s.examined {
				t.Errorf("%+v is no drain", s)
			}
		})
	}
}

// TestHeldHeadIsReadOnce holds that rows of a live run at the head of the table are read once in a drain, not once in a
// batch.
func TestHeldHeadIsReadOnce(t *testing.T) {
	cutoff := runEvents().Window.Cutoff(time.Now())
	drained := func(head int) []cost {
		db := costDB.New(t)
		conn := db.Conn(t)
		mustExec(t, conn, fmt.Sprintf(`INSERT INTO runs VALUES ('tenant-0', 'live', 'waiting-for-approval');
INSERT INTO run_events SELECT 'tenant-0', 'live', g, 'step', NULL, now() - interval '100 days' + g * interval '1 second' FROM generate_series(1, %d) g`, head))
		mustExec(t, conn, "VACUUM ANALYZE")
		m := newMeter(t, conn, runEvents(), Options{}, 1000)
		m.cutoff = cutoff
		return m.drain(t)
	}
	const head = 10_000
	without, with := drained(0), drained(head)
	extra := sum(with).buffers - sum(without).buffers
	t.Logf("%d held rows at the head cost %d buffers more; batches %v", head, extra, buffersOf(with))
	if perRow := float64(extra) / head; perRow > 2 {
		t.Errorf("each held row at the head cost %.2f buffers; want 2 at most", perRow)
	}
	if got := sum(with).examined - sum(without).examined; got != head {
		t.Errorf("%d rows more were examined; want %d", got, head)
	}
}

// TestIdle holds what a sweep costs that finds nothing to remove: a few buffers before anything is past its window, and
// after a drain two readings of the index over the held rows, the edge's and the keys', with the probes of their owners.
func TestIdle(t *testing.T) {
	db := costDB.New(t)
	conn := db.Conn(t)
	m := newMeter(t, conn, runEvents(), Options{OneSweeper: true}, 1000)
	old := *m
	old.cutoff = policy.CutoffAt(time.Now().AddDate(-1, 0, 0))
	before := sum(old.drain(t))
	t.Logf("a cutoff older than every row: %d buffers", before.buffers)
	if before.buffers > 10 || before.examined != 0 {
		t.Errorf("a cutoff older than every row cost %d buffers for %d rows; want 10 at most for none", before.buffers, before.examined)
	}
	first := sum(m.drain(t))
	_ = m.drain(t) // whoever comes first marks the index entries of what is gone
	for _, vacuumed := range []bool{false, true} {
		if vacuumed {
			mustExec(t, conn, "VACUUM")
		}
		idle := sum(m.drain(t))
		if idle.removed != 0 || idle.held != first.held || first.held == 0 {
			t.Errorf("after a drain of %+v the next counted %+v", first, idle)
		}
		reading := m.reading(t)
		owners := int(db.Int(t, "SELECT count(DISTINCT (tenant_id, run_id)) FROM run_events WHERE created_at < $1", m.cutoff.Time()))
		want := 2*reading + 6*owners + 10
		t.Logf("vacuumed %t: %d buffers for %d held rows of %d owners; one reading of their index is %d", vacuumed, idle.buffers, idle.held, owners, reading)
		if idle.buffers > want {
			t.Errorf("vacuumed %t: an idle sweep read %d buffers; want %d at most", vacuumed, idle.buffers, want)
		}
	}
}

// reading is what it costs to count the rows before the cutoff through the index.
func (m *meter) reading(t testing.TB) int {
	t.Helper()
	m.begin(t)
	defer m.end(t)
	age := ident(m.arm.sweep.Age)
	st := statement{sql: fmt.Sprintf("SELECT count(*) FROM ONLY %s e WHERE e.%s < %s", tableName(m.arm.table.name), age, literal(timestamptz(m.cutoff.Time().UnixMicro())))}
	if err := m.prepare(t.Context(), "reading", st); err != nil {
		t.Fatal(err)
	}
	e, err := m.explain(t.Context(), "ANALYZE, BUFFERS, FORMAT JSON", "reading", st, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return total(e).buffers
}

// TestLoserReadsNothing holds that a batch which does not get the sweep to itself touches no table.
func TestLoserReadsNothing(t *testing.T) {
	db := costDB.New(t)
	m := newMeter(t, db.Conn(t), runEvents(), Options{OneSweeper: true}, 1000)
	winner := db.Conn(t)
	mustExec(t, winner, fmt.Sprintf("SELECT pg_advisory_lock(%d)", m.arm.lockKey()))
	c, _, _, err := m.batch(t.Context(), m.arm.sweep.Since.UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	if c.buffers != 0 || c.wal != 0 || c.removed != 0 {
		t.Errorf("the loser cost %+v; want nothing", c)
	}
	mustExec(t, winner, fmt.Sprintf("SELECT pg_advisory_unlock(%d)", m.arm.lockKey()))
	if c, _, _, err = m.batch(t.Context(), m.arm.sweep.Since.UnixMicro()); err != nil || c.removed == 0 {
		t.Errorf("with the lock free the batch cost %+v with the error %v; want rows removed", c, err)
	}
}

// TestOwnerLockIsCheap compares a batch that locks its owners with one that does not have to, at 100 rows an owner: the
// lock is one record for each owner.
func TestOwnerLockIsCheap(t *testing.T) {
	run := func(final bool) cost {
		s := runEvents()
		g := *s.Guard.Owner
		g.Final = final
		s.Guard.Owner = &g
		m := newMeter(t, costDB.New(t).Conn(t), s, Options{}, 5000)
		c, _, _, err := m.batch(t.Context(), m.arm.sweep.Since.UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	locked, free := run(false), run(true)
	t.Logf("with the lock %+v, without %+v", locked, free)
	if free.wal == 0 || locked.removed != free.removed {
		t.Fatalf("with the lock %+v, without %+v: not to be compared", locked, free)
	}
	if locked.wal <= free.wal || float64(locked.wal) > 1.05*float64(free.wal) {
		t.Errorf("with the owners locked a batch writes %d bytes of WAL, without %d; want more, by a twentieth at most", locked.wal, free.wal)
	}
}
