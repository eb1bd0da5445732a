package drain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

func TestDrains(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 40, "running") // the oldest are held: the first batch removes nothing
	fill(b.table, 41, 2500, "done")
	r, err := b.run(t, Bounds{Limit: 40})
	if err != nil || !r.Drained() || r.Stop != StopDrained {
		t.Fatalf("stop %q, error %v; want drained", r.Stop, err)
	}
	if r.Removed != 2500 || r.Held != 40 || r.Examined != 2540 || r.Vain != 40 || r.Batches != 63 || b.left() != 40 {
		t.Errorf("report %+v with %d rows left", r, b.left())
	}
	if len(b.spy.calls) != 64 {
		t.Errorf("%d batches in all; want one pass of 64", len(b.spy.calls))
	}
	if r.Cutoff != cutoff || !r.CountsHeld || r.Elapsed != 64*time.Millisecond || r.SlowestBatch != time.Millisecond {
		t.Errorf("cutoff %s, counts held %t, elapsed %s, slowest %s", r.Cutoff, r.CountsHeld, r.Elapsed, r.SlowestBatch)
	}
	if r.Failed() || r.Err != nil || r.StopBy != "" {
		t.Errorf("failed %t, error %v, by %q", r.Failed(), r.Err, r.StopBy)
	}
}

// Only End ends a pass: batches that were emptied by another sweeper do not.
func TestShortBatchesAreNotTheEnd(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 60, "done")
	b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
		if n > 3 {
			return pruner.Result{}, nil, false
		}
		return pruner.Result{Next: pruner.NewCursor("0 0 " + strings.Repeat("1", n))}, nil, true
	}
	r, err := b.run(t, Bounds{Limit: 10})
	if err != nil || r.Removed != 60 || !r.Drained() {
		t.Errorf("removed %d, stop %q, error %v; want all 60, drained", r.Removed, r.Stop, err)
	}
}

func TestWrongBounds(t *testing.T) {
	for name, bounds := range map[string]Bounds{
		"Limit": {Limit: -1}, "Limit ": {Limit: pruner.MaxLimit + 1}, "Batches": {Batches: -1}, "Rows": {Rows: -5}, "Duration": {Duration: -1}, "Pause": {Pause: -1},
		"BatchTarget": {BatchTarget: -1}, "LockTimeout": {LockTimeout: -1},
	} {
		b := newBench(sweep)
		fill(b.table, 1, 3, "done")
		r, err := b.run(t, bounds)
		if !errors.Is(err, ErrBounds) || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%s: error %v", name, err)
		}
		if r.Stop != StopRefused || !errors.Is(r.Err, ErrBounds) || len(b.spy.calls) != 0 || !r.Failed() || r.Drained() {
			t.Errorf("%s: stop %q, error %v, %d batches", name, r.Stop, r.Err, len(b.spy.calls))
		}
	}
	if r, err := RunSweep(t.Context(), Sweep{}); !errors.Is(err, ErrBounds) || r.Stop != StopRefused {
		t.Errorf("without an arm: stop %q, error %v", r.Stop, err)
	}
	if r, err := Run(t.Context(), nil, cutoff, Bounds{}); !errors.Is(err, ErrBounds) || r.Stop != StopRefused {
		t.Errorf("without a pruner: stop %q, error %v", r.Stop, err)
	}
}

