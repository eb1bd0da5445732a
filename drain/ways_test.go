package drain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

var pins = pruner.Block{Constraint: "pins_job_id_fkey", Table: "public.pins"}

func TestStuckRowsAreIsolated(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  int
		stuck []int64
		limit int
		calls int // at most
	}{
		{"the oldest", 50, []int64{1}, 10, 20},
		{"in the middle", 5000, []int64{2600}, 5000, 40},
		{"the youngest", 5000, []int64{5000}, 5000, 40},
		{"alone", 1, []int64{1}, 10, 5},
		{"at a limit of one", 5, []int64{3}, 1, 6},
		{"neighbours", 3000, []int64{1001, 1002, 1003, 1004, 1005}, 1000, 70},
		{"many neighbours", 3000, []int64{1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1017, 1018, 1019, 1020}, 1000, 110},
		{"far apart", 3000, []int64{1, 700, 1400, 2100, 3000}, 1000, 140},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(sweep)
			fill(b.table, 1, c.rows, "done")
			for _, id := range c.stuck {
				b.table.Refuse(id, pins)
			}
			r, err := b.run(t, Bounds{Limit: c.limit})
			if err != nil || r.Stop != StopStuck || r.Drained() || !r.Failed() {
				t.Errorf("stop %q, error %v; want stuck", r.Stop, err)
			}
			if r.Removed != c.rows-len(c.stuck) || r.Stuck != len(c.stuck) || !slices.Equal(b.table.IDs(), c.stuck) {
				t.Errorf("removed %d, stuck %d, left %v", r.Removed, r.Stuck, b.table.IDs())
			}
			want := pins
			want.Rows = len(c.stuck)
			if !slices.Equal(r.Blocked, []pruner.Block{want}) {
				t.Errorf("blocked by %+v; want %+v", r.Blocked, want)
			}
			if r.Examined != c.rows || len(b.spy.calls) > c.calls {
				t.Errorf("%d looks in %d calls; want each row once in at most %d", r.Examined, len(b.spy.calls), c.calls)
			}
		})
	}
}

// After a search the limit is back after few batches.
func TestLimitGrowsBackAfterIsolation(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 8000, "done")
	b.table.Refuse(1500, pins)
	b.spy.cost = func(pr pruner.Batch, _ pruner.Result) time.Duration {
		return time.Duration(pr.Limit) * 100 * time.Microsecond
	} // 1000 in the target
	r, err := b.run(t, Bounds{})
	if err != nil || r.Removed != 7999 {
		t.Fatalf("removed %d, error %v", r.Removed, err)
	}
	ls := b.spy.limits()
	step := slices.IndexFunc(b.spy.calls, func(c call) bool { return c.Mode == pruner.StepStuck })
	if back := slices.Index(ls[step:], 1000); back < 0 || back > 11 {
		t.Errorf("the limit is back %d batches after the search: %v", back, ls[step:])
	}
}

func TestStuckRowsOfSeveralConstraints(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 30, "done")
	veto := pruner.Block{Constraint: "keep_odd", Table: "public.jobs"}
	other := pruner.Block{Constraint: "refs_fkey", Table: "public.refs"}
	b.table.Refuse(3, pins)
	b.table.Refuse(14, other)
	b.table.Refuse(25, pins)
	b.table.Veto(7, veto) // a trigger: no error, so nothing to isolate
	b.table.Veto(8, veto)
	r, err := b.run(t, Bounds{Limit: 10})
	if err != nil || r.Stop != StopStuck || r.Stuck != 5 || r.Removed != 25 {
		t.Errorf("stuck %d, removed %d, stop %q, error %v", r.Stuck, r.Removed, r.Stop, err)
	}
	got := map[string]int{}
	for _, bl := range r.Blocked {
		got[bl.Constraint+" "+bl.Table] += bl.Rows
	}
	if len(r.Blocked) != 3 || got["pins_job_id_fkey public.pins"] != 2 || got["keep_odd public.jobs"] != 2 || got["refs_fkey public.refs"] != 1 {
		t.Errorf("blocked by %+v", r.Blocked)
	}
}

