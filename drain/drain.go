package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Sweep is a sweep to be drained: its arms share the bounds, and take turns of one batch each.
type Sweep struct {
	Name   string
	Arms   []Arm
	Bounds Bounds
}

// Run drains one arm.
//
// The error is Report.Err where the drain failed, was refused for its bounds, or the context ended, and nil otherwise: that
// due rows are left behind (a ceiling, stuck or locked rows, another sweeper) is no error but Report.Stop. The Report is
// exact beside an error too. ctx cancels the batch in hand, which then counts as not done; to let it end, close Bounds.Stop.
func Run(ctx context.Context, p pruner.Pruner, c policy.Cutoff, b Bounds) (Report, error) {
	s, err := RunSweep(ctx, Sweep{Arms: []Arm{{Pruner: p, Cutoff: c, CountsHeld: true}}, Bounds: b})
	return s.Report, err
}

// RunSweep drains the arms of one sweep under shared bounds. Errors are as with [Run]; an arm that fails ends the sweep.
func RunSweep(ctx context.Context, s Sweep) (SweepReport, error) {
	r := newRunner(s)
	for !r.done {
		r.step(ctx)
	}
	r.survey(ctx)
	return r.report(), r.returned()
}

// returned is the error that goes back to the caller beside the report.
func (r *runner) returned() error {
	switch r.stop {
	case StopFailed, StopRefused, StopSignal:
		return r.err
	}
	return nil
}

// Options are those of a run of several sweeps. The zero Options are of use.
type Options struct {
	Stop     <-chan struct{}   // closed: the run ends after the batch in hand
	OnBatch  func(Progress)    // called after each batch that was committed, beside the sweep's own
	OnStart  func(name string) // called before the first batch of a sweep
	OnEnd    func(SweepReport) // called once for each sweep, also for one that had no turn
	FailFast bool              // a sweep that fails ends the run; else it never stops the others

	clock *clock
}

// RunAll drains sweeps in fair turns under one budget: each gets one batch, in the order given, before any gets a second
// turn; then turns of budget.Turn. A sweep that is done leaves the ring.
//
// The reports are in the order of the sweeps. The error joins the errors of the sweeps, each with the sweep's name, as with
// [Run]; a negative budget is an error, and nothing is touched.
func RunAll(ctx context.Context, sweeps []Sweep, budget policy.Budget, o Options) ([]SweepReport, error) {
	if budget.Time < 0 || budget.Rows < 0 || budget.Turn < 0 {
		return nil, boundsError("the budget", "is negative; zero means its default, drain.NoCeiling no ceiling")
	}
	budget = budget.WithDefaults()
	if o.clock == nil {
		o.clock = realClock
	}
	all := &run{o: o, budget: budget, pool: &pool{rows: budget.Rows}}
	if budget.Time < NoCeiling {
		all.pool.deadline = o.clock.now().Add(budget.Time)
	}
	for i, s := range sweeps {
		s.Bounds.clock = o.clock
		r := newRunner(s)
		r.number, r.of, r.halt, r.onBatch, r.pool = i+1, len(sweeps), o.Stop, o.OnBatch, all.pool
		all.ring = append(all.ring, r)
	}
	ring := all.ring
	for first := true; len(ring) > 0; first = false {
		var still []*runner
		for _, r := range ring {
			if all.turn(ctx, r, first); !r.done {
				still = append(still, r)
			}
		}
		ring = still
	}
	var reports []SweepReport
	var errs []error
	for _, r := range all.ring {
		reports = append(reports, r.report())
		if err := r.returned(); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", r.name, err))
		}
	}
	return reports, errors.Join(errs...)
}

// run is a run of several sweeps on its way.
type run struct {
	o      Options
	budget policy.Budget
	pool   *pool
	ring   []*runner
	failed bool
}

// turn lets one sweep work until its turn is over; in the first round, until it has ended one batch.
func (all *run) turn(ctx context.Context, r *runner, first bool) {
	switch {
	case r.done: // refused
	case all.failed && all.o.FailFast:
		r.end(nil, StopNotReached, "", nil)
	case !r.started && (r.signalled(ctx) || all.pool.rows <= 0 || all.pool.left(all.o.clock.now()) <= 0):
		r.end(nil, StopNotReached, "", nil)
	default:
		if !r.started && all.o.OnStart != nil {
			all.o.OnStart(r.name)
		}
		before, since := r.committed, r.elapsed
		for worked := time.Duration(0); !r.done && worked < all.budget.Turn && !(first && r.committed > before); {
			r.step(ctx)
			worked = r.elapsed - since
		}
	}
	if r.done {
		r.survey(ctx)
		all.failed = all.failed || r.report().Failed()
		if all.o.OnEnd != nil {
			all.o.OnEnd(r.report())
		}
	}
}