func TestZeroBoundsAreTheDefaults(t *testing.T) {
	got, err := Bounds{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if got.Limit != policy.DefaultLimit || got.Batches != NoCeiling || got.Rows != policy.DefaultRows || got.Duration != policy.DefaultTime || got.Pause != 0 ||
		got.BatchTarget != policy.DefaultTarget || got.LockTimeout != policy.DefaultLockTimeout || got.clock != realClock {
		t.Errorf("got %+v", got)
	}
}

func TestCeilings(t *testing.T) {
	for _, c := range []struct {
		name          string
		rows          int // due
		bounds        Bounds
		removed       int
		batches       int
		stop          Stop
		by            string
		callsWithLast int // calls of the Pruner
	}{
		{"rows cut the last batch", 1000, Bounds{Limit: 50, Rows: 120}, 120, 3, StopCeiling, ByRows, 3},
		{"rows below the limit", 1000, Bounds{Limit: 50, Rows: 7}, 7, 1, StopCeiling, ByRows, 1},
		{"rows at the very end", 120, Bounds{Limit: 50, Rows: 120}, 120, 3, StopDrained, "", 3},
		{"rows one short of the end", 121, Bounds{Limit: 50, Rows: 120}, 120, 3, StopCeiling, ByRows, 3},
		{"batches", 1000, Bounds{Limit: 50, Batches: 4}, 200, 4, StopCeiling, ByBatches, 4},
		{"batches at the very end", 800, Bounds{Limit: 50, Batches: 16}, 800, 16, StopDrained, "", 16},
		{"batches one row short of the end", 801, Bounds{Limit: 50, Batches: 16}, 800, 16, StopCeiling, ByBatches, 16},
		{"nothing due", 0, Bounds{Limit: 50, Batches: 1}, 0, 0, StopDrained, "", 1},
		{"lifted", 300, Bounds{Limit: 50, Rows: NoCeiling, Batches: NoCeiling, Duration: NoCeiling}, 300, 6, StopDrained, "", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(sweep)
			fill(b.table, 1, c.rows, "done")
			r, err := b.run(t, c.bounds)
			if err != nil || r.Stop != c.stop || r.StopBy != c.by || r.Err != nil {
				t.Errorf("stop %q by %q, error %v; want %q by %q", r.Stop, r.StopBy, err, c.stop, c.by)
			}
			if r.Removed != c.removed || r.Batches != c.batches || len(b.spy.calls) != c.callsWithLast || b.left() != c.rows-c.removed {
				t.Errorf("removed %d in %d batches and %d calls, %d left; want %d in %d and %d", r.Removed, r.Batches, len(b.spy.calls), b.left(), c.removed, c.batches, c.callsWithLast)
			}
			// The rows removed are the oldest.
			if ids := b.table.IDs(); len(ids) > 0 && ids[0] != int64(c.removed+1) {
				t.Errorf("the oldest row left is %d; want %d", ids[0], c.removed+1)
			}
		})
	}
}

// Children count against the ceiling of rows.
func TestChildrenCount(t *testing.T) {
	b := newBench(sweep)
	b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
		return pruner.Result{Examined: 2, Removed: 2, Children: 3, Next: pruner.NewCursor(strings.Repeat("x", n))}, nil, true
	}
	r, err := b.run(t, Bounds{Limit: 10, Rows: 20})
	if err != nil || r.Removed != 8 || r.Children != 12 || r.Stop != StopCeiling {
		t.Errorf("removed %d and %d children, stop %q, error %v; want 8, 12, ceiling", r.Removed, r.Children, r.Stop, err)
	}
}

// A head of held rows does not eat a ceiling of batches.
func TestHeldHeadSparesTheCeiling(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 500, "running")
	fill(b.table, 501, 30, "done")
	r, err := b.run(t, Bounds{Limit: 10, Batches: 3})
	if err != nil || r.Removed != 30 || r.Batches != 3 || r.Vain != 500 || !r.Drained() {
		t.Errorf("removed %d in %d batches, %d in vain, stop %q, error %v; want 30 in 3, 500, drained", r.Removed, r.Batches, r.Vain, r.Stop, err)
	}
}

