package drain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

// idler is a Loop over the sweeps of a runAll, on its clock.
type idler struct {
	*runAll
	*Loop
	passes int
	err    error // of the function that gives the sweeps
}

func newIdler(t *testing.T, change func(*LoopConfig), rows ...int) *idler {
	t.Helper()
	in := &idler{runAll: newRunAll(rows...)}
	c := LoopDefaults(func(context.Context) ([]Sweep, error) {
		in.passes++
		return in.sweeps, in.err
	})
	c.clock = in.clock.clock()
	if change != nil {
		change(&c)
	}
	l, err := NewLoop(c)
	if err != nil {
		t.Fatal(err)
	}
	in.Loop = l
	return in
}

// idle lets d go by, and is idle then.
func (in *idler) idle(t *testing.T, d time.Duration) ([]SweepReport, bool, error) {
	t.Helper()
	in.clock.at = in.clock.at.Add(d)
	return in.Idle(t.Context())
}

func TestLoopSettings(t *testing.T) {
	given := func(context.Context) ([]Sweep, error) { return nil, nil }
	d := LoopDefaults(given)
	if d.Interval != time.Minute || d.Time != 2*time.Second || d.Limit != policy.DefaultLimit || d.Off || d.Stop != nil {
		t.Errorf("the defaults are %+v", d)
	}
	for _, off := range []bool{false, true} {
		for _, c := range []struct {
			change func(*LoopConfig)
			want   string // "": it is right
		}{
			{func(*LoopConfig) {}, ""},
			{func(c *LoopConfig) { c.Interval, c.Time, c.Limit = 1, 1, 1 }, ""},
			{func(c *LoopConfig) { c.Interval, c.Time, c.Limit = MaxInterval, MaxInterval, pruner.MaxLimit }, ""},
			{func(c *LoopConfig) { c.Sweeps = nil }, "Sweeps is nil"},
			{func(c *LoopConfig) { c.Interval = 0 }, "Interval is zero; LoopDefaults has the default of 1m0s, and Off switches"},
			{func(c *LoopConfig) { c.Interval = -time.Second }, "Interval is negative (-1s); LoopDefaults"},
			{func(c *LoopConfig) { c.Interval = MaxInterval + 1 }, "Interval is 24h0m0.000000001s; it is at most 24h0m0s"},
			{func(c *LoopConfig) { c.Interval = NoCeiling }, "it is at most 24h0m0s"},
			{func(c *LoopConfig) { c.Time = 0 }, "Time is zero; LoopDefaults has the default of 2s"},
			{func(c *LoopConfig) { c.Time = -1 }, "Time is negative"},
			{func(c *LoopConfig) { c.Time = NoCeiling }, "Time is 2562047h47m16.854775807s; it is at most"},
			{func(c *LoopConfig) { c.Limit = 0 }, "Limit is zero; LoopDefaults has the default of 5000"},
			{func(c *LoopConfig) { c.Limit = -1 }, "Limit is -1; a batch's limit is from 1 to 100000"},
			{func(c *LoopConfig) { c.Limit = pruner.MaxLimit + 1 }, "Limit is 100001"},
			{func(c *LoopConfig) { c.Limit = NoCeiling }, "Limit is 9223372036854775807"},
		} {
			config := LoopDefaults(given)
			config.Off = off
			c.change(&config)
			switch l, err := NewLoop(config); {
			case c.want == "" && (err != nil || l == nil):
				t.Errorf("error %v; want none", err)
			case c.want != "" && (l != nil || !errors.Is(err, ErrBounds) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v; want one that says %q", err, c.want)
			}
		}
	}
	// What is not finite becomes one of these, by the machine: zero, the least and the greatest number.
	for _, seconds := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		config := LoopDefaults(given)
		config.Interval = time.Duration(seconds * float64(time.Second))
		if _, err := NewLoop(config); !errors.Is(err, ErrBounds) {
			t.Errorf("an interval of %v: error %v", seconds, err)
		}
	}
}

func TestLoopInterval(t *testing.T) {
	in := newIdler(t, func(c *LoopConfig) { c.Interval, c.Time = 10*time.Second, time.Minute }, 25)
	const ms = time.Millisecond
	for i, c := range []struct {
		after   time.Duration
		ran     bool
		removed int
	}{
		{0, false, 0}, {9999 * ms, false, 0}, // the first time is one interval after the start
		{ms, true, 25},                       // it takes three seconds
		{0, false, 0}, {9999 * ms, false, 0}, // and the interval is one from its end
		{ms, true, 0}, {time.Hour, true, 0}, // what was missed is not made up for
		{0, false, 0}, {9999 * ms, false, 0}, {ms, true, 0},
	} {
		rs, ran, err := in.idle(t, c.after)
		if err != nil || ran != c.ran || ran != (len(rs) == 1) || ran && rs[0].Removed != c.removed {
			t.Errorf("time %d: ran %t, %s, error %v; want %t, %d removed", i+1, ran, stops(rs), err, c.ran, c.removed)
		}
	}
	if in.passes != 4 {
		t.Errorf("the sweeps were asked for %d times; want once a pass, 4", in.passes)
	}
}

