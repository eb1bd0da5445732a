package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// MaxBound is the largest bound of Health.
const MaxBound = 100_000

// Health reads how much is not finished, up to bound of each. The error is
// [inboxoutbox.ErrLimit] where bound is not from 1 to MaxBound.
func (s *Store) Health(ctx context.Context, db DB, bound int) (inboxoutbox.Health, error) {
	if bound < 1 || bound > MaxBound {
		return inboxoutbox.Health{}, fmt.Errorf("look at the health up to %d: %w; it is from 1 to %d", bound, inboxoutbox.ErrLimit, MaxBound)
	}
	var (
		h               inboxoutbox.Health
		inbox, outbox   int
		leases          int
		oldest, waiting *time.Time
	)
	if err := db.QueryRow(ctx, s.text.health, int64(bound)+1).Scan(&inbox, &oldest, &outbox, &waiting, &leases); err != nil {
		return inboxoutbox.Health{}, fmt.Errorf("look at the health: %w", meaning(err))
	}
	count := func(n int) inboxoutbox.Count { return inboxoutbox.Count{N: min(n, bound), AtLeast: n > bound} }
	h.Unfinished, h.OldestUnfinished = count(inbox), utc(oldest)
	h.Undelivered, h.Waiting = count(outbox), utc(waiting)
	h.Leases = count(leases)
	return h, nil
}