// A pass that meets locked or moved rows is followed by one more, and never by a third.
func TestSecondPass(t *testing.T) {
	key := memory.KeyOf(policy.Text("a"))
	owned := sweep
	owned.Guard = policy.Guard{Owner: &policy.OwnerGuard{Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "run", Owner: "id"}}, Column: "state",
		Terminal: policy.Texts("done")}}
	setup := func() *bench {
		b := newBench(owned)
		fill(b.table, 1, 25, "done")
		for id := range int64(25) {
			b.table.Update(id+1, func(r *memory.Row) { r.Columns["run"] = policy.Text("b") })
		}
		for _, id := range []int64{3, 4, 21} {
			b.table.Update(id, func(r *memory.Row) { r.Columns["run"] = policy.Text("a") })
		}
		b.table.SetOwner(memory.KeyOf(policy.Text("b")), policy.Text("done"))
		b.table.SetOwner(key, policy.Text("done"))
		return b
	}

	t.Run("locked throughout", func(t *testing.T) {
		b := setup()
		b.table.LockOwner(key)
		r, err := b.run(t, Bounds{Limit: 10})
		if err != nil || r.Stop != StopLocked || r.Drained() || r.Failed() {
			t.Errorf("stop %q, error %v; want locked", r.Stop, err)
		}
		if r.Removed != 22 || r.Locked != 3 || r.Examined != 28 || r.Vain != 6 || len(b.spy.calls) != 4 {
			t.Errorf("report %+v in %d calls; want 22 removed, 3 locked, 28 looks, 4 calls", r, len(b.spy.calls))
		}
	})
	t.Run("freed between the passes", func(t *testing.T) {
		b := setup()
		b.table.LockOwner(key)
		b.spy.after = func(n int) {
			if n == 3 {
				b.table.Unlock()
			}
		}
		r, err := b.run(t, Bounds{Limit: 10})
		if err != nil || !r.Drained() || r.Removed != 25 || r.Locked != 0 {
			t.Errorf("removed %d, locked %d, stop %q, error %v; want 25, 0, drained", r.Removed, r.Locked, r.Stop, err)
		}
	})
	t.Run("a second pass cut short leaves the tallies of the first", func(t *testing.T) {
		b := setup()
		fill(b.table, 26, 20, "done") // orphans: they have no run
		b.table.LockOwner(key)
		r, err := b.run(t, Bounds{Limit: 10, Duration: 5500 * time.Microsecond}) // five batches of a pass, and one more fits not
		if err != nil || r.Stop != StopCeiling || r.StopBy != ByTime {
			t.Fatalf("stop %q by %q, error %v; want ceiling by time", r.Stop, r.StopBy, err)
		}
		if len(b.spy.calls) != 5 || r.Orphan != 20 || r.Locked != 3 {
			t.Errorf("%d calls, %d orphans, %d locked; want 5, 20, 3", len(b.spy.calls), r.Orphan, r.Locked)
		}
		b = setup()
		fill(b.table, 26, 20, "done")
		b.table.LockOwner(key)
		r, err = b.run(t, Bounds{Limit: 10, Duration: 6500 * time.Microsecond}) // a batch of the second pass as well
		if err != nil || len(b.spy.calls) != 6 || r.Orphan != 20 || r.Locked != 3 || r.Examined != 55 {
			t.Errorf("%d calls, %d orphans, %d locked, %d looks, error %v; want 6, 20, 3, 55", len(b.spy.calls), r.Orphan, r.Locked, r.Examined, err)
		}
	})
	t.Run("a first pass cut short says what it met", func(t *testing.T) {
		b := setup()
		b.table.LockOwner(key)
		r, err := b.run(t, Bounds{Limit: 10, Batches: 1})
		if err != nil || r.Stop != StopCeiling || r.Locked != 2 {
			t.Errorf("stop %q, locked %d, error %v; want ceiling, 2", r.Stop, r.Locked, err)
		}
	})

	// A row that somebody updates while the batch is on its way is left, and found in the second pass.
	t.Run("moved once", func(t *testing.T) {
		b := newBench(sweep)
		fill(b.table, 1, 25, "done")
		once := true
		b.table.OnExamined = func([]int64) {
			if once {
				once = false
				for id := range int64(5) {
					b.table.Update(id+1, func(*memory.Row) {})
				}
			}
		}
		r, err := b.run(t, Bounds{Limit: 10})
		if err != nil || !r.Drained() || r.Removed != 25 || r.Moved != 0 || r.Examined != 30 {
			t.Errorf("removed %d, moved %d, %d looks, stop %q, error %v; want 25, 0, 30, drained", r.Removed, r.Moved, r.Examined, r.Stop, err)
		}
	})
	t.Run("moved for ever", func(t *testing.T) {
		b := newBench(sweep)
		fill(b.table, 1, 25, "done")
		b.table.OnExamined = func([]int64) { b.table.Update(7, func(*memory.Row) {}) }
		r, err := b.run(t, Bounds{Limit: 10})
		if err != nil || r.Stop != StopLocked || r.Removed != 24 || r.Moved != 1 || r.Examined != 26 {
			t.Errorf("removed %d, moved %d, %d looks, stop %q, error %v; want 24, 1, 26, locked", r.Removed, r.Moved, r.Examined, r.Stop, err)
		}
	})
	t.Run("reopened on the way", func(t *testing.T) {
		b := newBench(sweep)
		fill(b.table, 1, 25, "done")
		b.table.OnExamined = func([]int64) {
			b.table.Update(7, func(r *memory.Row) { r.Columns["state"] = policy.Text("running") })
		}
		r, err := b.run(t, Bounds{Limit: 10})
		if err != nil || !r.Drained() || r.Removed != 24 || r.Held != 1 || b.left() != 1 {
			t.Errorf("removed %d, held %d, stop %q, error %v; want 24, 1, drained", r.Removed, r.Held, r.Stop, err)
		}
	})
}