func TestAtMostHundredRowsAreIsolated(t *testing.T) {
	for _, n := range []int{100, 101} {
		b := newBench(sweep)
		fill(b.table, 1, 500, "done")
		for id := range n {
			b.table.Refuse(int64(4*id+1), pins)
		}
		r, err := b.run(t, Bounds{Limit: 50})
		if n == 100 {
			if err != nil || r.Stop != StopStuck || r.Stuck != 100 || r.Removed != 400 {
				t.Errorf("with %d: stop %q, stuck %d, removed %d, error %v", n, r.Stop, r.Stuck, r.Removed, err)
			}
			continue
		}
		var refused *pruner.RefusedError
		if !errors.As(err, &refused) || refused.Block.Constraint != pins.Constraint || r.Stop != StopFailed || r.Stuck != 100 || r.Removed != 300 {
			t.Errorf("with %d: stop %q, stuck %d, removed %d, error %v; want failed with the constraint", n, r.Stop, r.Stuck, r.Removed, err)
		}
	}
}

// A second pass meets the stuck rows of the first again: they are counted once, and bounded for each pass.
func TestStuckRowsInTheSecondPass(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 300, "done")
	for id := range int64(60) {
		b.table.Refuse(3*id+1, pins)
	}
	moved := false
	b.table.OnExamined = func(ids []int64) {
		if !moved && slices.Contains(ids, 290) {
			moved = true
			b.table.Update(290, func(*memory.Row) {})
		}
	}
	r, err := b.run(t, Bounds{Limit: 50})
	if err != nil || r.Stop != StopStuck || r.Stuck != 60 || r.Moved != 0 || r.Removed != 240 || len(r.Blocked) != 1 || r.Blocked[0].Rows != 60 {
		t.Errorf("report %+v, error %v; want 60 stuck, 240 removed", r, err)
	}
}

// A row that is gone, or may go, by the time it stands alone is no stuck row.
func TestSearchForARowThatIsFreed(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 100, "done")
	b.table.Refuse(40, pins)
	b.spy.after = func(n int) {
		if n == 3 {
			b.table.Refuse(40, pruner.Block{})
		}
	}
	r, err := b.run(t, Bounds{Limit: 100})
	if err != nil || !r.Drained() || r.Removed != 100 || r.Blocked != nil {
		t.Errorf("removed %d, stop %q, error %v; want 100, drained", r.Removed, r.Stop, err)
	}
}

func TestLockedRowsAreSkipped(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 40, "done")
	b.table.Lock(5)
	r, err := b.run(t, Bounds{Limit: 10})
	if err != nil || r.Stop != StopLocked || r.Locked != 1 || r.Removed != 39 || r.Failed() || !slices.Equal(b.table.IDs(), []int64{5}) {
		t.Errorf("report %+v, error %v; want 39 removed and 1 locked", r, err)
	}
	// In each pass the batch is repeated once, skipping, and batches wait again as soon as one met no locked row.
	var modes []string
	for _, c := range b.spy.calls {
		modes = append(modes, fmt.Sprint(c.Mode))
	}
	want := []string{"remove", "skip locked", "skip locked", "remove", "remove", "remove", "skip locked"}
	if !slices.Equal(modes, want) {
		t.Errorf("modes %q; want %q", modes, want)
	}

	b = newBench(sweep)
	fill(b.table, 1, 40, "done")
	b.table.Lock(5)
	b.spy.after = func(n int) {
		if n == 4 {
			b.table.Unlock()
		}
	}
	if r, err := b.run(t, Bounds{Limit: 10}); err != nil || !r.Drained() || r.Removed != 40 || r.Locked != 0 {
		t.Errorf("freed: removed %d, locked %d, stop %q, error %v; want 40, 0, drained", r.Removed, r.Locked, r.Stop, err)
	}
}

