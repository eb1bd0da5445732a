package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

// arms makes a sweep of two arms over one table, by the states done (a day) and failed (a week).
func arms(t *testing.T) (*memory.Table, Sweep, []*spy, *fakeClock) {
	t.Helper()
	s := sweep
	s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: window}, {State: policy.Text("failed"), Window: policy.MustWindow(7 * 24 * time.Hour)}}
	s.Guard = policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed")}}
	table, clock := &memory.Table{}, newClock()
	sw := Sweep{Name: "jobs"}
	var spies []*spy
	for _, a := range s.Arms(policy.Index{Columns: []string{"state", "at"}}) {
		sp := &spy{Pruner: memory.New(table, s, a), clock: clock}
		spies = append(spies, sp)
		sw.Arms = append(sw.Arms, Arm{Name: a.Name, Pruner: sp, Cutoff: a.Window.Cutoff(now), CountsHeld: a.CountsHeld()})
	}
	if len(spies) != 2 {
		t.Fatalf("%d arms; want 2", len(spies))
	}
	sw.Bounds.clock = clock.clock()
	return table, sw, spies, clock
}

func TestRunSweep(t *testing.T) {
	table, s, _, _ := arms(t)
	fill(table, 1, 35, "done")
	fill(table, 101, 12, "failed")
	fill(table, 201, 3, "running")
	table.Insert(memory.Row{ID: 300, Columns: map[string]policy.Value{"state": policy.Text("done")}}, memory.Row{ID: 301, Columns: map[string]policy.Value{"state": policy.Text("failed")}})
	s.Bounds.Limit = 10
	r, err := RunSweep(t.Context(), s)
	if err != nil || !r.Drained() || r.Name != "jobs" || r.Removed != 47 || r.Batches != 6 || r.CountsHeld {
		t.Errorf("report %+v, error %v; want 47 removed in 6 batches, drained, held unknown", r.Report, err)
	}
	if r.Cutoff != cutoff || r.Undated == nil || *r.Undated != 2 || r.Elapsed != 6*time.Millisecond {
		t.Errorf("cutoff %s, undated %v, elapsed %s; want the latest cutoff, 2, 6ms", r.Cutoff, r.Undated, r.Elapsed)
	}
	var arms []string
	for _, a := range r.Arms {
		arms = append(arms, fmt.Sprint(a.Name, " ", a.Removed, " ", a.Stop, " ", a.Cutoff, " ", a.Elapsed))
	}
	want := []string{"jobs done 35 drained 2026-02-28T12:00:00Z 4ms", "jobs failed 12 drained 2026-02-22T12:00:00Z 2ms"}
	if !slices.Equal(arms, want) {
		t.Errorf("arms %q; want %q", arms, want)
	}
}

// Under a ceiling that is reached each time no arm starves.
func TestArmsShareTheCeilingInTurns(t *testing.T) {
	table, s, _, _ := arms(t)
	fill(table, 1, 1000, "done")
	fill(table, 2001, 1000, "failed")
	s.Bounds.Limit, s.Bounds.Rows = 10, 55
	r, err := RunSweep(t.Context(), s)
	if err != nil || r.Stop != StopCeiling || r.StopBy != ByRows || r.Removed != 55 || r.Arms[0].Removed != 30 || r.Arms[1].Removed != 25 {
		t.Errorf("removed %d and %d, stop %q by %q, error %v; want 30 and 25", r.Arms[0].Removed, r.Arms[1].Removed, r.Stop, r.StopBy, err)
	}
	if r.Arms[0].Stop != StopCeiling || r.Arms[1].Stop != StopCeiling {
		t.Errorf("arms %q and %q; want ceiling", r.Arms[0].Stop, r.Arms[1].Stop)
	}
	table, s, _, _ = arms(t)
	fill(table, 1, 1000, "done")
	fill(table, 2001, 1000, "failed")
	s.Bounds.Limit, s.Bounds.Batches = 10, 1
	r, err = RunSweep(t.Context(), s)
	if err != nil || r.Stop != StopCeiling || r.StopBy != ByBatches || r.Arms[0].Stop != StopCeiling || r.Arms[1].Stop != StopNotReached || r.Removed != 10 {
		t.Errorf("stop %q by %q, arms %q and %q, removed %d, error %v", r.Stop, r.StopBy, r.Arms[0].Stop, r.Arms[1].Stop, r.Removed, err)
	}
}