func TestAnyOtherErrorFailsAtOnce(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 50, "done")
	boom := errors.New("relation does not exist")
	b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{}, boom, n == 3 }
	r, err := b.run(t, Bounds{Limit: 10})
	if !errors.Is(err, boom) || !errors.Is(r.Err, boom) || r.Stop != StopFailed || !r.Failed() {
		t.Errorf("stop %q, error %v; want failed with the pruner's error", r.Stop, err)
	}
	if r.Removed != 20 || r.Batches != 2 || len(b.spy.calls) != 3 || r.Undated != nil {
		t.Errorf("removed %d in %d batches and %d calls, undated %v; want 20 in 2 and 3, unknown", r.Removed, r.Batches, len(b.spy.calls), r.Undated)
	}
}

func TestUnknownCommit(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 50, "done")
	unknown := &pruner.UnknownCommitError{XID: "7", Pending: pruner.Result{Examined: 10, Removed: 10}, Err: errors.New("connection reset")}
	b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{}, unknown, n == 3 }
	r, err := b.run(t, Bounds{Limit: 10})
	if !errors.As(err, &unknown) || r.Stop != StopFailed || r.UnknownCommits != 1 || r.Removed != 20 || len(b.spy.calls) != 3 || !r.Failed() {
		t.Errorf("report %+v, error %v; want failed with 20 removed and one unknown commit", r, err)
	}

	// Also where the context ended in the meantime: nobody else counts it.
	b = newBench(sweep)
	fill(b.table, 1, 50, "done")
	ctx, cancel := context.WithCancel(t.Context())
	b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
		if n == 3 {
			cancel()
		}
		return pruner.Result{}, unknown, n == 3
	}
	r, err = b.runContext(ctx, Bounds{Limit: 10})
	if !errors.As(err, &unknown) || r.Stop != StopFailed || r.UnknownCommits != 1 {
		t.Errorf("stop %q, %d unknown commits, error %v; want failed and 1", r.Stop, r.UnknownCommits, err)
	}
}

// What an error says was committed counts.
func TestCountsBesideAnError(t *testing.T) {
	b := newBench(sweep)
	boom := errors.New("lost the connection after the commit")
	b.spy.answer = func(int, pruner.Batch) (pruner.Result, error, bool) {
		return pruner.Result{Examined: 6, Removed: 4}, boom, true
	}
	r, err := b.run(t, Bounds{})
	if !errors.Is(err, boom) || r.Removed != 4 || r.Examined != 6 || r.Batches != 1 {
		t.Errorf("report %+v, error %v; want 4 removed of 6", r, err)
	}
}

