package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// raceCutoff is hour 100 of the populations of the isolation orders, which are those of the races too.
var raceCutoff = policy.CutoffAt(time.Date(2020, 1, 1, 100, 0, 0, 0, time.UTC))

// patience bounds every wait for a step of another session.
const patience = 20 * time.Second

// race is a population with its sweep on a database of its own.
type race struct {
	*pgtest.DB
	rows  string
	left  string // the query of what is left
	sweep policy.Sweep
	admin *pgx.Conn
}

func newRace(t *testing.T, tables, rows string, sweep policy.Sweep, steps []step) *race {
	t.Helper()
	r := &race{DB: pgtest.New(t), rows: rows, sweep: sweep}
	for _, s := range steps {
		if s.name == "left" {
			r.left = s.sql
		}
	}
	r.sweep.Timeouts.Lock = patience
	r.Exec(t, tables)
	r.Exec(t, rows)
	r.admin = r.Conn(t)
	return r
}

func ownerRace(t *testing.T) *race {
	return newRace(t, ownerTables, ownerRows, guardedEvents(), ownerSteps)
}
func jobRace(t *testing.T) *race { return newRace(t, jobTables, jobRows, doneJobs(), jobSteps) }

// sweeper is an arm of the race on a connection of its own.
type sweeper struct {
	*Arm
	conn *pgx.Conn
}

func (r *race) sweeper(t *testing.T, o Options, opts ...func(*pgx.ConnConfig)) sweeper {
	t.Helper()
	conn := r.Conn(t, opts...)
	arms, err := Open(t.Context(), Conn(conn), r.sweep, o)
	if err != nil {
		t.Fatal(err)
	}
	return sweeper{arms[0], conn}
}

func (s sweeper) pid() uint32 { return s.conn.PgConn().PID() }

// counted has the batches counted by RETURNING.
func (s sweeper) counted() sweeper {
	table := *s.table
	table.statistics = false
	s.table = &table
	return s
}

func (r *race) leftNow(t *testing.T) string {
	t.Helper()
	return r.Text(t, r.left)
}

// untilWaiting returns when the session waits for a lock of another one.
func (r *race) untilWaiting(t *testing.T, pid uint32) {
	t.Helper()
	r.until(t, fmt.Sprintf("session %d waits for a lock", pid), "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", pid)
}

// until polls the server for a step of another session.
func (r *race) until(t *testing.T, what, sql string, args ...any) {
	t.Helper()
	eventually(t, what, func() bool {
		var yes bool
		err := r.admin.QueryRow(t.Context(), sql, args...).Scan(&yes)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatalf("%s: %v", what, err)
		}
		return yes
	})
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in %s it did not come to this: %s", patience, what)
		}
	}
}

// underway is the answer of a call that is on its way in another goroutine.
type underway[T any] struct{ c chan answered[T] }

type answered[T any] struct {
	got T
	err error
}

func start[T any](f func() (T, error)) underway[T] {
	p := underway[T]{make(chan answered[T], 1)}
	go func() {
		got, err := f()
		p.c <- answered[T]{got, err}
	}()
	return p
}

// end waits for the answer.
func (p underway[T]) end(t *testing.T) (T, error) {
	t.Helper()
	select {
	case a := <-p.c:
		return a.got, a.err
	case <-time.After(patience):
		t.Fatalf("no answer in %s", patience)
		panic("unreachable")
	}
}

func (p underway[T]) must(t *testing.T) T {
	t.Helper()
	got, err := p.end(t)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// prune begins a batch of 50.
func (s sweeper) prune(ctx context.Context) underway[pruner.Result] {
	return start(func() (pruner.Result, error) { return s.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}) })
}

func (s sweeper) drain(ctx context.Context, b drain.Bounds) underway[drain.Report] {
	return start(func() (drain.Report, error) { return drain.Run(ctx, s, raceCutoff, b) })
}

// counts is a result without where the next batch goes on.
func counts(r pruner.Result) pruner.Result {
	r.Next, r.End = pruner.Cursor{}, false
	return r
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, not %+v", what, got, want)
	}
}

const begin = "BEGIN ISOLATION LEVEL READ COMMITTED; "