func TestArmsEndTogether(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(table *memory.Table, spies []*spy)
		stop  Stop
		arms  [2]Stop
		err   bool
	}{
		{"both drained", func(*memory.Table, []*spy) {}, StopDrained, [2]Stop{StopDrained, StopDrained}, false},
		{"one stuck", func(table *memory.Table, _ []*spy) { table.Refuse(3, pins) }, StopStuck, [2]Stop{StopStuck, StopDrained}, false},
		{"one locked", func(table *memory.Table, _ []*spy) { table.Lock(103) }, StopLocked, [2]Stop{StopDrained, StopLocked}, false},
		{"one stuck, one locked", func(table *memory.Table, _ []*spy) { table.Lock(3); table.Refuse(103, pins) }, StopStuck, [2]Stop{StopLocked, StopStuck}, false},
		{"one locked, one stuck", func(table *memory.Table, _ []*spy) { table.Refuse(3, pins); table.Lock(103) }, StopStuck, [2]Stop{StopStuck, StopLocked}, false},
		{"no time for the second", func(_ *memory.Table, spies []*spy) {
			spies[0].cost = func(pruner.Batch, pruner.Result) time.Duration { return policy.DefaultTime }
		}, StopCeiling, [2]Stop{StopCeiling, StopNotReached}, false},
		{"the first fails", func(_ *memory.Table, spies []*spy) {
			spies[0].answer = func(int, pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{}, errors.New("boom"), true }
		}, StopFailed, [2]Stop{StopFailed, StopNotReached}, true},
		{"the second fails", func(_ *memory.Table, spies []*spy) {
			spies[1].answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
				return pruner.Result{}, errors.New("boom"), n == 2
			}
		}, StopFailed, [2]Stop{StopNotReached, StopFailed}, true},
		{"busy", func(_ *memory.Table, spies []*spy) {
			spies[0].answer = func(int, pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{Busy: true}, nil, true }
		}, StopBusy, [2]Stop{StopBusy, StopNotReached}, false},
		{"the table locked", func(table *memory.Table, _ []*spy) { table.LockTable("public.jobs") }, StopLocked, [2]Stop{StopLocked, StopNotReached}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, s, spies, _ := arms(t)
			fill(table, 1, 35, "done")
			fill(table, 101, 35, "failed")
			c.setup(table, spies)
			s.Bounds.Limit = 10
			r, err := RunSweep(t.Context(), s)
			if r.Stop != c.stop || r.Arms[0].Stop != c.arms[0] || r.Arms[1].Stop != c.arms[1] || (err != nil) != c.err {
				t.Errorf("stop %q, arms %q and %q, error %v; want %q, %q", r.Stop, r.Arms[0].Stop, r.Arms[1].Stop, err, c.stop, c.arms)
			}
		})
	}
}

// runAll makes sweeps named a, b, c... with so many due rows each, whose batches of ten take a second.
type runAll struct {
	tables []*memory.Table
	spies  []*spy
	sweeps []Sweep
	clock  *fakeClock
	log    []string // sweeps in the order of their batches
	ends   []string
	starts []string
}

func newRunAll(rows ...int) *runAll {
	ra := &runAll{clock: newClock()}
	for i, n := range rows {
		table := &memory.Table{}
		fill(table, 1, n, "done")
		name := string(rune('a' + i))
		sp := &spy{Pruner: memory.New(table, sweep, sweep.Arms(policy.Index{Columns: []string{"at"}})[0]), clock: ra.clock,
			cost: func(pruner.Batch, pruner.Result) time.Duration { return time.Second }, after: func(int) { ra.log = append(ra.log, name) }}
		ra.tables, ra.spies = append(ra.tables, table), append(ra.spies, sp)
		ra.sweeps = append(ra.sweeps, Sweep{Name: name, Arms: []Arm{{Name: name, Pruner: sp, Cutoff: cutoff, CountsHeld: true}}, Bounds: Bounds{Limit: 10, BatchTarget: time.Hour}})
	}
	return ra
}

func (ra *runAll) run(ctx context.Context, budget policy.Budget, o Options) ([]SweepReport, error) {
	o.clock = ra.clock.clock()
	o.OnStart = func(name string) { ra.starts = append(ra.starts, name) }
	o.OnEnd = func(r SweepReport) { ra.ends = append(ra.ends, fmt.Sprint(r.Name, " ", r.Removed, " ", r.Stop)) }
	return RunAll(ctx, ra.sweeps, budget, o)
}

