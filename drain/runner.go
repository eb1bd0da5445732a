package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/pruner"
)

// busyPause is between two tries of a batch that found the sweep taken in mid-drain.
const busyPause = 50 * time.Millisecond

// runner drains the arms of one sweep in turns of one batch, so that none starves under a ceiling. It is the one state
// machine behind Run, RunSweep and RunAll: a step is at most one call of a Pruner.
type runner struct {
	name       string
	number, of int
	b          Bounds
	halt       <-chan struct{} // of the run
	onBatch    func(Progress)  // of the run
	pool       *pool

	arms     []*pass
	turn     int       // whose turn it is
	resume   time.Time // no batch before: a pause
	busy     time.Time // when the sweep was first found taken; zero: it is not
	timedOut error     // the last batch that hit its statement timeout

	started   bool
	lap       time.Time // up to when the time is in elapsed
	elapsed   time.Duration
	committed int  // batches
	done      bool // the fields below are set
	stop      Stop
	stopBy    string
	err       error
}

// pool is the budget that the sweeps of a run share.
type pool struct {
	deadline time.Time // zero: none
	rows     int
}

func (p *pool) left(now time.Time) time.Duration {
	if p.deadline.IsZero() {
		return NoCeiling
	}
	return p.deadline.Sub(now)
}

func newRunner(s Sweep) *runner {
	b, err := s.Bounds.withDefaults()
	r := &runner{name: s.Name, number: 1, of: 1, b: b}
	if len(s.Arms) == 0 {
		err = fmt.Errorf("%w: there is no arm", ErrBounds)
	}
	for _, a := range s.Arms {
		if a.Pruner == nil {
			err = fmt.Errorf("%w: arm %q has no pruner", ErrBounds, a.Name)
		}
		r.arms = append(r.arms, newPass(a, b))
	}
	if err != nil {
		r.end(nil, StopRefused, "", err)
	}
	return r
}

// step does one batch of the arm whose turn it is, or ends the sweep.
func (r *runner) step(ctx context.Context) {
	a := r.arms[r.turn]
	start := r.b.clock.now()
	r.started, r.lap = true, start
	defer r.clockUp(a)
	if r.signalled(ctx) {
		r.end(a, StopSignal, "", contextError(ctx))
		return
	}
	limit, mode := a.next()
	switch rows := r.rows(); {
	case r.batches() >= r.b.Batches:
		r.end(a, StopCeiling, ByBatches, nil)
		return
	case rows >= r.b.Rows:
		r.end(a, StopCeiling, ByRows, nil)
		return
	case r.pool != nil && r.pool.rows <= 0:
		r.end(a, StopBudget, ByRows, nil)
		return
	default:
		limit = min(limit, r.b.Rows-rows)
		if r.pool != nil {
			limit = min(limit, r.pool.rows)
		}
	}
	pause := max(0, r.resume.Sub(start))
	left, stop := r.left(start)
	if left <= 0 || pause+a.pace.foretell(limit) > left {
		r.outOfTime(a, stop)
		return
	}
	if pause > 0 {
		r.b.clock.wait(ctx, pause, r.b.Stop, r.halt)
		if r.signalled(ctx) {
			r.end(a, StopSignal, "", contextError(ctx))
			return
		}
	}
	batch := pruner.Batch{Cutoff: a.Cutoff, Limit: limit, After: a.at, Mode: mode}
	if a.began && left < NoCeiling {
		// The batch in hand may finish. Until one has, the Pruner's own timeout holds: a ceiling of time below the time of
		// one batch would else roll each of them back, night after night.
		batch.Timeout = max(left-pause, 2*a.pace.foretell(limit), r.b.BatchTarget)
	}
	called := r.b.clock.now()
	res, err := a.Pruner.Prune(ctx, batch)
	took := r.b.clock.now().Sub(called)

	a.count(res, took)
	if r.pool != nil {
		r.pool.rows -= res.Removed + res.Children
	}
	switch {
	case err != nil:
		r.batchFailed(ctx, a, limit, took, err)
	case res.Busy:
		r.isBusy(a)
	default:
		r.batchEnded(a, limit, res, took)
	}
}

func (r *runner) batchEnded(a *pass, limit int, res pruner.Result, took time.Duration) {
	r.committed++
	r.clockUp(a)
	r.busy = time.Time{}
	r.resume = r.b.clock.now().Add(r.b.Pause)
	err := checkResult(res, limit)
	if err == nil {
		err = a.ended(limit, res, took)
	}
	r.progress(a, limit, res, took)
	if err != nil {
		r.end(a, StopFailed, "", err)
		return
	}
	r.nextArm()
}

// nextArm gives the turn to the next arm that is not done, or ends the sweep.
func (r *runner) nextArm() {
	for range r.arms {
		r.turn = (r.turn + 1) % len(r.arms)
		if !r.arms[r.turn].done {
			return
		}
	}
	stop := StopDrained
	for _, a := range r.arms {
		switch a.report.Stop {
		case StopStuck:
			stop = StopStuck
		case StopLocked:
			if stop == StopDrained {
				stop = StopLocked
			}
		}
	}
	r.end(nil, stop, "", nil)
}

