package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// The defaults of a Loop. Each is a choice, not a constant of nature.
const (
	DefaultInterval = time.Minute
	DefaultIdleTime = 2 * time.Second
	// MaxInterval is the longest interval: the first pass comes one interval after the start, so that a longer one would
	// never sweep in a process that is deployed once a day.
	MaxInterval = 24 * time.Hour
)

// LoopConfig are the settings of a [Loop]. Begin with [LoopDefaults]. Zero is an error in all but Off and Stop: settings come
// from configuration, where a zero is a mistake, or is meant as "never" by one and as "always" by another.
type LoopConfig struct {
	// Sweeps are those of one pass. They are asked for at the beginning of each, so that their cutoffs are those of the
	// moment by the server's clock; their arms may be the same each time. They take fair turns, in no order to rely on. Their
	// own bounds hold within the loop's.
	Sweeps func(ctx context.Context) ([]Sweep, error)

	Interval time.Duration // from the end of a pass to the next at least; LoopDefaults: DefaultInterval
	// Time is the ceiling of a pass: no batch starts that cannot end within it, judged by the last ones. A sweep's first batch
	// has its whole statement timeout. LoopDefaults: DefaultIdleTime.
	Time  time.Duration
	Limit int             // rows of a batch at most, where the sweep's own limit is not lower; LoopDefaults: policy.DefaultLimit
	Off   bool            // no pass ever runs
	Stop  <-chan struct{} // closed: a pass ends after the batch in hand, and none begins

	clock *clock
}

// LoopDefaults are the documented defaults, for these sweeps.
func LoopDefaults(sweeps func(ctx context.Context) ([]Sweep, error)) LoopConfig {
	return LoopConfig{Sweeps: sweeps, Interval: DefaultInterval, Time: DefaultIdleTime, Limit: policy.DefaultLimit}
}

// Loop sweeps in the idle time of a worker: the worker calls [Loop.Idle] each time it finds nothing to do.
//
// A pass runs at most once an interval by the monotonic clock, and first one interval after NewLoop, so that a process that
// is started again and again does not sweep each time. It is bounded, so that a backlog does not keep the worker from its
// work; after a pass that left something due the next one waits for the whole interval all the same. A backlog thus goes
// at the rate of Time an interval and worker: for a large one, run `prunectl sweep` beside it.
//
// A fleet that is never idle never sweeps. Where that can be, schedule `prunectl sweep` beside the loop; they do no harm to
// each other.
//
// Many workers may run a Loop over the same sweeps. Open their arms with the one-sweeper lock (OneSweeper of
// pruner/postgres): all but one then find a sweep busy after one statement, which is no failure. Two sweeps of which one
// removes the owners of the other's rows do not belong in one loop: nothing says which goes first.
//
// There is no record of what a pass removed but its reports: log them.
type Loop struct {
	config LoopConfig

	mu    sync.Mutex // held by the pass
	due   time.Time  // when the next pass may begin
	first int        // the sweep that has the first turn
}

// NewLoop checks every setting, also of a loop that is off. The first pass may come one interval from now.
func NewLoop(c LoopConfig) (*Loop, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("the loop: %w", err)
	}
	if c.clock == nil {
		c.clock = realClock
	}
	return &Loop{config: c, due: c.clock.now().Add(c.Interval)}, nil
}

func (c LoopConfig) check() error {
	const defaults = "LoopDefaults has the default of %v"
	switch {
	case c.Sweeps == nil:
		return boundsError("Sweeps", "is nil; it returns what a pass sweeps")
	case c.Interval == 0:
		return boundsError("Interval", "is zero; "+defaults+", and Off switches the loop off", DefaultInterval)
	case c.Interval < 0:
		return boundsError("Interval", "is negative (%s); "+defaults, c.Interval, DefaultInterval)
	case c.Interval > MaxInterval:
		return boundsError("Interval", "is %s; it is at most %s, and Off switches the loop off", c.Interval, MaxInterval)
	case c.Time == 0:
		return boundsError("Time", "is zero; "+defaults+", and Off switches the loop off", DefaultIdleTime)
	case c.Time < 0:
		return boundsError("Time", "is negative (%s); "+defaults, c.Time, DefaultIdleTime)
	case c.Time > MaxInterval:
		return boundsError("Time", "is %s; it is at most %s: a pass without a ceiling would keep the worker from its work", c.Time, MaxInterval)
	case c.Limit == 0:
		return boundsError("Limit", "is zero; "+defaults+", and Off switches the loop off", policy.DefaultLimit)
	case c.Limit < 0 || c.Limit > pruner.MaxLimit:
		return boundsError("Limit", "is %d; a batch's limit is from 1 to %d", c.Limit, pruner.MaxLimit)
	}
	return nil
}

// Idle runs a pass if one may begin, and returns at once if not. It is to be called only when the worker has found no work,
// as often as that is. The caller's goroutine does the work; a Loop may be shared by goroutines, of which one runs the pass.
//
// ran says that a pass ran; reports and err then are as those of [RunAll], the reports without a count of rows without a
// usable age. A pass that fails, or whose sweeps cannot be had, is over, and the next waits for a whole interval like any
// other. ctx cancels the batch in hand; to let it end, close Stop.
func (l *Loop) Idle(ctx context.Context) (reports []SweepReport, ran bool, err error) {
	if l.config.Off || !l.mu.TryLock() {
		return nil, false, nil
	}
	defer l.mu.Unlock()
	now := l.config.clock.now
	switch {
	case ctx.Err() != nil:
		return nil, false, contextError(ctx)
	case closed(l.config.Stop), now().Before(l.due):
		return nil, false, nil
	}
	defer func() { l.due = now().Add(l.config.Interval) }()
	reports, err = l.pass(ctx)
	return reports, true, err
}

func (l *Loop) pass(ctx context.Context) ([]SweepReport, error) {
	given, err := l.config.Sweeps(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the sweeps of the pass: %w", err)
	}
	sweeps := slices.Clone(given)
	for i := range sweeps {
		b := &sweeps[i].Bounds
		b.NoSurvey = true
		def(&b.Limit, policy.DefaultLimit)
		b.Limit = min(b.Limit, l.config.Limit) // a negative one is left for the drain to refuse
	}
	if len(sweeps) == 0 {
		return nil, errors.New("the pass has no sweeps")
	}
	// Turns of about a batch, and the sweep that the last pass did not get to comes first: none starves under the ceiling.
	n, first := len(sweeps), l.first%len(sweeps)
	turned := append(slices.Clone(sweeps[first:]), sweeps[:first]...)
	budget := policy.Budget{Time: l.config.Time, Turn: policy.DefaultTarget}
	reports, err := RunAll(ctx, turned, budget, Options{Stop: l.config.Stop, clock: l.config.clock})
	missed := max(0, slices.IndexFunc(reports, func(r SweepReport) bool { return r.Stop == StopNotReached }))
	l.first = (first + missed) % n
	return append(slices.Clone(reports[n-first:]), reports[:n-first]...), err
}
