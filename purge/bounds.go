package purge

import (
	"fmt"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
)

// NoCeiling lifts the ceiling of Bounds.Duration; so does its zero value.
const NoCeiling = drain.NoCeiling

// DefaultCountTo is how many rows of each table a look counts where Bounds.CountTo is zero.
const DefaultCountTo = 100_000

// Bounds bound one purge. A zero field means its documented default; a negative one is an error, and nothing is touched.
type Bounds struct {
	Limit       int           // rows of a batch at most; zero: policy.DefaultLimit
	BatchTarget time.Duration // the time that batches are adapted to; zero: policy.DefaultTarget
	Duration    time.Duration // no batch starts that cannot end within it, judged by the last ones of its table; zero: no ceiling, for a purge is a promise
	Pause       time.Duration // between batches of a table; zero: none
	LockTimeout time.Duration // see drain.Bounds
	CountTo     int           // rows of each table that a look counts; zero: DefaultCountTo

	Stop    <-chan struct{} // closed: the purge ends after the batch in hand, without a last look
	OnBatch func(Progress)  // called after each batch that was committed

	now func() time.Time // nil: the real clock
}

// Progress is the state of a purge after a batch.
type Progress struct {
	Step    int // from 0
	Pass    int // from 1
	Removed int // from this table, in all passes
	Total   int // from all tables
	Limit   int // of the batch
	Took    time.Duration
}

// BoundsOf are the bounds that a policy gives a purge: its batch, pause and lock timeout.
func BoundsOf(p policy.Purge) Bounds {
	p = p.WithDefaults()
	return Bounds{Limit: p.Batch.Limit, BatchTarget: p.Batch.Target, Pause: p.Pause, LockTimeout: p.Timeouts.Lock}
}

func (b Bounds) withDefaults() (Bounds, error) {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Limit", int64(b.Limit)}, {"BatchTarget", int64(b.BatchTarget)}, {"Duration", int64(b.Duration)},
		{"Pause", int64(b.Pause)}, {"LockTimeout", int64(b.LockTimeout)}, {"CountTo", int64(b.CountTo)},
	} {
		if f.value < 0 {
			return b, fmt.Errorf("%w: %s is negative; zero means its default", drain.ErrBounds, f.name)
		}
	}
	if b.Limit > policy.MaxLimit {
		return b, fmt.Errorf("%w: Limit is %d; a batch's limit is from 1 to %d", drain.ErrBounds, b.Limit, policy.MaxLimit)
	}
	if b.Duration == 0 {
		b.Duration = NoCeiling
	}
	if b.CountTo == 0 {
		b.CountTo = DefaultCountTo
	}
	if b.now == nil {
		b.now = time.Now
	}
	return b, nil
}

// of are the bounds of the drain of one step, for which this much time is left. What a drain takes where its bounds are silent
// is not all right for a purge: it ends at no number of rows.
func (b Bounds) of(left time.Duration, onBatch func(drain.Progress)) drain.Bounds {
	return drain.Bounds{
		Limit: b.Limit, Rows: drain.NoCeiling, Duration: left, Pause: b.Pause, BatchTarget: b.BatchTarget, LockTimeout: b.LockTimeout,
		Stop: b.Stop, OnBatch: onBatch,
	}
}
