package purge

import (
	"time"

	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// Stop says what ended a purge. The words are those of the report.
type Stop string

const (
	// StopPurged: the last look found nothing of the tenant.
	StopPurged Stop = "purged"
	// StopLeft: the last look found rows: locked, kept in place, or come meanwhile. Each step says which.
	StopLeft Stop = "left"
	// StopBusy: another purge of the same tenant is under way.
	StopBusy Stop = "busy"
	// StopCeiling: Bounds.Duration is over. A next run goes on.
	StopCeiling Stop = "ceiling"
	// StopFailed: an error that no retry mends, Report.Err. What was committed before is counted.
	StopFailed Stop = "failed"
	// StopSignal: Bounds.Stop was closed, or the context ended. A next run goes on.
	StopSignal Stop = "signal"
)

// Report is what a purge did. It is exact also beside an error.
type Report struct {
	Steps   []StepReport // in their order
	Passes  int
	Proof   *tenant.Proof // the last look; nil where none was made or it failed
	Stop    Stop
	Elapsed time.Duration
	Err     error
}

// Removed is how many rows were removed and committed.
func (r Report) Removed() int {
	n := 0
	for _, s := range r.Steps {
		n += s.Removed
	}
	return n
}

// Late is how many rows the look after the first pass found.
func (r Report) Late() int {
	n := 0
	for _, s := range r.Steps {
		n += s.Late
	}
	return n
}

// Proved reports whether the last look found nothing.
func (r Report) Proved() bool { return r.Stop == StopPurged }

// StepReport is what became of one table.
type StepReport struct {
	tenant.Spec
	Removed int // in all passes
	Late    int // rows that the look after the first pass found: they came meanwhile, or were locked or kept in place in it

	// Locked, Stuck and Blocked are those of the last pass.
	Locked  int
	Stuck   int
	Blocked []pruner.Block

	Batches        int // that removed something
	SlowestBatch   time.Duration
	UnknownCommits int         // batches whose commit may or may not have happened; their rows are not in Removed
	Left           tenant.Left // by Report.Proof; nothing is said where that is nil
	Err            error
}
