package tenant

import (
	"context"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// A Remover removes the rows of one tenant. It may be used by one goroutine at a time.
type Remover interface {
	// Steps are in the order in which they are to be taken: rows that refer to others go before those.
	Steps() []Step
	// Look counts what is left of the tenant, up to bound rows of each step, in one snapshot of all tables.
	Look(ctx context.Context, bound int) (Proof, error)
}

// A Step removes the rows of one tenant from one table.
//
// Remove is one batch: one transaction, durable when it returns, that examines at most b.Limit rows of the tenant from
// b.After on and removes those that nobody has locked and no row refers to. Locked ones are counted as Locked, those that
// something keeps in place as Stuck, with its name in Blocked. Result.Next and Result.End are those of a pass, as in
// [pruner.Pruner]; so are what is valid beside an error, and the errors that a caller can act on. A child is a step of its
// own, so Result.Children is 0. Busy says that another purge of the same tenant is under way.
type Step interface {
	Spec() Spec
	Remove(ctx context.Context, b Batch) (pruner.Result, error)
}

// Spec says what a step removes from.
type Spec struct {
	Table  policy.Name
	Column string        // the column that says whose a row is; "" for a child
	Of     []policy.Name // for a child: the tables by which its rows are the tenant's, the nearest first
	Self   string        // the foreign key by which rows of the table refer to each other, "" for none: leaves go first, so it takes several passes
}

// Batch is what one call of Remove is to do.
type Batch struct {
	Limit   int           // rows examined at most, 1 to pruner.MaxLimit
	After   pruner.Cursor // Result.Next of the batch before; zero: from the beginning
	Timeout time.Duration // the longest that a statement of the batch may run, if shorter than the step's own; 0: the step's own
	Mode    pruner.Mode   // StepStuck and StepLocked count what they would remove; the others are one and the same here
}

// Proof is what a look found.
type Proof struct {
	At   time.Time // the server's clock, when the snapshot was taken
	Left []Left    // one a step, in their order
	// Writers are sessions that had written to one of the tables in a transaction that was still open: what they commit
	// later is in no snapshot before it.
	Writers []Writer
}

// Empty reports whether nothing was left.
func (p Proof) Empty() bool { return p.Rows() == 0 }

// Rows is how many rows were left; a floor where one of them is.
func (p Proof) Rows() int {
	n := 0
	for _, l := range p.Left {
		n += l.Rows
	}
	return n
}

// Left is how many rows of the tenant a table still had.
type Left struct {
	Rows int
	More bool // at least so many: counting ended there
}

// Writer is a session with an open transaction that has written to one of the tables.
type Writer struct {
	PID   int
	App   string // application_name
	Table policy.Name
}

// Error says that what was given names no tenant. Nothing was touched.
type Error struct{ What string } // what is wrong, and what to write

func (e *Error) Error() string { return e.What }
