package prunertest

import (
	"context"
	"testing"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Factory makes a fresh population. It is called several times in a check; each population is closed before the next is
// made.
type Factory func(ctx context.Context, f Fixture) (Population, error)

// Population is a table with its owners and its parts, and the Pruners over it.
type Population interface {
	// Pruner is the Pruner of one arm of the Fixture's sweep, cut through the Fixture's indexes; a new one for
	// each call. Arms differ in their names. If it is a pruner.Surveyor, that is checked too.
	Pruner(ctx context.Context, a policy.Arm) (pruner.Pruner, error)

	// IDs lists the rows that are there, in the order of their IDs.
	IDs(ctx context.Context) ([]int64, error)
	// Parts and Notes list those that are there, in the order of their IDs.
	Parts(ctx context.Context) ([]int64, error)
	Notes(ctx context.Context) ([]int64, error)
	// Insert adds rows, with their parts.
	Insert(ctx context.Context, rows ...Row) error
	// SetState changes the state of a row.
	SetState(ctx context.Context, id int64, state policy.Value) error
	// InsertParts adds parts to a row.
	InsertParts(ctx context.Context, row int64, parts ...Part) error
	// SetPartState changes the state of a part.
	SetPartState(ctx context.Context, id int64, state policy.Value) error
	// SetOwner makes an owner, or changes its state.
	SetOwner(ctx context.Context, o Owner) error

	// Pin makes the database refuse to delete a row, by PinConstraint of PinTable.
	Pin(ctx context.Context, id int64) error
	// Lock locks a row in another session, so that a batch which must remove it waits until its lock timeout.
	Lock(ctx context.Context, id int64) error
	// LockPart locks a part in another session, so that a batch which must remove it waits until its lock timeout.
	LockPart(ctx context.Context, id int64) error
	// LockOwner locks an owner in another session, as an update of its state does.
	LockOwner(ctx context.Context, o Owner) error
	// LockTable locks the table as a whole in another session, against reading too.
	LockTable(ctx context.Context) error
	// Unlock gives back what was locked, without a change.
	Unlock(ctx context.Context) error

	Close() error
}

// Check is one part of the contract. Run returns what is wrong with the implementation behind the factory.
type Check struct {
	Name string
	Run  func(ctx context.Context, f Factory) error
}

// Run runs every check on the implementation, each as a subtest of its name.
func Run(t *testing.T, f Factory) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context(), f); err != nil {
				t.Error(err)
			}
		})
	}
}

// Checks lists the checks of the suite.
func Checks() []Check {
	var all []Check
	for _, cs := range [][]Check{orderChecks, guardChecks, boundChecks, tieChecks, windowChecks, ownChecks, expiresChecks, modeChecks, owedChecks, childChecks,
		surveyChecks} {
		all = append(all, cs...)
	}
	return all
}