func TestBrokenPruners(t *testing.T) {
	at := func(s string) pruner.Cursor { return pruner.NewCursor(s) }
	circle := []string{"a", "b", "c", "d", "e", "f", "g"}
	for name, c := range map[string]struct {
		answer func(n int) pruner.Result
		calls  int // at most
	}{
		"neither an end nor a cursor": {func(int) pruner.Result { return pruner.Result{} }, 1},
		"the same cursor for ever":    {func(int) pruner.Result { return pruner.Result{Examined: 5, Held: 5, Next: at("here")} }, 3},
		"in a circle":                 {func(n int) pruner.Result { return pruner.Result{Examined: 5, Held: 5, Next: at(circle[n%len(circle)])} }, 30},
		"in a circle after some progress": {func(n int) pruner.Result {
			return pruner.Result{Examined: 5, Removed: max(0, 5-n), Next: at(circle[n%3])}
		}, 30},
		"moved rows at one place":         {func(int) pruner.Result { return pruner.Result{Examined: 5, Moved: 5, Next: at("here")} }, 110},
		"examines more than its limit":    {func(int) pruner.Result { return pruner.Result{Examined: 11, Next: at("here")} }, 1},
		"removes what it did not examine": {func(int) pruner.Result { return pruner.Result{Examined: 4, Removed: 5, End: true} }, 1},
		"removes less than nothing":       {func(int) pruner.Result { return pruner.Result{Examined: 4, Removed: -1, End: true} }, 1},
		"examines less than nothing":      {func(int) pruner.Result { return pruner.Result{Examined: -1, End: true} }, 1},
		"more children in a chunk":        {func(int) pruner.Result { return pruner.Result{Children: 11, Next: at("here")} }, 1},
		"less children than none":         {func(int) pruner.Result { return pruner.Result{Examined: 5, Children: -1, End: true} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(sweep)
			b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
				if n > 200 {
					t.Fatal("it spins")
				}
				return c.answer(n), nil, true
			}
			r, err := b.run(t, Bounds{Limit: 10})
			if !errors.Is(err, ErrContract) || r.Stop != StopFailed || len(b.spy.calls) > c.calls {
				t.Errorf("stop %q after %d calls, error %v; want failed after at most %d", r.Stop, len(b.spy.calls), err, c.calls)
			}
		})
	}
	t.Run("a place that others change is none", func(t *testing.T) {
		b := newBench(sweep)
		b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			return pruner.Result{Examined: 5, Moved: 5, Next: at("here"), End: n%20 == 0}, nil, true
		}
		if r, err := b.run(t, Bounds{Limit: 10}); err != nil || r.Stop != StopLocked {
			t.Errorf("stop %q, error %v; want locked", r.Stop, err)
		}
	})
	t.Run("the same cursor while rows go is none", func(t *testing.T) {
		b := newBench(sweep)
		b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			return pruner.Result{Examined: 5, Removed: 5, Next: at("an age of many rows"), End: n == 20}, nil, true
		}
		if r, err := b.run(t, Bounds{Limit: 10}); err != nil || !r.Drained() || r.Removed != 100 {
			t.Errorf("removed %d, stop %q, error %v; want 100, drained", r.Removed, r.Stop, err)
		}
	})
}

