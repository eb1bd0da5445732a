package drain

import (
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Report is what a drain did and why it ended. It is exact also beside an error.
//
// Examined, Removed, Children, Batches and Vain are summed over the passes. Held, Locked, Moved, Orphan, Stuck, Outside,
// Unusable, Raised and Blocked are the tallies of one pass: the last whole one, or the one in hand where none came to its
// end.
//
// A ceiling or a budget of rows counts Removed and Children together. They pass it by less than the batch limit of the
// policy where the last row had many children, for a row goes whole.
type Report struct {
	Name string // the arm's or the sweep's; "" under Run

	Examined int // looks, not rows: a second pass looks again
	Removed  int // removed and committed
	Children int // rows of other tables, removed with them or ahead of them
	Held     int // past their window, protected by the guard; says nothing unless CountsHeld
	Locked   int // due, but somebody held the row or its owner
	Moved    int // due, but changed or removed by somebody else
	Orphan   int // past their window, and their owner does not exist
	Stuck    int // due, but the database refuses to delete them
	Outside  int // not matched by `only`

	// CountsHeld says that the drain examined rows that the guard protects. Through a state-led index it sees none, so that
	// how many are held is unknown. Always true under Run.
	CountsHeld bool
	// Undated counts the rows without a usable age; nil where it was not counted: there are more than 100,000, no index
	// serves, the Pruner is no Surveyor, or the drain did not end in peace.
	Undated *int
	// Unusable counts the examined rows that are kept because their own window is nonsense; nil only where there is no arm.
	// Raised counts those whose own window was raised to the floor; they are in another count too.
	Unusable *int
	Raised   int

	Batches int // that removed something, children too
	Vain    int // rows examined and not removed
	// SlowestBatch is the longest call of the Pruner, Elapsed the time the drain worked, its pauses included.
	SlowestBatch, Elapsed time.Duration
	Cutoff                policy.Cutoff // of the arm; of a sweep the latest among its arms

	Stop    Stop
	StopBy  string         // rows, batches or time, where Stop is ceiling or budget
	Blocked []pruner.Block // what keeps the stuck rows in place
	// UnknownCommits counts batches whose commit may or may not have happened. Their rows are not in Removed.
	UnknownCommits int
	Err            error // why it failed, was refused or signalled; or which lock ended it
}

// Drained reports whether nothing due was left behind.
func (r Report) Drained() bool { return r.Stop == StopDrained }

// Failed reports whether somebody has to look: the drain failed or was refused, a commit is unknown, or rows are stuck,
// whatever ended it.
func (r Report) Failed() bool {
	return r.Stop == StopFailed || r.Stop == StopRefused || r.Stuck > 0 || r.UnknownCommits > 0
}

// SweepReport is the report of a sweep: the sums, and the report of each arm.
type SweepReport struct {
	Report
	Arms []Report
}

// tally is what one pass left in place.
type tally struct {
	held, locked, moved, orphan, stuck, outside, unusable, raised int
	blocked                                                       []pruner.Block
}

func (t *tally) add(res pruner.Result) {
	t.held += res.Held
	t.locked += res.Locked
	t.moved += res.Moved
	t.orphan += res.Orphan
	t.stuck += res.Stuck
	t.outside += res.Outside
	t.unusable += res.Unusable
	t.raised += res.Raised
	t.blocked = addBlocks(t.blocked, res.Blocked)
}

func (r *Report) setTally(t tally) {
	r.Held, r.Locked, r.Moved, r.Orphan, r.Stuck, r.Outside = t.held, t.locked, t.moved, t.orphan, t.stuck, t.outside
	r.Unusable, r.Raised, r.Blocked = &t.unusable, t.raised, t.blocked
}

// addBlocks adds up the rows of each constraint. It never writes to what a caller may hold.
func addBlocks(to, more []pruner.Block) []pruner.Block {
	if len(more) == 0 {
		return to
	}
	to = slices.Clone(to)
	for _, b := range more {
		i := slices.IndexFunc(to, func(o pruner.Block) bool { return o.Constraint == b.Constraint && o.Table == b.Table })
		if i < 0 {
			to = append(to, b)
		} else {
			to[i].Rows += b.Rows
		}
	}
	return to
}

// addReport adds an arm to the sums of its sweep.
func (r *Report) addReport(a Report) {
	r.Examined += a.Examined
	r.Removed += a.Removed
	r.Children += a.Children
	r.Held += a.Held
	r.Locked += a.Locked
	r.Moved += a.Moved
	r.Orphan += a.Orphan
	r.Stuck += a.Stuck
	r.Outside += a.Outside
	r.CountsHeld = r.CountsHeld && a.CountsHeld
	r.Undated = addCount(r.Undated, a.Undated)
	r.Unusable = addCount(r.Unusable, a.Unusable)
	r.Raised += a.Raised
	r.Batches += a.Batches
	r.Vain += a.Vain
	r.SlowestBatch = max(r.SlowestBatch, a.SlowestBatch)
	r.Elapsed += a.Elapsed
	if a.Cutoff.Time().After(r.Cutoff.Time()) {
		r.Cutoff = a.Cutoff
	}
	r.Blocked = addBlocks(r.Blocked, a.Blocked)
	r.UnknownCommits += a.UnknownCommits
}

// addCount adds what is known; a sum with an unknown part is unknown.
func addCount(a, b *int) *int {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
}
