package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// Acquire takes the lease of a partition of handler's work for hold, where nobody has it
// or it has expired. Otherwise ok is false, and the Lease says who has it and until when;
// that may be an earlier run under the same name, which is waited for as anybody else.
//
// The error is [inboxoutbox.ErrClaim] where handler or holder is empty or hold under a
// millisecond, or [inboxoutbox.ErrConflict].
func (s *Store) Acquire(ctx context.Context, db DB, handler, partition, holder string, hold time.Duration) (l inboxoutbox.Lease, ok bool, err error) {
	none := inboxoutbox.Lease{}
	if err := inboxoutbox.CheckLease(handler, holder); err != nil {
		return none, false, err
	}
	if err := checkHold("lease", hold); err != nil {
		return none, false, err
	}
	// What is in the way may be gone when it is looked at: given back, removed, or expired.
	for range tries {
		l := inboxoutbox.Lease{Handler: handler, Partition: partition, Holder: holder}
		err := db.QueryRow(ctx, s.text.acquire, handler, partition, holder, hold.Microseconds()).Scan(&l.Token, &l.ExpiresAt)
		ok := err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			err = db.QueryRow(ctx, s.text.held, handler, partition).Scan(&l.Holder, &l.ExpiresAt)
		}
		if err == nil {
			l.ExpiresAt = l.ExpiresAt.UTC()
			return l, ok, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return none, false, fmt.Errorf("acquire partition %q of %s: %w", partition, handler, meaning(err))
		}
	}
	return none, false, fmt.Errorf("acquire partition %q of %s: its lease came and went: %w", partition, handler, inboxoutbox.ErrConflict)
}

// Renew makes the lease hold for hold from now on, and returns it as it is then. Where it has
// expired, or is not held any more, it changes nothing, and the error is
// [inboxoutbox.ErrClaimLost].
func (s *Store) Renew(ctx context.Context, db DB, l inboxoutbox.Lease, hold time.Duration) (inboxoutbox.Lease, error) {
	if err := checkHold("lease", hold); err != nil {
		return l, err
	}
	until := l.ExpiresAt
	if err := db.QueryRow(ctx, s.text.renew, l.Handler, l.Partition, string(l.Token), hold.Microseconds()).Scan(&until); err != nil {
		return l, lost(err, "renew partition %q of %s", l.Partition, l.Handler)
	}
	l.ExpiresAt = until.UTC()
	return l, nil
}

// Return gives the lease back: the next one to ask acquires it. Where it is not held any
// more it changes nothing, and the error is [inboxoutbox.ErrClaimLost].
func (s *Store) Return(ctx context.Context, db DB, l inboxoutbox.Lease) error {
	var done bool
	if err := db.QueryRow(ctx, s.text.giveBack, l.Handler, l.Partition, string(l.Token)).Scan(&done); err != nil {
		return lost(err, "give back partition %q of %s", l.Partition, l.Handler)
	}
	return nil
}