func stops(rs []SweepReport) string {
	var s []string
	for _, r := range rs {
		s = append(s, fmt.Sprint(r.Name, " ", r.Removed, " ", strings.TrimSuffix(fmt.Sprint(r.Stop, ":", r.StopBy), ":")))
	}
	return strings.Join(s, ", ")
}

func TestRunAllTakesFairTurns(t *testing.T) {
	ra := newRunAll(70, 20, 0, 50)
	rs, err := ra.run(t.Context(), policy.Budget{Turn: 3 * time.Second}, Options{})
	if err != nil || stops(rs) != "a 70 drained, b 20 drained, c 0 drained, d 50 drained" {
		t.Errorf("%s, error %v", stops(rs), err)
	}
	// One batch each, then turns of three seconds; c is done in the first round and b in the second.
	if got, want := strings.Join(ra.log, ""), "abcd"+"aaabddd"+"aaad"; got != want {
		t.Errorf("batches in the order %s; want %s", got, want)
	}
	if want := []string{"c 0 drained", "b 20 drained", "a 70 drained", "d 50 drained"}; !slices.Equal(ra.ends, want) {
		t.Errorf("ends %q; want %q", ra.ends, want)
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(ra.starts, want) {
		t.Errorf("starts %q; want %q", ra.starts, want)
	}
}

func TestRunAllBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget policy.Budget
		want   string
		starts int
	}{
		{"time", policy.Budget{Time: 7 * time.Second, Turn: 2 * time.Second}, "a 30 budget:time, b 30 budget:time, c 10 budget:time", 3},
		{"time for the first round only", policy.Budget{Time: 2 * time.Second}, "a 10 budget:time, b 10 budget:time, c 0 not_reached", 2},
		{"rows", policy.Budget{Rows: 45, Turn: 2 * time.Second}, "a 25 budget:rows, b 10 budget:rows, c 10 budget:rows", 3},
		{"rows for the first sweep only", policy.Budget{Rows: 5}, "a 5 budget:rows, b 0 not_reached, c 0 not_reached", 1},
		{"ample", policy.Budget{Rows: 1000}, "a 100 drained, b 100 drained, c 20 drained", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			ra := newRunAll(100, 100, 20)
			rs, err := ra.run(t.Context(), c.budget, Options{})
			if err != nil || stops(rs) != c.want || len(ra.starts) != c.starts || len(ra.ends) != 3 {
				t.Errorf("%s, error %v, started %q, ended %q; want %s", stops(rs), err, ra.starts, ra.ends, c.want)
			}
		})
	}
	for _, b := range []policy.Budget{{Time: -1}, {Rows: -1}, {Turn: -1}} {
		ra := newRunAll(10)
		if rs, err := ra.run(t.Context(), b, Options{}); !errors.Is(err, ErrBounds) || rs != nil || len(ra.log) != 0 {
			t.Errorf("%+v: error %v", b, err)
		}
	}
}

// A sweep's own ceiling of time counts its own turns, not those of others.
func TestRunAllCeilings(t *testing.T) {
	ra := newRunAll(100, 100)
	ra.sweeps[0].Bounds.Duration = 4 * time.Second
	ra.sweeps[1].Bounds.Rows = 25
	rs, err := ra.run(t.Context(), policy.Budget{Turn: 2 * time.Second}, Options{})
	if err != nil || stops(rs) != "a 40 ceiling:time, b 25 ceiling:rows" {
		t.Errorf("%s, error %v", stops(rs), err)
	}
	if rs[0].Elapsed != 4*time.Second || rs[1].Elapsed != 3*time.Second {
		t.Errorf("elapsed %s and %s; want 4s and 3s", rs[0].Elapsed, rs[1].Elapsed)
	}
}

