package pruner

import (
	"context"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// A Surveyor can say more about what a drain leaves in place than its batches see. Both read through an index, and no more
// than max rows: never a scan.
type Surveyor interface {
	// Undated counts the rows of the arm without a usable age; nil where max rows were read, or no index serves.
	Undated(ctx context.Context, max int) (*int, error)
	// HeldBy breaks down what is past the cutoff and kept among the oldest max rows: by state, by owner's state, orphans.
	// The order of the answer is free.
	HeldBy(ctx context.Context, c policy.Cutoff, max int) ([]HeldBy, error)
}

// HeldBy is one reason for which rows past their window are kept.
type HeldBy struct {
	Reason string // "state", "unknown_state", "owner", "orphan", "ownerless", "owed", "hold"
	Value  string // the state; "" for orphans, for a hold, and where rows without a state are owed
	Rows   int
	Owners *int       // distinct owners, where an owner is the reason
	Oldest *time.Time // the oldest age among the rows
}
