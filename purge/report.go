package purge

import (
	"time"

	"github.com/prunectl/prunectl/drain"
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
	// StopFailed: an error that no retry mends, or wrong bounds: Report.Err. What was committed before is counted.
	StopFailed Stop = "failed"
	// StopSignal: Bounds.Stop was closed, or the context ended. A next run goes on.
	StopSignal Stop = "signal"
)

// Report is what a purge did. It is exact also beside an error.
type Report struct {
	Steps   []StepReport  // in their order
	Passes  int           // that were begun, two at most
	Proof   *tenant.Proof // the look at the end; nil where none was made or it failed, whatever an earlier one found
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
	Late    int // rows that the look after the first pass found, as far as it counts: they came meanwhile, or were locked or kept in place

	// Locked, Stuck, Blocked and Err are those of the last time that the table was gone through.
	Locked  int            // somebody held them, or changed them meanwhile
	Stuck   int            // something keeps them in place
	Blocked []pruner.Block // what it is

	Batches        int // that removed something
	SlowestBatch   time.Duration
	UnknownCommits int         // batches whose commit may or may not have happened; their rows are not in Removed
	Left           tenant.Left // by Report.Proof; nothing is said where that is nil
	Err            error       // what ended it, also a lock of the whole table, which does not end the purge
}

// add adds what a drain of the table did.
func (s *StepReport) add(d drain.Report) {
	s.Removed += d.Removed
	s.Batches += d.Batches
	s.SlowestBatch = max(s.SlowestBatch, d.SlowestBatch)
	s.UnknownCommits += d.UnknownCommits
	s.Locked, s.Stuck, s.Blocked, s.Err = d.Locked+d.Moved, d.Stuck, d.Blocked, d.Err
}