// disturbance is what another session has done, and not committed, when a batch begins.
type disturbance struct {
	name   string
	sql    string
	waits  bool // the batch waits for that session
	end    string
	want   pruner.Result
	left   string
	again  pruner.Result // the batch after
	leaves string        // what that one leaves; "": the same
}

var ownerDisturbances = []disturbance{
	{"reopened", "UPDATE runs SET status = 'live' WHERE id = 'b'", false, "COMMIT", count(22, 5, 5, 5, 0, 7), "-2 b5 c5 x5", count(17, 0, 10, 0, 0, 7), ""},
	{"reopened and rolled back", "UPDATE runs SET status = 'live' WHERE id = 'b'", false, "ROLLBACK", count(22, 5, 5, 5, 0, 7), "-2 b5 c5 x5", count(17, 5, 5, 0, 0, 7), "-2 c5 x5"},
	{"owner deleted", "DELETE FROM runs WHERE id = 'b'", false, "COMMIT", count(22, 5, 5, 5, 0, 7), "-2 b5 c5 x5", count(17, 0, 5, 0, 0, 12), ""},
	{"owner's key changed", "UPDATE runs SET id = 'b2' WHERE id = 'b'", false, "COMMIT", count(22, 5, 5, 5, 0, 7), "-2 b5 c5 x5", count(17, 0, 5, 0, 0, 12), ""},
	{"owner touched", "UPDATE runs SET status = status WHERE id = 'b'", false, "COMMIT", count(22, 5, 5, 5, 0, 7), "-2 b5 c5 x5", count(17, 5, 5, 0, 0, 7), "-2 c5 x5"},
	{"age forward", "UPDATE ev SET at = at + interval '500 hours' WHERE run = 'a' AND seq = 2", true, "COMMIT", count(22, 9, 5, 0, 1, 7), "-2 a1 c5 x5", count(12, 0, 5, 0, 0, 7), ""},
	{"age forward and rolled back", "UPDATE ev SET at = at + interval '500 hours' WHERE run = 'a' AND seq = 2", true, "ROLLBACK", undisturbed, "-2 c5 x5", count(12, 0, 5, 0, 0, 7), ""},
	{"row touched", "UPDATE ev SET at = at WHERE run = 'a' AND seq = 2", true, "COMMIT", count(22, 9, 5, 0, 1, 7), "-2 a1 c5 x5", count(13, 1, 5, 0, 0, 7), "-2 c5 x5"},
	{"row given to a live owner", "UPDATE ev SET run = 'c', seq = 99 WHERE run = 'a' AND seq = 2", true, "COMMIT", count(22, 9, 5, 0, 1, 7), "-2 c6 x5", count(13, 0, 6, 0, 0, 7), ""},
	{"row given to nobody", "UPDATE ev SET run = null WHERE run = 'a' AND seq = 2", true, "COMMIT", count(22, 9, 5, 0, 1, 7), "-3 c5 x5", count(13, 0, 5, 0, 0, 8), ""},
	{"a second deleter", "DELETE FROM ev WHERE run = 'a'", true, "COMMIT", count(22, 5, 5, 0, 5, 7), "-2 c5 x5", count(12, 0, 5, 0, 0, 7), ""},
	{"a second deleter that gives up", "DELETE FROM ev WHERE run = 'a'", true, "ROLLBACK", undisturbed, "-2 c5 x5", count(12, 0, 5, 0, 0, 7), ""},
	{"rows inserted", "INSERT INTO ev VALUES ('b', 50, '2020-01-01 02:00+00'), ('c', 50, '2020-01-01 02:00+00')", false, "COMMIT", undisturbed, "-2 b1 c6 x5", count(14, 1, 6, 0, 0, 7), "-2 c6 x5"},
}

