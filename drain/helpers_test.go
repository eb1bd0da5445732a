package drain

import (
	"context"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	window = policy.MustWindow(24 * time.Hour)
	cutoff = window.Cutoff(now)
)

// sweep lets rows go by their own state.
var sweep = policy.Sweep{Name: "jobs", Table: policy.Name{Schema: "public", Table: "jobs"}, Age: "at", Window: window,
	Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}}}

// fill makes n rows of one state, the first the oldest, a second apart, with IDs from first on.
func fill(t *memory.Table, first, n int, state string) {
	for i := range n {
		at := now.AddDate(0, 0, -30).Add(time.Duration(first+i) * time.Second)
		t.Insert(memory.Row{ID: int64(first + i), Age: &at, Columns: map[string]policy.Value{"state": policy.Text(state)}})
	}
}

// fakeClock passes only where a batch or a wait makes it pass.
type fakeClock struct {
	at     time.Time
	waits  []time.Duration
	onWait func()
}

func newClock() *fakeClock { return &fakeClock{at: now} }

func (f *fakeClock) clock() *clock {
	return &clock{now: func() time.Time { return f.at }, wait: func(ctx context.Context, d time.Duration, _ ...<-chan struct{}) {
		f.waits = append(f.waits, d)
		f.at = f.at.Add(d)
		if f.onWait != nil {
			f.onWait()
		}
	}}
}

// spy is a Pruner that can be watched, slowed down and made to fail.
type spy struct {
	pruner.Pruner
	clock *fakeClock
	calls []call
	// answer, if it is set and says so, answers in place of the Pruner. n counts calls from 1.
	answer func(n int, b pruner.Batch) (res pruner.Result, err error, ok bool)
	// cost is how long a batch takes; nil: a millisecond.
	cost func(b pruner.Batch, res pruner.Result) time.Duration
	// after is called when a batch is over.
	after func(n int)
}

type call struct {
	pruner.Batch
	res pruner.Result
	err error
}

func (s *spy) Prune(ctx context.Context, b pruner.Batch) (pruner.Result, error) {
	n := len(s.calls) + 1
	var res pruner.Result
	var err error
	ok := false
	if s.answer != nil {
		res, err, ok = s.answer(n, b)
	}
	if !ok {
		res, err = s.Pruner.Prune(ctx, b)
	}
	d := time.Millisecond
	if s.cost != nil {
		d = s.cost(b, res)
	}
	if s.clock != nil {
		s.clock.at = s.clock.at.Add(d)
	}
	s.calls = append(s.calls, call{b, res, err})
	if s.after != nil {
		s.after(n)
	}
	return res, err
}

func (s *spy) Undated(ctx context.Context, max int) (*int, error) {
	if sv, ok := s.Pruner.(pruner.Surveyor); ok {
		return sv.Undated(ctx, max)
	}
	return nil, nil
}

func (s *spy) HeldBy(ctx context.Context, c policy.Cutoff, max int) ([]pruner.HeldBy, error) {
	return s.Pruner.(pruner.Surveyor).HeldBy(ctx, c, max)
}

func (s *spy) limits() []int {
	var ls []int
	for _, c := range s.calls {
		ls = append(ls, c.Limit)
	}
	return ls
}

// bench is a table, its Pruner and a clock.
type bench struct {
	table *memory.Table
	spy   *spy
	clock *fakeClock
}

func newBench(s policy.Sweep) *bench {
	b := &bench{table: &memory.Table{}, clock: newClock()}
	b.spy = &spy{Pruner: memory.New(b.table, s, s.Arms(policy.Index{Columns: []string{"at", "id"}})[0]), clock: b.clock}
	return b
}

func (b *bench) run(t *testing.T, bounds Bounds) (Report, error) {
	t.Helper()
	return b.runContext(t.Context(), bounds)
}

func (b *bench) runContext(ctx context.Context, bounds Bounds) (Report, error) {
	bounds.clock = b.clock.clock()
	return Run(ctx, b.spy, cutoff, bounds)
}

func (b *bench) left() int { return len(b.table.IDs()) }
