package pruner

import (
	"context"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// MaxLimit is the largest limit of a batch.
const MaxLimit = policy.MaxLimit

// A Pruner removes the due rows of one arm: one window, one cursor.
//
// Prune is one batch: one transaction that examines at most b.Limit rows in the order of their age, from b.After on, and
// removes those among them that are due: strictly before the cutoff (an arm may keep rows of some states longer than
// that) and let go by the guard. It removes nothing that it did not examine. A row that changes state, owner or age while
// the batch is on its way is judged by what it has become.
//
// Where other rows go with a row, its children, they are removed before it in the same transaction, and a batch removes no
// more than b.Limit rows and children together, with two exceptions. A row goes whole, although b.Limit is lower, where it
// and its children fit in the limit of the policy: no ceiling and no search for a row that cannot go tears it apart. A row
// with more of them loses them b.Limit at a time, in batches that examine nothing and that return where they are, and is
// examined and removed with the last of them or after them; if it is reopened meanwhile it stays, with the children that are
// left.
//
// Result.Next is where the next batch of the same pass goes on, and Result.End says that the batch reached the cutoff.
// Only End ends a pass: a batch may well remove less than its limit, or nothing, while more is due behind it. A pass over
// rows that nobody else changes ends after finitely many batches at any limit, and examines no row twice: unless it removed
// rows, a batch that is not the last returns a Next that no earlier batch of its pass returned.
//
// A limit below 1 or above MaxLimit is answered with ErrLimit, and a zero cutoff with End, without touching the database.
//
// Beside an error the Result is valid: it counts what was committed, which is nothing unless the error says otherwise, and
// its Next and End mean nothing. The errors that a caller can act on are in errors.go; after any other the batch was
// rolled back and repeating it is not expected to help.
//
// A Pruner may be used by one goroutine at a time. Several Pruners over one table, here or in other processes, do no harm
// to each other: no row is removed, or counted as removed, twice.
type Pruner interface {
	Prune(ctx context.Context, b Batch) (Result, error)
}

// Batch is what one call of Prune is to do.
type Batch struct {
	Cutoff  policy.Cutoff
	Limit   int           // rows examined at most, 1 to MaxLimit; children are counted in it, see Pruner
	After   Cursor        // Result.Next of the batch before; zero: from the oldest row
	Timeout time.Duration // the longest that the batch's statement may run, if shorter than the Pruner's own; 0: the Pruner's own
	Mode    Mode
}

// Mode says what a batch does with due rows. The zero Mode removes them.
type Mode int

const (
	// Remove removes due rows and waits for those that somebody else has locked, up to the lock timeout. A row that other
	// rows refer to is not waited for, but counted as Locked; its children are.
	Remove Mode = iota
	// SkipLocked removes the due rows that nobody has locked, and counts the others as Locked.
	SkipLocked
	// StepStuck removes nothing and counts what is due as Stuck: the way past a row that the database refuses to delete.
	StepStuck
	// StepLocked removes nothing and counts what is due as Locked: the way past a row that cannot be locked in time.
	StepLocked
)

func (m Mode) String() string {
	return [...]string{"remove", "skip locked", "step over stuck", "step over locked"}[m]
}

// Result is what one batch did, in rows. Every examined row is in exactly one of Removed, Held, Locked, Moved, Orphan,
// Stuck, Unusable and Outside, or is not yet past a longer window, of its state or its own, or is another arm's.
type Result struct {
	Examined int // looked at, in age order
	Removed  int // removed and committed
	Children int // rows of other tables, removed with them or ahead of them
	Held     int // past their window, protected by the guard
	Locked   int // due, but somebody held the row or its owner
	Moved    int // due, but changed or removed by somebody else while the batch waited
	Orphan   int // past their window, and their owner does not exist
	Stuck    int // due, but the database refuses to delete them
	Unusable int // past the floor, and their own window is nonsense
	Outside  int // not matched by `only`
	Raised   int // whose own window is below the floor, and was raised to it; they are in another count too

	Next    Cursor // where the next batch goes on
	End     bool   // the batch reached the cutoff
	Busy    bool   // another sweeper holds the sweep: nothing was examined
	Blocked []Block
}

// Block names what keeps stuck rows in place: a foreign key of another table, an exclusion constraint, or a trigger.
type Block struct {
	Constraint string // the constraint's or the trigger's name
	Table      string // schema.table that it belongs to
	Rows       int
}

// Cursor is a place in a pass. It is opaque to all but the Pruner that returned it, and lives within one drain only: a row
// that became due behind it is found by the next drain. The zero Cursor is the beginning.
type Cursor struct{ text string }

// NewCursor returns the cursor with this text; for implementations of Pruner.
func NewCursor(text string) Cursor { return Cursor{text} }

// IsZero reports whether the cursor is the beginning.
func (c Cursor) IsZero() bool { return c.text == "" }

// String is the cursor's text, for logs.
func (c Cursor) String() string { return c.text }