var jobDisturbances = []disturbance{
	{"retried", "UPDATE job SET state = 'available', fin = null WHERE id = 3", true, "COMMIT", count(5, 4, 0, 0, 1, 0), "3available 6live 7done", pruner.Result{}, ""},
	{"retried, its age kept", "UPDATE job SET state = 'available' WHERE id = 3", true, "COMMIT", count(5, 4, 0, 0, 1, 0), "3available 6live 7done", pruner.Result{}, ""},
	{"retried and rolled back", "UPDATE job SET state = 'available', fin = null WHERE id = 3", true, "ROLLBACK", count(5, 5, 0, 0, 0, 0), "6live 7done", pruner.Result{}, ""},
	{"age forward", "UPDATE job SET fin = fin + interval '900 hours' WHERE id = 3", true, "COMMIT", count(5, 4, 0, 0, 1, 0), "3done 6live 7done", pruner.Result{}, ""},
	{"touched", "UPDATE job SET fin = fin WHERE id = 3", true, "COMMIT", count(5, 4, 0, 0, 1, 0), "3done 6live 7done", count(1, 1, 0, 0, 0, 0), "6live 7done"},
	{"a second deleter", "DELETE FROM job WHERE id IN (2, 3)", true, "COMMIT", count(5, 3, 0, 0, 2, 0), "6live 7done", pruner.Result{}, ""},
}

var isolationLevels = []string{"read committed", "repeatable read", "serializable"}

// TestRaces lets another session act before and while a batch runs, under every isolation level that a database may have
// as its default, and counted in both ways.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name         string
		race         func(*testing.T) *race
		disturbances []disturbance
	}{{"owner", ownerRace, ownerDisturbances}, {"own state", jobRace, jobDisturbances}} {
		for _, level := range isolationLevels {
			t.Run(kind.name+" under "+level, func(t *testing.T) {
				t.Parallel()
				r := kind.race(t)
				r.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", ident(r.Name), level))
				other := r.Conn(t)
				statistics := r.sweeper(t, Options{})
				returning := r.sweeper(t, Options{OneSweeper: true}).counted()
				for i, d := range kind.disturbances {
					s := statistics
					if i%2 == 0 == (level == "serializable") {
						s = returning
					}
					t.Run(d.name, func(t *testing.T) { r.disturb(t, other, s, d) })
				}
			})
		}
	}
}

func (r *race) disturb(t *testing.T, other *pgx.Conn, s sweeper, d disturbance) {
	mustExec(t, other, begin+r.rows+"; COMMIT")
	mustExec(t, other, begin+d.sql)
	batch := s.prune(t.Context())
	if d.waits {
		r.untilWaiting(t, s.pid())
		mustExec(t, other, d.end)
	}
	same(t, "the batch", counts(batch.must(t)), d.want)
	if !d.waits {
		mustExec(t, other, d.end)
	}
	same(t, "left", r.leftNow(t), d.left)
	same(t, "the batch after", counts(s.prune(t.Context()).must(t)), d.again)
	if d.leaves == "" {
		d.leaves = d.left
	}
	same(t, "left then", r.leftNow(t), d.leaves)
}

// TestReopenDuring reopens a run whose owner's lock the batch has, while the batch waits for a row: the reopening waits, as
// if the sweep had come first.
func TestReopenDuring(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			r.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", ident(r.Name), level))
			s, holder, other := r.sweeper(t, Options{}), r.Conn(t), r.Conn(t)
			mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 1 FOR UPDATE")
			batch := s.prune(t.Context())
			r.untilWaiting(t, s.pid())
			reopen := start(func() (struct{}, error) {
				return struct{}{}, other.PgConn().Exec(t.Context(), begin+"UPDATE runs SET status = 'live' WHERE id = 'b'; COMMIT").Close()
			})
			r.untilWaiting(t, other.PgConn().PID())
			mustExec(t, holder, "COMMIT")
			same(t, "the batch", counts(batch.must(t)), undisturbed)
			reopen.must(t)
			same(t, "left", r.leftNow(t), "-2 c5 x5")
			same(t, "run b", r.Text(t, "SELECT status FROM runs WHERE id = 'b'"), "live")
		})
	}
}

