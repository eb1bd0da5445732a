package connections

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound says that the tenant has no such connection, or has it no more: the id is unknown, revoked, or another
	// tenant's. To a revocation one that is revoked is not unknown.
	ErrNotFound = errors.New("no such connection")

	// ErrExists says that the tenant has a connection of this id, or had one that is revoked.
	ErrExists = errors.New("there is such a connection, or a revoked one")

	// ErrInput says that what was given can not be used. Nothing was changed.
	ErrInput = errors.New("unusable input")

	// ErrLimit says that a limit is out of its range. There is no number that stands for "all".
	ErrLimit = errors.New("limit out of range")

	// ErrCursor says that a text is no cursor of a list.
	ErrCursor = errors.New("unusable cursor")

	// ErrConflict says that another transaction was in the way (a deadlock, a serialization failure) and that nothing was
	// done. Make the call again; in a transaction of your own, roll it back and run the whole of it again.
	ErrConflict = errors.New("conflict with another transaction; do it again")
)

// LeftError says that a purge could not prove that nothing is left: connections came while it was under way, or somebody
// held them. What was removed stays so; end what writes for the tenant, and purge again.
type LeftError struct {
	Rows int
	More bool // at least so many: counting ended there
}

func (e *LeftError) Error() string {
	atLeast := ""
	if e.More {
		atLeast = "at least "
	}
	return fmt.Sprintf("%s%d connections of the tenant are left: they came meanwhile, or somebody holds them; end what writes for the tenant and purge again", atLeast, e.Rows)
}
