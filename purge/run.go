package purge

import (
	"context"
	"errors"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// NoCeiling lifts the ceiling of Bounds.Duration; so does its zero value.
const NoCeiling = drain.NoCeiling

// Bounds bound one purge. A zero field means its documented default; a negative one is an error, and nothing is touched.
type Bounds struct {
	Limit       int           // rows of a batch at most; zero: policy.DefaultLimit
	BatchTarget time.Duration // the time that batches are adapted to; zero: policy.DefaultTarget
	Duration    time.Duration // no batch starts that cannot end within it; zero: no ceiling, for a purge is a promise
	Pause       time.Duration // between batches; zero: none
	LockTimeout time.Duration // see drain.Bounds
	CountTo     int           // rows of each table that a look counts; zero: 100,000

	Stop    <-chan struct{} // closed: the purge ends after the batch in hand, without a last look
	OnBatch func(Progress)  // called after each batch that was committed
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

// Run removes the rows of the tenant, step by step, and looks at the end. Where the look finds rows there is a second pass
// and a last look. The report is valid beside an error, which is Report.Err.
func Run(ctx context.Context, r tenant.Remover, b Bounds) (Report, error) {
	return Report{}, errors.New("not written")
}