// TestReopenAfterSnapshot commits a change between a batch's snapshot and its locks.
func TestReopenAfterSnapshot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql, left string
		race            func(*testing.T) *race
		want            pruner.Result
	}{
		{"reopened", "UPDATE runs SET status = 'live' WHERE id = 'b'", "-2 b5 c5 x5", ownerRace, count(22, 5, 5, 5, 0, 7)},
		{"owner deleted", "DELETE FROM runs WHERE id = 'b'", "-2 b5 c5 x5", ownerRace, count(22, 5, 5, 5, 0, 7)},
		{"age forward", "UPDATE ev SET at = at + interval '500 hours' WHERE run = 'a' AND seq = 2", "-2 a1 c5 x5", ownerRace, count(22, 9, 5, 0, 1, 7)},
		{"retried", "UPDATE job SET state = 'available' WHERE id = 3", "3available 6live 7done", jobRace, count(5, 4, 0, 0, 1, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.race(t)
			s, holder, other := r.sweeper(t, Options{}), r.Conn(t), r.Conn(t)
			s.edit = paused
			mustExec(t, holder, "SELECT pg_advisory_lock(7)")
			batch := s.prune(t.Context())
			r.untilWaiting(t, s.pid())
			mustExec(t, other, c.sql)
			mustExec(t, holder, "SELECT pg_advisory_unlock(7)")
			same(t, "the batch", counts(batch.must(t)), c.want)
			same(t, "left", r.leftNow(t), c.left)
		})
	}
}

// events is a population of n due events of 40 runs, of which each tenth is live, at most 4 of one age.
func events(n int) string {
	return fmt.Sprintf(`TRUNCATE runs, ev;
INSERT INTO runs SELECT 'r' || g, CASE WHEN g %% 10 = 0 THEN 'live' ELSE 'done' END FROM generate_series(1, 40) g;
INSERT INTO ev SELECT 'r' || 1 + g %% 40, g, timestamptz '2020-01-01 00:00+00' + g / 4 * interval '1 minute' FROM generate_series(1, %d) g;`, n)
}

const (
	dueEvents  = "SELECT count(*) FROM ev e JOIN runs r ON r.id = e.run WHERE r.status = 'done' AND e.at < '2020-01-05 04:00+00'"
	keptEvents = "SELECT count(*) FROM ev e JOIN runs r ON r.id = e.run WHERE r.status <> 'done'"
)

// firstDue is the place of the first event that a batch picks.
const firstDue = "(SELECT e.ctid FROM ev e JOIN runs r ON r.id = e.run WHERE r.status = 'done' ORDER BY e.at, e.run LIMIT 1)"

// TestShortBatchIsNotDrained has a second deleter take rows out of a batch that waits for it.
func TestShortBatchIsNotDrained(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	r.Exec(t, events(400))
	due, kept := int(r.Int(t, dueEvents)), r.Int(t, keptEvents)
	s, other := r.sweeper(t, Options{}), r.Conn(t)
	mustExec(t, other, begin+"DELETE FROM ev WHERE seq <= 30")
	taken := due - int(r.numberIn(t, other, dueEvents))
	var batches []pruner.Result
	d := s.drain(t.Context(), drain.Bounds{Limit: 40, OnBatch: func(p drain.Progress) { batches = append(batches, p.Batch) }})
	r.untilWaiting(t, s.pid())
	mustExec(t, other, "COMMIT")
	rep := d.must(t)
	first := batches[0]
	if first.Removed+first.Moved+first.Held != first.Examined || first.Moved == 0 || first.End {
		t.Errorf("the first batch is no short one: %+v", first)
	}
	same(t, "removed", rep.Removed, due-taken)
	same(t, "stop", rep.Stop, drain.StopDrained)
	same(t, "left due", r.Int(t, dueEvents), int64(0))
	if left := r.Int(t, keptEvents); left >= kept || left == 0 {
		t.Errorf("%d events of live runs are left of %d, of which the other deleter took some", left, kept)
	}
}

