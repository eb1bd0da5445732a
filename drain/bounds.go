package drain

import (
	"context"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// NoCeiling lifts a ceiling of Bounds or of a budget.
const NoCeiling = policy.NoCeiling

// Bounds bound one drain. A zero field means its documented default; a negative one is an error, and nothing is touched.
// Ceilings are exact: the last batch is cut to the rows that are left. Only a row with children passes one: it goes whole
// where it and they fit in the policy's batch limit, so that a ceiling of rows can be passed by the children of one row.
// [NoCeiling] lifts one.
type Bounds struct {
	Limit    int           // rows of a batch at most, see pruner.Batch; zero: policy.DefaultLimit
	Batches  int           // batches that remove something, children too; zero: no ceiling
	Rows     int           // rows removed, children too; zero: policy.DefaultRows
	Duration time.Duration // no batch starts that cannot end within it, judged by the last ones; zero: policy.DefaultTime
	Pause    time.Duration // between batches; zero: none

	BatchTarget time.Duration // the time that batches are adapted to; zero: policy.DefaultTarget
	// LockTimeout is how long a batch is tried again that finds the sweep taken by another sweeper in mid-drain; zero:
	// policy.DefaultLockTimeout.
	LockTimeout time.Duration

	NoSurvey bool            // leave out the count of rows without a usable age at the end: for passes that come often
	Stop     <-chan struct{} // closed: the drain ends after the batch in hand
	OnBatch  func(Progress)  // called after each batch that was committed

	clock *clock // nil: the real one
}

// Progress is the state of a drain after a batch.
type Progress struct {
	Sweep  string // "" under Run
	Arm    string // "" under Run
	Number int    // of the sweep in the run, from 1
	Of     int    // sweeps in the run

	Total Report        // the sweep so far; its Stop is ""
	Batch pruner.Result // what the batch did
	Limit int           // of the batch
	Next  int           // the limit of the arm's next batch, before it is cut to a ceiling
	Took  time.Duration // the batch
	Left  time.Duration // until the sweep's ceiling of time or the budget's, whichever comes first; NoCeiling: neither
}

func (b Bounds) withDefaults() (Bounds, error) {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Limit", int64(b.Limit)}, {"Batches", int64(b.Batches)}, {"Rows", int64(b.Rows)}, {"Duration", int64(b.Duration)},
		{"Pause", int64(b.Pause)}, {"BatchTarget", int64(b.BatchTarget)}, {"LockTimeout", int64(b.LockTimeout)},
	} {
		if f.value < 0 {
			return b, boundsError(f.name, "is negative; zero means its default, drain.NoCeiling no ceiling")
		}
	}
	if b.Limit > pruner.MaxLimit {
		return b, boundsError("Limit", "is %d; a batch's limit is from 1 to %d", b.Limit, pruner.MaxLimit)
	}
	def(&b.Limit, policy.DefaultLimit)
	def(&b.Batches, NoCeiling)
	def(&b.Rows, policy.DefaultRows)
	def(&b.Duration, policy.DefaultTime)
	def(&b.BatchTarget, policy.DefaultTarget)
	def(&b.LockTimeout, policy.DefaultLockTimeout)
	if b.clock == nil {
		b.clock = realClock
	}
	return b, nil
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// clock is the time as a drain sees it, so that a test needs none.
type clock struct {
	now func() time.Time
	// wait returns after d, or as soon as the context ends or one of the channels is closed.
	wait func(ctx context.Context, d time.Duration, stops ...<-chan struct{})
}

var realClock = &clock{now: time.Now, wait: func(ctx context.Context, d time.Duration, stops ...<-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	var one, two <-chan struct{} // a nil channel is never ready
	if len(stops) > 0 {
		one = stops[0]
	}
	if len(stops) > 1 {
		two = stops[1]
	}
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-one:
	case <-two:
	}
}}