func TestRunAllOneFailsTheOthersGoOn(t *testing.T) {
	setup := func() *runAll {
		ra := newRunAll(30, 30, 30)
		ra.spies[1].answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			return pruner.Result{}, errors.New("boom"), n == 2
		}
		return ra
	}
	ra := setup()
	rs, err := ra.run(t.Context(), policy.Budget{}, Options{})
	if err == nil || !strings.Contains(err.Error(), "sweep b: boom") || stops(rs) != "a 30 drained, b 10 failed, c 30 drained" {
		t.Errorf("%s, error %v", stops(rs), err)
	}
	ra = setup()
	rs, err = ra.run(t.Context(), policy.Budget{}, Options{FailFast: true})
	if err == nil || stops(rs) != "a 30 drained, b 10 failed, c 10 not_reached" || len(ra.ends) != 3 {
		t.Errorf("fail fast: %s, error %v, ends %q", stops(rs), err, ra.ends)
	}
	ra = newRunAll(30, 30)
	ra.sweeps[0].Bounds.Limit = -1
	rs, err = ra.run(t.Context(), policy.Budget{}, Options{})
	if !errors.Is(err, ErrBounds) || stops(rs) != "a 0 refused, b 30 drained" || !slices.Equal(ra.starts, []string{"b"}) || len(ra.ends) != 2 {
		t.Errorf("wrong bounds: %s, error %v, starts %q, ends %q", stops(rs), err, ra.starts, ra.ends)
	}
}

func TestRunAllSignals(t *testing.T) {
	stop := make(chan struct{})
	ra := newRunAll(100, 100, 100)
	ra.spies[1].after = func(int) { close(stop) }
	rs, err := ra.run(t.Context(), policy.Budget{}, Options{Stop: stop})
	if err != nil || stops(rs) != "a 10 signal, b 10 signal, c 0 not_reached" || len(ra.ends) != 3 || len(ra.starts) != 2 {
		t.Errorf("%s, error %v, starts %q, ends %q", stops(rs), err, ra.starts, ra.ends)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ra = newRunAll(100, 100, 100)
	ra.spies[0].after = func(n int) {
		if n == 3 {
			cancel()
		}
	}
	rs, err = ra.run(ctx, policy.Budget{}, Options{})
	if !errors.Is(err, context.Canceled) || stops(rs) != "a 30 signal, b 10 signal, c 10 signal" {
		t.Errorf("%s, error %v", stops(rs), err)
	}
}

// While one sweep pauses in the first round, the others work.
func TestRunAllPauses(t *testing.T) {
	ra := newRunAll(20, 20, 20)
	for i := range ra.sweeps {
		ra.sweeps[i].Bounds.Pause = 1500 * time.Millisecond
	}
	rs, err := ra.run(t.Context(), policy.Budget{}, Options{})
	if err != nil || stops(rs) != "a 20 drained, b 20 drained, c 20 drained" || len(ra.clock.waits) != 0 {
		t.Errorf("%s, error %v, waits %v; want none: others work in the pause", stops(rs), err, ra.clock.waits)
	}
}

func TestRunAllWithoutABudgetOfTime(t *testing.T) {
	ra := newRunAll(15, 20)
	for i := range ra.sweeps {
		ra.sweeps[i].Bounds.Duration = NoCeiling
	}
	rs, err := ra.run(t.Context(), policy.Budget{Time: NoCeiling, Rows: NoCeiling}, Options{OnBatch: func(p Progress) {
		if p.Left != NoCeiling {
			t.Errorf("%s are left; want no ceiling", p.Left)
		}
	}})
	if err != nil || stops(rs) != "a 15 drained, b 20 drained" {
		t.Errorf("%s, error %v", stops(rs), err)
	}
}

func TestRunAllProgress(t *testing.T) {
	ra := newRunAll(15, 20)
	var got []string
	_, err := ra.run(t.Context(), policy.Budget{Time: time.Minute}, Options{OnBatch: func(p Progress) {
		got = append(got, fmt.Sprint(p.Sweep, " ", p.Arm, " ", p.Number, "/", p.Of, " ", p.Total.Removed, " ", p.Left))
	}})
	want := []string{"a a 1/2 10 59s", "b b 2/2 10 58s", "a a 1/2 15 57s", "b b 2/2 20 56s"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("progress %q, error %v; want %q", got, err, want)
	}
}

// A first batch that has to find its size does not hold up the first round for longer than a turn.
func TestRunAllFirstRoundIsBounded(t *testing.T) {
	ra := newRunAll(5000, 10)
	ra.sweeps[0].Bounds.Limit = 1000
	ra.spies[0].answer = tooSlow(0, 20*time.Second)
	ra.spies[0].cost = func(pruner.Batch, pruner.Result) time.Duration { return 20 * time.Second }
	_, _ = ra.run(t.Context(), policy.Budget{Turn: 30 * time.Second}, Options{})
	if got := strings.Join(ra.log, ""); !strings.HasPrefix(got, "aab") {
		t.Errorf("batches in the order %s; want b after two tries of a", got)
	}
}