// numberIn asks in a session's own transaction.
func (r *race) numberIn(t *testing.T, c *pgx.Conn, sql string) (n int64) {
	t.Helper()
	if err := c.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTwoSweepers lets two drains begin at the same rows and run to their ends.
func TestTwoSweepers(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		for _, counted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, counted by RETURNING %v", level, counted), func(t *testing.T) {
				t.Parallel()
				r := ownerRace(t)
				r.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", ident(r.Name), level))
				r.Exec(t, events(1600))
				due, kept := int(r.Int(t, dueEvents)), r.Int(t, keptEvents)
				one, two, holder := r.sweeper(t, Options{}), r.sweeper(t, Options{}), r.Conn(t)
				if counted {
					one, two = one.counted(), two.counted()
				}
				mustExec(t, holder, begin+"SELECT FROM ev WHERE ctid = "+firstDue+" FOR UPDATE")
				d1 := one.drain(t.Context(), drain.Bounds{Limit: 60})
				r.untilWaiting(t, one.pid())
				d2 := two.drain(t.Context(), drain.Bounds{Limit: 60})
				r.untilWaiting(t, two.pid())
				mustExec(t, holder, "COMMIT")
				r1, r2 := d1.must(t), d2.must(t)
				same(t, "removed by both", r1.Removed+r2.Removed, due)
				same(t, "left due", r.Int(t, dueEvents), int64(0))
				same(t, "kept", r.Int(t, keptEvents), kept)
				for _, rep := range []drain.Report{r1, r2} {
					if rep.Stop != drain.StopDrained && rep.Stop != drain.StopLocked || rep.Stuck+rep.UnknownCommits > 0 {
						t.Errorf("a drain ended so: %+v", rep)
					}
				}
			})
		}
	}
	t.Run("one sweeper", func(t *testing.T) {
		t.Parallel()
		r := ownerRace(t)
		r.Exec(t, events(400))
		due := int(r.Int(t, dueEvents))
		one, two, holder := r.sweeper(t, Options{OneSweeper: true}), r.sweeper(t, Options{OneSweeper: true}), r.Conn(t)
		mustExec(t, holder, begin+"SELECT FROM ev WHERE ctid = "+firstDue+" FOR UPDATE")
		d1 := one.drain(t.Context(), drain.Bounds{Limit: 60})
		r.untilWaiting(t, one.pid())
		same(t, "the second batch", two.prune(t.Context()).must(t), pruner.Result{Busy: true})
		r2 := two.drain(t.Context(), drain.Bounds{Limit: 60}).must(t)
		same(t, "the second drain", []any{r2.Stop, r2.Examined, r2.Removed}, []any{drain.StopBusy, 0, 0})
		mustExec(t, holder, "COMMIT")
		r1 := d1.must(t)
		same(t, "the first drain", []any{r1.Stop, r1.Removed}, []any{drain.StopDrained, due})
	})
}

// TestBehindTheCursor inserts a due row behind a drain: it is left, and the next drain finds it.
func TestBehindTheCursor(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	r.Exec(t, events(200))
	due := int(r.Int(t, dueEvents))
	s, other := r.sweeper(t, Options{}), r.Conn(t)
	n := 0
	rep := s.drain(t.Context(), drain.Bounds{Limit: 40, OnBatch: func(drain.Progress) {
		if n++; n == 2 {
			mustExec(t, other, "INSERT INTO ev VALUES ('r1', 9999, '2020-01-01 00:00+00')")
		}
	}}).must(t)
	same(t, "the drain", []any{rep.Stop, rep.Removed}, []any{drain.StopDrained, due})
	same(t, "left due", r.Int(t, dueEvents), int64(1))
	rep = s.drain(t.Context(), drain.Bounds{}).must(t)
	same(t, "the next drain", []any{rep.Stop, rep.Removed}, []any{drain.StopDrained, 1})
}

// TestLockedRows drains beside a session that holds one row and one owner and does not let go.
func TestLockedRows(t *testing.T) {
	t.Parallel()
	for _, canSkip := range []bool{true, false} {
		t.Run(fmt.Sprintf("with the right to skip %v", canSkip), func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			r.sweep.Timeouts.Lock = 30 * time.Millisecond
			s, holder := r.sweeper(t, Options{}), r.Conn(t)
			table := *s.table
			table.canUpdate = canSkip
			s.table = &table
			mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE; SELECT FROM runs WHERE id = 'b' FOR UPDATE")
			rep := s.drain(t.Context(), drain.Bounds{}).must(t)
			same(t, "the drain", []any{rep.Stop, rep.Err, rep.Removed, rep.Locked, rep.Moved, rep.Held, rep.Orphan}, []any{drain.StopLocked, error(nil), 4, 6, 0, 5, 7})
			same(t, "left", r.leftNow(t), "-2 a1 b5 c5 x5")
			if canSkip { // without a search for the row by halves
				same(t, "batches that removed something", rep.Batches, 1)
			}
			mustExec(t, holder, "COMMIT")
			rep = s.drain(t.Context(), drain.Bounds{}).must(t)
			same(t, "the next drain", []any{rep.Stop, rep.Removed, rep.Locked}, []any{drain.StopDrained, 6, 0})
		})
	}
}

