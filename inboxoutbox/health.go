package inboxoutbox

import (
	"fmt"
	"time"
)

// Count is a number that was read up to a bound.
type Count struct {
	N       int
	AtLeast bool // there are more than N
}

func (c Count) String() string {
	if c.AtLeast {
		return fmt.Sprintf("more than %d", c.N)
	}
	return fmt.Sprint(c.N)
}

// Health is the state of the ledgers in a few numbers. Each was read through an index and
// up to a bound.
type Health struct {
	Unfinished Count // inbox rows that are not completed
	// OldestUnfinished is when the oldest of them was received, in UTC; zero where there is
	// none.
	OldestUnfinished time.Time
	Undelivered      Count // outbox records that are not delivered, those for later too
	// Waiting is since when the record waits that is to be claimed next, in UTC; zero where
	// none is ready.
	Waiting time.Time
	Leases  Count // that have not expired
}