func TestLockedRowsThatCannotBeSkipped(t *testing.T) {
	for name, lock := range map[string]func(t *memory.Table, id int64){
		"no right to lock": func(t *memory.Table, id int64) { t.NoSkip = true; t.Lock(id) },
		"a deep lock":      func(t *memory.Table, id int64) { t.LockDeep(id) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(sweep)
			fill(b.table, 1, 1000, "done")
			lock(b.table, 1)
			lock(b.table, 333)
			lock(b.table, 1000)
			r, err := b.run(t, Bounds{Limit: 500})
			if err != nil || r.Stop != StopLocked || r.Locked != 3 || r.Removed != 997 || r.Stuck != 0 || !slices.Equal(b.table.IDs(), []int64{1, 333, 1000}) {
				t.Errorf("report %+v, error %v; want 997 removed and 3 locked", r, err)
			}
			if skips := slices.ContainsFunc(b.spy.calls, func(c call) bool { return c.Mode == pruner.SkipLocked }); skips == b.table.NoSkip {
				t.Errorf("without the right to lock: %t, and locked rows were skipped: %t", b.table.NoSkip, skips)
			}
			if len(b.spy.calls) > 130 {
				t.Errorf("%d calls", len(b.spy.calls))
			}
		})
	}
}

func TestTooManyLocks(t *testing.T) {
	for _, n := range []int{100, 101} {
		b := newBench(sweep)
		fill(b.table, 1, 500, "done")
		for id := range n {
			b.table.LockDeep(int64(4*id + 1))
		}
		r, err := b.run(t, Bounds{Limit: 50})
		var lock *pruner.LockTimeoutError
		switch ended := errors.As(r.Err, &lock); {
		case err != nil || r.Stop != StopLocked || r.Locked != 100 || r.Failed():
			t.Errorf("with %d: stop %q, locked %d, error %v", n, r.Stop, r.Locked, err)
		case ended != (n > 100):
			t.Errorf("with %d: the reason is %v", n, r.Err)
		case n > 100 && r.Removed != 300, n == 100 && r.Removed != 400:
			t.Errorf("with %d: removed %d", n, r.Removed)
		}
	}
}

func TestLockedTableEndsTheSweep(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 50, "done")
	b.spy.after = func(n int) {
		if n == 2 {
			b.table.LockTable("public.jobs")
		}
	}
	r, err := b.run(t, Bounds{Limit: 10})
	if err != nil || r.Stop != StopLocked || r.Removed != 20 || len(b.spy.calls) != 3 || r.Err == nil || !strings.Contains(r.Err.Error(), "public.jobs") {
		t.Errorf("report %+v, error %v, %d calls; want locked by the table's name at once", r, err, len(b.spy.calls))
	}
}

// tooSlow times out batches over this limit.
func tooSlow(limit int, after time.Duration) func(int, pruner.Batch) (pruner.Result, error, bool) {
	return func(_ int, b pruner.Batch) (pruner.Result, error, bool) {
		return pruner.Result{}, &pruner.TimeoutError{After: after, Err: errors.New("canceling statement due to statement timeout")}, b.Limit > limit
	}
}

func TestTimeoutsHalveTheBatch(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 3000, "done")
	b.spy.answer = tooSlow(300, 400*time.Millisecond)
	b.spy.cost = func(pr pruner.Batch, res pruner.Result) time.Duration {
		return time.Duration(pr.Limit) * time.Millisecond
	}
	r, err := b.run(t, Bounds{BatchTarget: time.Hour})
	if err != nil || !r.Drained() || r.Removed != 3000 {
		t.Errorf("removed %d, stop %q, error %v; want 3000, drained", r.Removed, r.Stop, err)
	}
	if ls := b.spy.limits(); !slices.Equal(ls[:3], []int{1000, 500, 250}) {
		t.Errorf("limits %v; want them halved until they fit", ls)
	}
	// It aims below the timeout from then on, and does not run into it again and again.
	failed := 0
	for _, c := range b.spy.calls {
		if c.err != nil {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d batches timed out: %v; want 2", failed, b.spy.limits())
	}
}

func TestTimeoutOfOneRowFails(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 50, "done")
	b.spy.answer = tooSlow(0, time.Second)
	r, err := b.run(t, Bounds{Limit: 8})
	var timeout *pruner.TimeoutError
	if !errors.As(err, &timeout) || r.Stop != StopFailed || !slices.Equal(b.spy.limits(), []int{8, 4, 2, 1}) {
		t.Errorf("stop %q, error %v, limits %v; want failed after 8, 4, 2, 1", r.Stop, err, b.spy.limits())
	}
}