// TestLockedTable drains beside a session that has locked a whole table: the drain stops at once and names it.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"ev", "runs"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			r.sweep.Timeouts.Lock = 30 * time.Millisecond
			s, holder := r.sweeper(t, Options{}), r.Conn(t)
			mustExec(t, holder, begin+"LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
			rep := s.drain(t.Context(), drain.Bounds{}).must(t)
			var lock *pruner.LockTimeoutError
			if rep.Stop != drain.StopLocked || !errors.As(rep.Err, &lock) || lock.Table != "public."+table || lock.LockAfter != 30*time.Millisecond {
				t.Errorf("%s, %v, %+v", rep.Stop, rep.Err, lock)
			}
			mustExec(t, holder, "COMMIT")
			same(t, "left", r.leftNow(t), "-2 a5 b5 c5 x5")
			rep = s.drain(t.Context(), drain.Bounds{}).must(t)
			same(t, "the next drain", []any{rep.Stop, rep.Removed}, []any{drain.StopDrained, 10})
		})
	}
}

// TestStuck drains a table of which one row cannot go: the others do, and the report names what keeps it.
func TestStuck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, constraint, table, again string }{
		{"a trigger's veto", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.run = ''a'' AND OLD.seq = 2 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON ev FOR EACH ROW EXECUTE FUNCTION keep()`, "veto", "public.ev", ownerRows},
		{"a foreign key", `CREATE TABLE pins (run text, seq int, CONSTRAINT pinned FOREIGN KEY (run, seq) REFERENCES ev (run, seq));
CREATE INDEX ON pins (run, seq); INSERT INTO pins VALUES ('a', 2)`, "pinned", "public.pins", ""},
		{"a deferred foreign key", `CREATE TABLE pins (run text, seq int, CONSTRAINT pinned FOREIGN KEY (run, seq) REFERENCES ev (run, seq) DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX ON pins (run, seq); INSERT INTO pins VALUES ('a', 2)`, "pinned", "public.pins", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			r.Exec(t, c.sql)
			s := r.sweeper(t, Options{OneSweeper: true})
			if _, err := s.prune(t.Context()).end(t); as[*commitError](err) || as[*pruner.RefusedError](err) != (c.constraint != "veto") {
				t.Errorf("the refusal does not come from the statement: %v", err)
			}
			r.Exec(t, c.again)
			for pass, removed := range []int{9, 0} {
				rep := s.drain(t.Context(), drain.Bounds{}).must(t)
				same(t, fmt.Sprintf("drain %d", pass+1), []any{rep.Stop, rep.Removed, rep.Stuck, rep.Moved, rep.Locked, rep.Held, rep.Orphan}, []any{drain.StopStuck, removed, 1, 0, 0, 5, 7})
				same(t, "what keeps it", rep.Blocked, []pruner.Block{{Constraint: c.constraint, Table: c.table, Rows: 1}})
				same(t, "left", r.leftNow(t), "-2 a1 c5 x5")
			}
		})
	}
}

// TestInTransaction asks for a batch on a connection with an open transaction, which is left as it was.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	s := r.sweeper(t, Options{})
	mustExec(t, s.conn, "BEGIN; INSERT INTO runs VALUES ('mine', 'live')")
	res, err := s.prune(t.Context()).end(t)
	if !errors.Is(err, ErrInTransaction) || !reflect.DeepEqual(res, pruner.Result{}) {
		t.Errorf("%+v, %v", res, err)
	}
	mustExec(t, s.conn, "COMMIT")
	same(t, "the caller's row", r.Int(t, "SELECT count(*) FROM runs WHERE id = 'mine'"), int64(1))
	same(t, "the batch", counts(s.prune(t.Context()).must(t)), undisturbed)

	mustExec(t, s.conn, "BEGIN")
	_, err = s.conn.Exec(t.Context(), "SELECT 1/0")
	if _, bad := s.prune(t.Context()).end(t); err == nil || !errors.Is(bad, ErrInTransaction) {
		t.Errorf("in a failed transaction: %v", bad)
	}
}

// TestNoSessionState compares all that a session can keep, before and after batches of every outcome.
func TestNoSessionState(t *testing.T) {
	t.Parallel()
	for _, m := range execModes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			r.sweep.Timeouts.Lock = 20 * time.Millisecond
			s, holder := r.sweeper(t, Options{OneSweeper: true}, mode(m)), r.Conn(t)
			state := func() string {
				var lines []string
				for _, sql := range []string{
					"SELECT name || '=' || setting || ' by ' || source FROM pg_settings ORDER BY 1",
					"SELECT 'prepared ' || name FROM pg_prepared_statements ORDER BY 1",
					"SELECT 'lock ' || locktype || ' ' || mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' ORDER BY 1",
					"SELECT 'cursor ' || name FROM pg_cursors WHERE name <> '' ORDER BY 1",
					"SELECT 'channel ' || pg_listening_channels()",
					"SELECT 'temporary ' || relname FROM pg_class WHERE relpersistence = 't' ORDER BY 1",
				} {
					rows, err := s.conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
					if err != nil {
						t.Fatal(err)
					}
					more, err := pgx.CollectRows(rows, pgx.RowTo[string])
					if err != nil {
						t.Fatal(err)
					}
					lines = append(lines, more...)
				}
				return strings.Join(lines, "\n")
			}
			before := state()
			if !strings.Contains(before, "enable_seqscan=on") || strings.Contains(before, "\nprepared ") {
				t.Fatal(before)
			}
			batch := func(what string, b pruner.Batch, check func(pruner.Result, error) bool) {
				t.Helper()
				res, err := s.Prune(t.Context(), b)
				if !check(res, err) {
					t.Errorf("%s: %+v, %v", what, res, err)
				}
				if after := state(); after != before {
					t.Fatalf("%s left something behind:\n%s", what, difference(before, after))
				}
			}
			whole := pruner.Batch{Cutoff: raceCutoff, Limit: 50}
			mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
			batch("a lock timeout", whole, func(_ pruner.Result, err error) bool { return as[*pruner.LockTimeoutError](err) })
			batch("skipping", pruner.Batch{Cutoff: raceCutoff, Limit: 50, Mode: pruner.SkipLocked}, func(res pruner.Result, err error) bool { return err == nil && res.Removed == 9 && res.Locked == 1 })
			mustExec(t, holder, fmt.Sprintf("COMMIT; BEGIN; SELECT pg_advisory_xact_lock(%d)", s.lockKey()))
			batch("busy", whole, func(res pruner.Result, err error) bool { return err == nil && res.Busy })
			mustExec(t, holder, "COMMIT; CREATE TABLE pins (run text, seq int, FOREIGN KEY (run, seq) REFERENCES ev (run, seq)); INSERT INTO pins VALUES ('a', 2)")
			batch("a foreign key", whole, func(_ pruner.Result, err error) bool { return as[*pruner.RefusedError](err) })
			mustExec(t, holder, "DROP TABLE pins")
			batch("a batch", whole, func(res pruner.Result, err error) bool { return err == nil && res.Removed == 1 && res.End })
			mustExec(t, holder, groupRows)
			var group pruner.Batch
			batch("up to the rows of one age", pruner.Batch{Cutoff: raceCutoff, Limit: 6}, func(res pruner.Result, err error) bool {
				group = pruner.Batch{Cutoff: raceCutoff, Limit: 6, After: res.Next}
				return err == nil && res.Examined == 0 && !res.End
			})
			batch("rows of one age", group, func(res pruner.Result, err error) bool { return err == nil && res.Examined == 6 && !res.End })
		})
	}
}

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// difference lists the lines that only one of two texts has.
func difference(a, b string) string {
	var out []string
	for _, side := range []struct{ sign, in, not string }{{"- ", a, b}, {"+ ", b, a}} {
		have := map[string]bool{}
		for l := range strings.SplitSeq(side.not, "\n") {
			have[l] = true
		}
		for l := range strings.SplitSeq(side.in, "\n") {
			if !have[l] {
				out = append(out, side.sign+l)
			}
		}
	}
	return strings.Join(out, "\n")
}