func (r *runner) batchFailed(ctx context.Context, a *pass, limit int, took time.Duration, err error) {
	var (
		unknown *pruner.UnknownCommitError
		timeout *pruner.TimeoutError
		lock    *pruner.LockTimeoutError
		refused *pruner.RefusedError
	)
	switch {
	case errors.As(err, &unknown):
		a.report.UnknownCommits++
		r.end(a, StopFailed, "", err)
	case ctx.Err() != nil:
		r.end(a, StopSignal, "", contextError(ctx))
	case errors.As(err, &timeout):
		r.timedOut = err
		if !a.pace.timedOut(limit, took, timeout.After) {
			r.end(a, StopFailed, "", fmt.Errorf("a batch of one row: %w", err))
		}
	case errors.As(err, &lock):
		if !a.isLocked(limit, lock) {
			r.end(a, StopLocked, "", err)
		}
	case errors.As(err, &refused):
		if err := a.isRefused(limit, refused); err != nil {
			r.end(a, StopFailed, "", err)
		}
	default:
		r.end(a, StopFailed, "", err)
	}
}

// isBusy gives way to the other sweeper at once where nothing was begun, and after the lock timeout in mid-drain: what is
// left is theirs.
func (r *runner) isBusy(a *pass) {
	now := r.b.clock.now()
	switch {
	case r.committed == 0:
		r.end(a, StopBusy, "", nil)
		return
	case r.busy.IsZero():
		r.busy = now
	case now.Sub(r.busy) >= r.b.LockTimeout:
		r.end(a, StopBusy, "", nil)
		return
	}
	r.resume = now.Add(busyPause)
}

// clockUp adds the time since the last lap to the sweep and the arm that had the turn.
func (r *runner) clockUp(a *pass) {
	now := r.b.clock.now()
	d := now.Sub(r.lap)
	r.lap = now
	r.elapsed += d
	a.report.Elapsed += d
}

func (r *runner) signalled(ctx context.Context) bool {
	return ctx.Err() != nil || closed(r.b.Stop) || closed(r.halt)
}

// contextError is why the context ended, nil if it did not: its Err, so that a caller can ask for context.Canceled, and its
// cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default: // a nil channel is never closed
		return false
	}
}

// left is the time until the sweep's ceiling or the budget's, and which of them is the nearer; NoCeiling: there is neither.
func (r *runner) left(now time.Time) (time.Duration, Stop) {
	left, stop := time.Duration(NoCeiling), StopCeiling
	if r.b.Duration < NoCeiling {
		left = r.b.Duration - r.elapsed
	}
	if r.pool != nil && r.pool.left(now) < left {
		left, stop = r.pool.left(now), StopBudget
	}
	return left, stop
}

// outOfTime ends the sweep, as failed where no batch at all fitted into its timeout: it would be the same the next time.
func (r *runner) outOfTime(a *pass, stop Stop) {
	if r.committed == 0 && r.timedOut != nil {
		r.end(a, StopFailed, ByTime, fmt.Errorf("no batch ended in the time given: %w", r.timedOut))
		return
	}
	r.end(a, stop, ByTime, nil)
}

// end ends the sweep. a is the arm that ended it; nil: all have come to their end.
func (r *runner) end(a *pass, stop Stop, by string, err error) {
	r.done, r.stop, r.stopBy, r.err = true, stop, by, err
	for _, o := range r.arms {
		if o.done {
			continue
		}
		o.done = true
		own := false // the reason to stop is this arm's too
		switch stop {
		case StopRefused:
			own = true
		case StopCeiling, StopBudget, StopSignal:
			own = o.began || len(r.arms) == 1
		default:
			own = o == a
		}
		if !own {
			o.report.Stop = StopNotReached
			continue
		}
		o.report.Stop, o.report.StopBy, o.report.Err = stop, by, err
	}
}

func (r *runner) rows() (n int) {
	for _, a := range r.arms {
		n += a.report.Removed + a.report.Children
	}
	return n
}

func (r *runner) batches() (n int) {
	for _, a := range r.arms {
		n += a.report.Batches
	}
	return n
}

// progress tells who wants to know of a batch.
func (r *runner) progress(a *pass, limit int, res pruner.Result, took time.Duration) {
	if r.b.OnBatch == nil && r.onBatch == nil {
		return
	}
	left, _ := r.left(r.b.clock.now())
	p := Progress{Sweep: r.name, Arm: a.Name, Number: r.number, Of: r.of, Total: r.report().Report, Batch: res, Limit: limit,
		Next: a.pace.limit, Took: took, Left: max(0, left)}
	for _, f := range []func(Progress){r.b.OnBatch, r.onBatch} {
		if f != nil {
			f(p)
		}
	}
}

func (r *runner) report() SweepReport {
	var s SweepReport
	s.Name, s.CountsHeld = r.name, true
	if len(r.arms) > 0 {
		s.Undated, s.Unusable = new(int), new(int)
	}
	for _, a := range r.arms {
		rep := a.snapshot()
		s.Arms = append(s.Arms, rep)
		s.addReport(rep)
	}
	s.Stop, s.StopBy, s.Err = r.stop, r.stopBy, r.err
	return s
}

// surveyMax bounds what is read to count the rows without a usable age.
const surveyMax = 100_000

// survey counts, once a drain and where it ended in peace, the rows without a usable age.
func (r *runner) survey(ctx context.Context) {
	switch {
	case r.b.NoSurvey, ctx.Err() != nil, r.stop == StopLocked && r.err != nil:
		return
	}
	switch r.stop {
	case StopDrained, StopCeiling, StopBudget, StopLocked, StopStuck:
	default:
		return
	}
	for _, a := range r.arms {
		if s, ok := a.Pruner.(pruner.Surveyor); ok {
			// What could not be counted is unknown in the report, which says as much as the error would: the rows that
			// had to go are gone.
			if n, err := s.Undated(ctx, surveyMax); err == nil {
				a.report.Undated = n
			}
		}
	}
}