func TestSignals(t *testing.T) {
	setup := func() *bench {
		b := newBench(sweep)
		fill(b.table, 1, 50, "done")
		return b
	}
	t.Run("stop ends after the batch in hand", func(t *testing.T) {
		b, stop := setup(), make(chan struct{})
		b.table.OnExamined = func([]int64) {
			if len(b.spy.calls) == 2 {
				close(stop)
			}
		}
		r, err := b.run(t, Bounds{Limit: 10, Stop: stop})
		if err != nil || r.Stop != StopSignal || r.Removed != 30 || b.left() != 20 || r.Drained() || r.Err != nil || r.Undated != nil {
			t.Errorf("report %+v, error %v, %d left; want signal with 30 removed", r, err, b.left())
		}
	})
	t.Run("a context that ends between batches", func(t *testing.T) {
		b := setup()
		ctx, cancel := context.WithCancel(t.Context())
		b.spy.after = func(n int) {
			if n == 3 {
				cancel()
			}
		}
		r, err := b.runContext(ctx, Bounds{Limit: 10})
		if !errors.Is(err, context.Canceled) || r.Stop != StopSignal || r.Removed != 30 || len(b.spy.calls) != 3 || r.Failed() || r.Undated != nil {
			t.Errorf("report %+v, error %v; want signal with 30 removed", r, err)
		}
	})
	t.Run("a context that ends within a batch", func(t *testing.T) {
		b := setup()
		cause := errors.New("terminated")
		ctx, cancel := context.WithCancelCause(t.Context())
		b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			if n == 4 {
				cancel(cause)
				return pruner.Result{}, errors.New("conn closed"), true
			}
			return pruner.Result{}, nil, false
		}
		r, err := b.runContext(ctx, Bounds{Limit: 10})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || r.Stop != StopSignal || r.Removed != 30 || b.left() != 20 {
			t.Errorf("report %+v, error %v; want signal with 30 removed", r, err)
		}
	})
	t.Run("before the first batch", func(t *testing.T) {
		b, stop := setup(), make(chan struct{})
		close(stop)
		if r, err := b.run(t, Bounds{Stop: stop}); err != nil || r.Stop != StopSignal || len(b.spy.calls) != 0 {
			t.Errorf("stop %q, error %v, %d calls; want signal and no batch", r.Stop, err, len(b.spy.calls))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := b.runContext(ctx, Bounds{}); !errors.Is(err, context.Canceled) || r.Stop != StopSignal || len(b.spy.calls) != 0 {
			t.Errorf("stop %q, error %v, %d calls; want signal and no batch", r.Stop, err, len(b.spy.calls))
		}
	})
	t.Run("in a pause", func(t *testing.T) {
		b, stop := setup(), make(chan struct{})
		b.clock.onWait = func() {
			if len(b.clock.waits) == 2 {
				close(stop)
			}
		}
		r, err := b.run(t, Bounds{Limit: 10, Pause: time.Second, Stop: stop})
		if err != nil || r.Stop != StopSignal || r.Removed != 20 {
			t.Errorf("stop %q, removed %d, error %v; want signal, 20", r.Stop, r.Removed, err)
		}
	})
	t.Run("the real wait ends with a stop", func(t *testing.T) {
		stop := make(chan struct{})
		close(stop)
		realClock.wait(t.Context(), time.Hour, nil, stop)
		realClock.wait(t.Context(), time.Hour, stop, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		realClock.wait(ctx, time.Hour)
		realClock.wait(t.Context(), time.Nanosecond)
	})
}

func TestPause(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 40, "done")
	r, err := b.run(t, Bounds{Limit: 10, Pause: 3 * time.Second})
	if err != nil || !r.Drained() || !slices.Equal(b.clock.waits, []time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}) {
		t.Errorf("waits %v, stop %q, error %v; want three of 3s", b.clock.waits, r.Stop, err)
	}
	if r.Elapsed != 9*time.Second+4*time.Millisecond {
		t.Errorf("elapsed %s; want the pauses in it", r.Elapsed)
	}
	b = newBench(sweep)
	fill(b.table, 1, 40, "done")
	r, err = b.run(t, Bounds{Limit: 10, Pause: 3 * time.Second, Duration: 5 * time.Second})
	if err != nil || r.Stop != StopCeiling || r.StopBy != ByTime || r.Removed != 20 || len(b.clock.waits) != 1 {
		t.Errorf("waits %v, removed %d, stop %q by %q, error %v; want no pause that leads nowhere", b.clock.waits, r.Removed, r.Stop, r.StopBy, err)
	}
}

func TestBusy(t *testing.T) {
	busyFrom := func(from, to int) func(int, pruner.Batch) (pruner.Result, error, bool) {
		return func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			return pruner.Result{Busy: true}, nil, n >= from && n <= to
		}
	}
	for _, c := range []struct {
		name     string
		from, to int
		removed  int
		stop     Stop
		calls    int
	}{
		{"at the first batch", 1, 1, 0, StopBusy, 1},
		{"for a while", 3, 7, 50, StopDrained, 10},
		{"for good", 3, 1000, 20, StopBusy, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(sweep)
			fill(b.table, 1, 50, "done")
			b.spy.answer = busyFrom(c.from, c.to)
			r, err := b.run(t, Bounds{Limit: 10})
			if err != nil || r.Stop != c.stop || r.Removed != c.removed || c.calls > 0 && len(b.spy.calls) != c.calls {
				t.Errorf("stop %q, removed %d in %d calls, error %v; want %q, %d in %d", r.Stop, r.Removed, len(b.spy.calls), err, c.stop, c.removed, c.calls)
			}
			if r.Failed() || r.Examined != c.removed {
				t.Errorf("failed %t, examined %d", r.Failed(), r.Examined)
			}
			if r.Elapsed > policy.DefaultLockTimeout+100*time.Millisecond {
				t.Errorf("it tried for %s; the lock timeout is %s", r.Elapsed, policy.DefaultLockTimeout)
			}
			if c.name == "for good" && r.Elapsed < policy.DefaultLockTimeout {
				t.Errorf("it gave up after %s; the lock timeout is %s", r.Elapsed, policy.DefaultLockTimeout)
			}
		})
	}
	t.Run("twice for a while", func(t *testing.T) {
		b := newBench(sweep)
		fill(b.table, 1, 50, "done")
		b.spy.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			return pruner.Result{Busy: true}, nil, n >= 3 && n <= 9 || n >= 11 && n <= 17
		}
		if r, err := b.run(t, Bounds{Limit: 10}); err != nil || !r.Drained() || r.Removed != 50 {
			t.Errorf("stop %q, removed %d, error %v; want drained: each time it was short", r.Stop, r.Removed, err)
		}
	})
	t.Run("the lock timeout is a bound", func(t *testing.T) {
		b := newBench(sweep)
		fill(b.table, 1, 50, "done")
		b.spy.answer = busyFrom(3, 1000)
		r, _ := b.run(t, Bounds{Limit: 10, LockTimeout: 2 * time.Second})
		if r.Stop != StopBusy || r.Elapsed < 2*time.Second || r.Elapsed > 2200*time.Millisecond {
			t.Errorf("stop %q after %s; want busy after 2s", r.Stop, r.Elapsed)
		}
	})
}