// A night in which nothing fits into the statement timeout is a failure and no ceiling.
func TestTimeoutsUntilTheTimeIsOver(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 5000, "done")
	b.spy.answer = tooSlow(0, 30*time.Second)
	b.spy.cost = func(pruner.Batch, pruner.Result) time.Duration { return 30 * time.Second }
	r, err := b.run(t, Bounds{Duration: time.Minute})
	var timeout *pruner.TimeoutError
	if !errors.As(err, &timeout) || r.Stop != StopFailed || r.StopBy != ByTime || r.SlowestBatch != 30*time.Second {
		t.Errorf("stop %q by %q, error %v, slowest %s; want failed by time", r.Stop, r.StopBy, err, r.SlowestBatch)
	}
}

func TestTimeCeiling(t *testing.T) {
	// Each batch takes two seconds.
	slow := func(rows int) *bench {
		b := newBench(sweep)
		fill(b.table, 1, rows, "done")
		b.spy.cost = func(pruner.Batch, pruner.Result) time.Duration { return 2 * time.Second }
		return b
	}
	for _, c := range []struct {
		name     string
		duration time.Duration
		removed  int
		stop     Stop
	}{
		{"shorter than a batch: the batch in hand ends", time.Second, 100, StopCeiling},
		{"room for two, not for three", 5900 * time.Millisecond, 200, StopCeiling},
		{"room for three", 6 * time.Second, 300, StopCeiling},
		{"room for all", 10 * time.Second, 500, StopDrained},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := slow(500)
			r, err := b.run(t, Bounds{Limit: 100, Duration: c.duration, BatchTarget: NoCeiling})
			if err != nil || r.Stop != c.stop || r.Removed != c.removed || r.SlowestBatch != 2*time.Second {
				t.Errorf("removed %d, stop %q by %q, slowest %s, error %v; want %d, %q", r.Removed, r.Stop, r.StopBy, r.SlowestBatch, err, c.removed, c.stop)
			}
			if r.Stop == StopCeiling && r.StopBy != ByTime {
				t.Errorf("by %q; want time", r.StopBy)
			}
		})
	}
	t.Run("a batch gets the time left, the first its own", func(t *testing.T) {
		b := slow(300)
		if _, err := b.run(t, Bounds{Limit: 100, Duration: 6500 * time.Millisecond, BatchTarget: NoCeiling - 1}); err != nil {
			t.Fatal(err)
		}
		if got := b.spy.calls[0].Timeout; got != 0 {
			t.Errorf("the first batch has %s; want the pruner's own", got)
		}
		b = slow(300)
		b.spy.cost = func(pruner.Batch, pruner.Result) time.Duration { return time.Second }
		if _, err := b.run(t, Bounds{Limit: 100, Duration: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if got := b.spy.calls[1].Timeout; got != 9*time.Second {
			t.Errorf("the second batch has %s; want the 9s left", got)
		}
	})
	t.Run("the last batch is not cut short", func(t *testing.T) {
		b := slow(300)
		if _, err := b.run(t, Bounds{Limit: 100, Duration: 6 * time.Second, BatchTarget: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if n := len(b.spy.calls); n != 3 || b.spy.calls[2].Timeout < 4*time.Second {
			t.Errorf("batch %d has %s; want twice what it is foretold", n, b.spy.calls[n-1].Timeout)
		}
	})
	t.Run("no ceiling", func(t *testing.T) {
		b := slow(300)
		b.spy.cost = func(pruner.Batch, pruner.Result) time.Duration { return 24 * time.Hour }
		if r, err := b.run(t, Bounds{Limit: 100, Duration: NoCeiling}); err != nil || !r.Drained() {
			t.Errorf("stop %q, error %v; want drained", r.Stop, err)
		}
	})
}

func TestIdle(t *testing.T) {
	b := newBench(sweep)
	r, err := b.run(t, Bounds{})
	if err != nil || !r.Drained() || r.Examined != 0 || r.Batches != 0 || len(b.spy.calls) != 1 {
		t.Errorf("report %+v, %d calls, error %v", r, len(b.spy.calls), err)
	}
}
