package pruner

import (
	"errors"
	"fmt"
	"time"
)

// ErrLimit is the answer to a limit below 1 or above MaxLimit.
var ErrLimit = errors.New("a batch's limit is from 1 to 100000")

// TimeoutError says that the batch ran into its statement timeout and was rolled back. The same rows may fit in smaller
// batches.
type TimeoutError struct {
	After time.Duration // the timeout in force
	Err   error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the batch did not end within its statement timeout of %s", e.After)
}
func (e *TimeoutError) Unwrap() error { return e.Err }

// LockTimeoutError says that the batch waited for a lock as long as the lock timeout allows, and was rolled back. A batch
// with SkipLocked passes locked rows; it does not help against a locked table.
type LockTimeoutError struct {
	Table     string // the table that is locked as a whole; "" where it is a row, or a lock taken by a key or a trigger
	CanSkip   bool   // the Pruner may lock rows, so SkipLocked is possible
	LockAfter time.Duration
	Err       error
}

func (e *LockTimeoutError) Error() string {
	if e.Table != "" {
		return fmt.Sprintf("table %s is locked by another session for more than the lock timeout of %s", e.Table, e.LockAfter)
	}
	return fmt.Sprintf("a row is locked by another session for more than the lock timeout of %s", e.LockAfter)
}
func (e *LockTimeoutError) Unwrap() error { return e.Err }

// RefusedError says that the database refuses to delete a row of the batch: a foreign key still points at it, or an
// exclusion constraint stands against it. The batch was rolled back. Smaller batches find the row.
type RefusedError struct {
	Code  string // SQLSTATE: 23503, 23001 or 23P01
	Block Block  // Rows is 0: it is not known yet how many
	Err   error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the database refuses to delete a row: constraint %s of %s", e.Block.Constraint, e.Block.Table)
}
func (e *RefusedError) Unwrap() error { return e.Err }

// UnknownCommitError says that the connection was lost while the batch was being committed, and that the server could not
// say afterwards whether it was. The rows of the batch are not counted as removed; they are gone or still there, and the
// next sweep is right in either case.
type UnknownCommitError struct {
	XID     string // the transaction's id, "" where it is not known
	Pending Result // what the batch did if it was committed
	Err     error
}

func (e *UnknownCommitError) Error() string {
	if e.XID == "" {
		return fmt.Sprintf("the outcome of a commit is unknown, the connection was lost before the batch was answered: %v", e.Err)
	}
	return fmt.Sprintf("the outcome of a commit is unknown (transaction %s, %d rows): %v", e.XID, e.Pending.Removed+e.Pending.Children, e.Err)
}
func (e *UnknownCommitError) Unwrap() error { return e.Err }