// A jump of the wall clock moves nothing: the clock that is read is the monotonic one too.
func TestLoopIsMonotonic(t *testing.T) {
	l, err := NewLoop(LoopDefaults(func(context.Context) ([]Sweep, error) { return nil, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(l.due.String(), " m=") {
		t.Errorf("the next pass is due at %s, without a monotonic reading", l.due)
	}
}

// A backlog goes at the ceiling of a pass, and the work has the rest of the interval.
func TestLoopCeiling(t *testing.T) {
	in := newIdler(t, nil, 95) // ten rows a second
	for pass, want := range []string{"a 20 budget:time", "a 20 budget:time", "a 20 budget:time", "a 20 budget:time", "a 15 drained"} {
		rs, ran, err := in.idle(t, time.Minute)
		if err != nil || !ran || stops(rs) != want {
			t.Errorf("pass %d: ran %t, %s, error %v; want %s", pass+1, ran, stops(rs), err, want)
		}
		if _, ran, _ := in.idle(t, time.Minute-1); ran {
			t.Errorf("pass %d: more was due, and the interval was cut short", pass+1)
		}
		in.clock.at = in.clock.at.Add(-(time.Minute - 1))
	}
}

// The sweep that had no turn has the first of the next pass.
func TestLoopSweepsDoNotStarve(t *testing.T) {
	in := newIdler(t, nil, 500, 500, 500, 500, 500)
	for range 5 {
		rs, _, err := in.idle(t, time.Minute)
		var names []string
		for _, r := range rs {
			names = append(names, r.Name)
		}
		if err != nil || strings.Join(names, "") != "abcde" {
			t.Errorf("reports of %q, error %v; want them in the order given", names, err)
		}
	}
	if got := strings.Join(in.log, ""); got != "abcdeabcde" {
		t.Errorf("batches in the order %s; want each in its turn", got)
	}
	// Two that share a pass take turns of a batch.
	in = newIdler(t, func(c *LoopConfig) { c.Time = 6 * time.Second }, 500, 500)
	if rs, _, err := in.idle(t, time.Minute); err != nil || stops(rs) != "a 30 budget:time, b 30 budget:time" {
		t.Errorf("%s, error %v", stops(rs), err)
	}
}

func TestLoopFailureWaits(t *testing.T) {
	boom := errors.New("boom")
	in := newIdler(t, func(c *LoopConfig) { c.Time = time.Minute }, 30, 30)
	fails := true
	in.spies[0].answer = func(int, pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{}, boom, fails }
	rs, ran, err := in.idle(t, time.Minute)
	if !ran || !errors.Is(err, boom) || !strings.Contains(err.Error(), "sweep a: boom") || stops(rs) != "a 0 failed, b 30 drained" {
		t.Errorf("ran %t, %s, error %v", ran, stops(rs), err)
	}
	if rs, ran, err := in.idle(t, time.Minute-1); ran || rs != nil || err != nil {
		t.Errorf("before the interval is over: ran %t, %s, error %v", ran, stops(rs), err)
	}
	fails = false
	if rs, ran, err := in.idle(t, 1); !ran || err != nil || stops(rs) != "a 30 drained, b 0 drained" {
		t.Errorf("then: ran %t, %s, error %v", ran, stops(rs), err)
	}

	in.err = boom
	if rs, ran, err := in.idle(t, time.Minute); !ran || rs != nil || !errors.Is(err, boom) || in.passes != 3 {
		t.Errorf("no sweeps to be had: ran %t, %s, error %v", ran, stops(rs), err)
	}
	if _, ran, _ := in.idle(t, time.Minute-1); ran || in.passes != 3 {
		t.Error("after that it did not wait for an interval")
	}
	in.err, in.sweeps = nil, nil
	if _, ran, err := in.idle(t, time.Minute); !ran || err == nil {
		t.Errorf("an empty list: ran %t, error %v", ran, err)
	}
}

func TestLoopPassesNothingOn(t *testing.T) {
	in := newIdler(t, nil, 10)
	in.sweeps[0].Bounds.Limit = -1
	if rs, ran, err := in.idle(t, time.Minute); !ran || !errors.Is(err, ErrBounds) || stops(rs) != "a 0 refused" {
		t.Errorf("ran %t, %s, error %v; want it refused", ran, stops(rs), err)
	}
	if in.sweeps[0].Bounds.NoSurvey {
		t.Error("the bounds of the caller were written to")
	}
}

func TestLoopStop(t *testing.T) {
	stop := make(chan struct{})
	in := newIdler(t, func(c *LoopConfig) { c.Stop, c.Time = stop, time.Minute }, 50, 50)
	in.spies[1].after = func(n int) {
		if n == 2 {
			close(stop)
		}
	}
	rs, ran, err := in.idle(t, time.Minute)
	if !ran || err != nil || stops(rs) != "a 20 signal, b 20 signal" {
		t.Errorf("ran %t, %s, error %v; want the batch in hand ended", ran, stops(rs), err)
	}
	if _, ran, err := in.idle(t, time.Hour); ran || err != nil || in.passes != 1 {
		t.Errorf("after the stop: ran %t, error %v", ran, err)
	}

	in = newIdler(t, nil, 50)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("terminated")
	cancel(cause)
	in.clock.at = in.clock.at.Add(time.Hour)
	if _, ran, err := in.Idle(ctx); ran || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || in.passes != 0 {
		t.Errorf("the context is over: ran %t, error %v", ran, err)
	}
}

func TestLoopOff(t *testing.T) {
	in := newIdler(t, func(c *LoopConfig) { c.Off = true }, 50)
	if rs, ran, err := in.idle(t, 24*time.Hour); ran || rs != nil || err != nil || in.passes != 0 {
		t.Errorf("ran %t, error %v", ran, err)
	}
}

func TestLoopBusyIsNoFailure(t *testing.T) {
	in := newIdler(t, nil, 50)
	in.spies[0].answer = func(int, pruner.Batch) (pruner.Result, error, bool) { return pruner.Result{Busy: true}, nil, true }
	rs, ran, err := in.idle(t, time.Minute)
	if !ran || err != nil || stops(rs) != "a 0 busy" || rs[0].Failed() || len(in.log) != 1 {
		t.Errorf("ran %t, %s, error %v after %d statements; want busy after one", ran, stops(rs), err, len(in.log))
	}
}

// A Loop that goroutines share runs one pass at a time, and none of them waits.
func TestLoopIsShared(t *testing.T) {
	in := newIdler(t, nil, 10)
	in.tables[0].OnExamined = func([]int64) {
		beside := make(chan string)
		go func() {
			rs, ran, err := in.Idle(t.Context())
			beside <- fmt.Sprint(len(rs), ran, err)
		}()
		if got := <-beside; got != "0 false <nil>" {
			t.Errorf("beside a pass: %s", got)
		}
	}
	if rs, ran, err := in.idle(t, time.Minute); !ran || err != nil || stops(rs) != "a 10 drained" || in.passes != 1 {
		t.Errorf("ran %t, %s, error %v, %d passes", ran, stops(rs), err, in.passes)
	}
}

// Workers that sweep the same rows at once, also without a lock that keeps all but one out, remove and count each once.
func TestLoopsOfSeveralWorkers(t *testing.T) {
	first := newIdler(t, func(c *LoopConfig) { c.Time = time.Hour }, 400)
	removed := make(chan int)
	for range 4 {
		in := newIdler(t, func(c *LoopConfig) { c.Time = time.Hour }, 0)
		in.spies[0].Pruner = memory.New(first.tables[0], sweep, sweep.Arms(policy.Index{Columns: []string{"at"}})[0])
		in.clock.at = in.clock.at.Add(time.Minute)
		go func() {
			rs, ran, err := in.Idle(t.Context())
			if !ran || err != nil || len(rs) != 1 || rs[0].Failed() {
				t.Errorf("ran %t, %s, error %v", ran, stops(rs), err)
			}
			removed <- rs[0].Removed
		}()
	}
	if sum := <-removed + <-removed + <-removed + <-removed; sum != 400 || len(first.tables[0].IDs()) != 0 {
		t.Errorf("%d rows were counted as removed, %d are left; want 400 and none", sum, len(first.tables[0].IDs()))
	}
}

func TestLoopBounds(t *testing.T) {
	for _, c := range []struct{ loop, sweep, want int }{{5000, 0, 1000}, {40, 0, 40}, {40, 10, 10}, {10, 40, 10}} {
		in := newIdler(t, func(l *LoopConfig) { l.Limit, l.Time = c.loop, time.Hour }, 100)
		in.sweeps[0].Bounds.Limit = c.sweep
		in.sweeps[0].Bounds.Rows = 70
		rs, _, err := in.idle(t, time.Minute)
		if ls := in.spies[0].limits(); err != nil || slices.Max(ls) != min(70, c.want) {
			t.Errorf("%+v: limits %v, error %v", c, ls, err)
		}
		if rs[0].Removed != 70 || rs[0].Stop != StopCeiling || rs[0].Undated != nil {
			t.Errorf("%+v: %+v; want the sweep's own ceiling, and no survey", c, rs[0].Report)
		}
	}
}
