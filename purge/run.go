package purge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// ErrContract is wrapped by the error of a Remover that breaks the contract of [tenant.Remover] in a way that a purge can
// see: it has no step, or a look says nothing of some, or [drain.ErrContract]. It is a fault of the Remover.
var ErrContract = drain.ErrContract

// Run removes the rows of the tenant, step by step, and looks at the end. Where the look finds rows there is a second pass
// and a last look. A step whose rows refer to each other is repeated while rows go and others are left that were kept.
//
// A step that meets rows which are locked or kept in place does not end the purge: the others go. One that fails does, also by
// a commit whose outcome is unknown, and so do another purge of the same tenant, the ceiling of time and a signal. After all
// of these but a signal there is a look, which says what is left.
//
// The error is Report.Err where the purge failed, was refused for its bounds, or the context ended, and nil otherwise: that
// rows are left is no error but Report.Stop. The Report is exact beside an error too. ctx cancels the batch in hand, which
// then counts as not done; to let it end, close Bounds.Stop.
func Run(ctx context.Context, r tenant.Remover, b Bounds) (Report, error) {
	p := &run{remover: r, steps: r.Steps()}
	for _, s := range p.steps {
		p.report.Steps = append(p.report.Steps, StepReport{Spec: s.Spec()})
	}
	var err error
	if p.b, err = b.withDefaults(); err == nil && len(p.steps) == 0 {
		err = fmt.Errorf("%w: there is no table to remove from", ErrContract)
	}
	if err != nil {
		p.report.Stop, p.report.Err = StopFailed, err
		return p.report, err
	}
	p.began = p.b.now()
	p.passes(ctx)
	if p.report.Proof != nil {
		for i, l := range p.report.Proof.Left {
			p.report.Steps[i].Left = l
		}
	}
	p.report.Elapsed = p.b.now().Sub(p.began)
	return p.report, p.report.Err
}

// run is a purge on its way.
type run struct {
	remover tenant.Remover
	steps   []tenant.Step
	b       Bounds
	began   time.Time
	report  Report
}

// passes are two at most: what the look after the second finds is said, and not run after.
func (p *run) passes(ctx context.Context) {
	for p.report.Passes = 1; ; p.report.Passes++ {
		p.report.Proof = nil // it was of rows that this pass removes
		for i := range p.steps {
			if !p.drain(ctx, i) {
				if !p.signalled(ctx) {
					p.report.Proof, _ = p.look(ctx) // why the purge ended is said already
				}
				return
			}
		}
		if p.signalled(ctx) {
			p.end(StopSignal, contextError(ctx))
			return
		}
		proof, err := p.look(ctx)
		p.report.Proof = proof
		switch {
		case err != nil && ctx.Err() != nil:
			p.end(StopSignal, contextError(ctx))
			return
		case err != nil:
			p.end(StopFailed, err)
			return
		case proof.Empty():
			p.end(StopPurged, nil)
			return
		case p.report.Passes == 2:
			p.end(StopLeft, nil)
			return
		}
		for i, l := range proof.Left {
			p.report.Steps[i].Late = l.Rows
		}
	}
}

// drain takes one step, and reports whether the purge goes on.
func (p *run) drain(ctx context.Context, i int) bool {
	s := &p.report.Steps[i]
	for {
		left := p.left()
		if left <= 0 {
			p.end(StopCeiling, nil)
			return false
		}
		rep, err := drain.Run(ctx, batches{p.steps[i]}, anyCutoff, p.b.of(left, p.onBatch(i)))
		s.add(rep)
		switch rep.Stop {
		case drain.StopDrained, drain.StopLocked, drain.StopStuck:
			if s.Self != "" && rep.Removed > 0 && rep.Stuck > 0 {
				continue // what kept them in place may be gone
			}
			return true
		case drain.StopBusy:
			p.end(StopBusy, nil)
		case drain.StopCeiling:
			p.end(StopCeiling, nil)
		case drain.StopSignal:
			p.end(StopSignal, err)
		default:
			p.end(StopFailed, fmt.Errorf("%s: %w", s.Table, err))
		}
		return false
	}
}

// look counts what is left. Where it cannot, the proof is nil.
func (p *run) look(ctx context.Context) (*tenant.Proof, error) {
	proof, err := p.remover.Look(ctx, p.b.CountTo)
	if err == nil && len(proof.Left) != len(p.steps) {
		err = fmt.Errorf("%w: the look says of %d tables what is left, of %d", ErrContract, len(proof.Left), len(p.steps))
	}
	if err != nil {
		return nil, err
	}
	return &proof, nil
}

func (p *run) end(s Stop, err error) { p.report.Stop, p.report.Err = s, err }

// left is the time until the ceiling.
func (p *run) left() time.Duration {
	if p.b.Duration >= NoCeiling {
		return NoCeiling
	}
	return p.b.Duration - p.b.now().Sub(p.began)
}

func (p *run) signalled(ctx context.Context) bool {
	select {
	case <-p.b.Stop: // a nil channel is never closed
		return true
	default:
		return ctx.Err() != nil
	}
}

// onBatch tells who wants to know of a batch of a step. What the drain in hand has removed is not in the report yet.
func (p *run) onBatch(i int) func(drain.Progress) {
	if p.b.OnBatch == nil {
		return nil
	}
	step, total := p.report.Steps[i].Removed, p.report.Removed()
	return func(d drain.Progress) {
		p.b.OnBatch(Progress{Step: i, Pass: p.report.Passes, Removed: step + d.Total.Removed, Total: total + d.Total.Removed, Limit: d.Limit, Took: d.Took})
	}
}

// batches is a step as that which a drain drives.
type batches struct{ step tenant.Step }

// anyCutoff is there because a drain needs one: a row of a tenant goes whatever its age.
var anyCutoff = policy.MustWindow(policy.MinWindow).Cutoff(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))

func (s batches) Prune(ctx context.Context, b pruner.Batch) (pruner.Result, error) {
	return s.step.Remove(ctx, tenant.Batch{Limit: b.Limit, After: b.After, Timeout: b.Timeout, Mode: b.Mode})
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
