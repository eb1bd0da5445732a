package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// Receive takes the event for handler, so that it is handled once: it is new, and then
// the caller's under a lock for hold; or somebody else is at it; or it was completed. An
// event that was not completed, and whose lock lapsed or was given back, is new again.
//
// There are two ways to use it. In the transaction in which the event is handled and
// completed, all is there when that one commits, or nothing; whoever receives the same
// event meanwhile waits for its end (lock_timeout bounds that). Or by itself, on a pool:
// then the lock is there at once, others are told so, and an event whose handler died is
// taken again when it has lapsed; hold is to be longer than the work takes.
//
// The error is [inboxoutbox.ErrEvent], [inboxoutbox.ErrClaim] where hold is under a
// millisecond, or [inboxoutbox.ErrConflict].
func (s *Store) Receive(ctx context.Context, db DB, handler, eventID string, hold time.Duration) (inboxoutbox.Receipt, error) {
	none := inboxoutbox.Receipt{}
	if err := inboxoutbox.CheckReceipt(handler, eventID); err != nil {
		return none, err
	}
	if err := checkHold("lock", hold); err != nil {
		return none, err
	}
	// What is in the way may be gone when it is looked at: removed, or its lock lapsed.
	for range tries {
		r := inboxoutbox.Receipt{Outcome: inboxoutbox.New, Lock: inboxoutbox.Lock{Handler: handler, EventID: eventID}}
		err := db.QueryRow(ctx, s.text.receive, handler, eventID, hold.Microseconds()).Scan(&r.Lock.Token, &r.Until, &r.Attempts)
		if err == nil {
			r.Until = r.Until.UTC()
			r.Lock.Until = r.Until
			return r, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return none, fmt.Errorf("receive event %q for %s: %w", eventID, handler, meaning(err))
		}
		var until, completed *time.Time
		var free bool
		err = db.QueryRow(ctx, s.text.received, handler, eventID).Scan(&until, &completed, &r.Attempts, &free)
		r.Lock, r.Until, r.CompletedAt = inboxoutbox.Lock{}, utc(until), utc(completed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return none, fmt.Errorf("receive event %q for %s: %w", eventID, handler, meaning(err))
		case completed != nil:
			r.Outcome = inboxoutbox.CompletedBefore
			return r, nil
		case !free:
			r.Outcome = inboxoutbox.InProgress
			return r, nil
		}
	}
	return none, fmt.Errorf("receive event %q for %s: it came and went: %w", eventID, handler, inboxoutbox.ErrConflict)
}

// Complete says that the event was handled, in tx, the transaction of what its handler
// wrote. Where the lock is not held any more it changes nothing, and the error is
// [inboxoutbox.ErrClaimLost]: roll tx back, or the event is handled twice. A lock that has
// lapsed is held until somebody else takes the event.
func (s *Store) Complete(ctx context.Context, tx pgx.Tx, l inboxoutbox.Lock) error {
	var done bool
	if err := tx.QueryRow(ctx, s.text.complete, l.Handler, l.EventID, string(l.Token)).Scan(&done); err != nil {
		return lost(err, "complete event %q of %s", l.EventID, l.Handler)
	}
	return nil
}

// Release gives the lock back without completing the event: its next receipt is new. The
// rest is as with Complete.
func (s *Store) Release(ctx context.Context, db DB, l inboxoutbox.Lock) error {
	var done bool
	if err := db.QueryRow(ctx, s.text.release, l.Handler, l.EventID, string(l.Token)).Scan(&done); err != nil {
		return lost(err, "release event %q of %s", l.EventID, l.Handler)
	}
	return nil
}
