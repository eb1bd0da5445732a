package drain

import (
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// BoundsOf are the bounds that a policy gives a sweep: its batch, ceilings, pause and lock timeout.
func BoundsOf(s policy.Sweep) Bounds {
	s = s.WithDefaults()
	return Bounds{
		Limit: s.Batch.Limit, Batches: s.Ceiling.Batches, Rows: s.Ceiling.Rows, Duration: s.Ceiling.Time,
		Pause: s.Pause, BatchTarget: s.Batch.Target, LockTimeout: s.Timeouts.Lock,
	}
}

// SweepOf is the drain of a sweep: its arms with their cutoffs at now, under the bounds that the policy gives. now should
// be the server's clock.
func SweepOf[A interface {
	pruner.Pruner
	Spec() policy.Arm
}](s policy.Sweep, arms []A, now time.Time) Sweep {
	d := Sweep{Name: s.Name, Bounds: BoundsOf(s)}
	for _, a := range arms {
		spec := a.Spec()
		d.Arms = append(d.Arms, Arm{Name: spec.Name, Pruner: a, Cutoff: spec.Window.Cutoff(now), CountsHeld: spec.CountsHeld()})
	}
	return d
}