func TestSurvey(t *testing.T) {
	setup := func() *bench {
		b := newBench(sweep)
		fill(b.table, 1, 20, "done")
		b.table.Insert(memory.Row{ID: 100, Columns: map[string]policy.Value{"state": policy.Text("done")}},
			memory.Row{ID: 101, Columns: map[string]policy.Value{"state": policy.Text("running")}})
		return b
	}
	b := setup()
	if r, err := b.run(t, Bounds{}); err != nil || r.Undated == nil || *r.Undated != 1 {
		t.Errorf("undated %v, error %v; want 1", r.Undated, err)
	}
	b = setup()
	if r, _ := b.run(t, Bounds{NoSurvey: true}); r.Undated != nil {
		t.Errorf("undated %d; want unknown", *r.Undated)
	}
	b = setup()
	b.spy.answer = func(int, pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{Busy: true}, nil, true }
	if r, _ := b.run(t, Bounds{}); r.Undated != nil {
		t.Errorf("busy: undated %d; want unknown", *r.Undated)
	}
	b = setup()
	b.table.LockTable("public.jobs")
	if r, _ := b.run(t, Bounds{}); r.Undated != nil {
		t.Errorf("table locked: undated %d; want unknown", *r.Undated)
	}
	b = setup()
	r, err := Run(t.Context(), struct{ pruner.Pruner }{b.spy.Pruner}, cutoff, Bounds{})
	if err != nil || r.Undated != nil || r.Removed != 20 {
		t.Errorf("no surveyor: undated %v, removed %d, error %v; want unknown, 20", r.Undated, r.Removed, err)
	}
}

func TestProgress(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 25, "done")
	var ps []Progress
	_, err := b.run(t, Bounds{Limit: 10, Duration: time.Second, OnBatch: func(p Progress) { ps = append(ps, p) }})
	if err != nil || len(ps) != 3 {
		t.Fatalf("%d calls, error %v; want 3", len(ps), err)
	}
	for i, p := range ps {
		want := []int{10, 20, 25}[i]
		if p.Total.Removed != want || p.Batch.Removed != min(10, 25-10*i) || p.Limit != 10 || p.Next != 10 || p.Took != time.Millisecond ||
			p.Left != time.Second-time.Duration(i+1)*time.Millisecond || p.Total.Elapsed != time.Duration(i+1)*time.Millisecond || p.Number != 1 || p.Of != 1 {
			t.Errorf("batch %d: %+v", i+1, p)
		}
	}
	if last := ps[2]; last.Total.Stop != "" {
		t.Errorf("the total has the stop %q", last.Total.Stop)
	}
}

func TestProgressWithoutACeilingOfTime(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 25, "done")
	_, err := b.run(t, Bounds{Limit: 10, Duration: NoCeiling, OnBatch: func(p Progress) {
		if p.Left != NoCeiling {
			t.Errorf("%s are left; want no ceiling", p.Left)
		}
	}})
	if err != nil || b.spy.calls[1].Timeout != 0 {
		t.Errorf("error %v, timeout %s; want the pruner's own", err, b.spy.calls[1].Timeout)
	}
}

func TestZeroCutoffFindsNothing(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 5, "done")
	r, err := Run(t.Context(), b.spy, policy.Cutoff{}, Bounds{})
	if err != nil || !r.Drained() || r.Examined != 0 || b.left() != 5 {
		t.Errorf("report %+v, error %v, %d left; want drained and nothing touched", r, err, b.left())
	}
}
