package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
)

// MaxClaim is the most that one Claim claims.
const MaxClaim = 10_000

// maxError is how much of an error's text is kept.
const maxError = 8 << 10

// Claim claims up to limit deliveries for worker, those that are due longest first:
// pending and failed ones that are due, and claimed ones whose lease has lapsed. Each
// counts as an attempt. What somebody else is claiming at this moment is passed over.
// lease says how long they are the worker's; it is to be longer than the work takes.
//
// The error is [domainevents.ErrClaim] where the worker has no name or the lease is
// under a millisecond, and [domainevents.ErrLimit] where limit is not from 1 to MaxClaim.
func (s *Store) Claim(ctx context.Context, db DB, worker string, lease time.Duration, limit int) ([]domainevents.Delivery, error) {
	switch {
	case worker == "":
		return nil, fmt.Errorf("%w: the worker has no name", domainevents.ErrClaim)
	case lease < time.Millisecond:
		return nil, fmt.Errorf("%w: a lease of %s; it is at least a millisecond", domainevents.ErrClaim, lease)
	case limit < 1 || limit > MaxClaim:
		return nil, fmt.Errorf("claim %d deliveries: %w; it is from 1 to %d", limit, domainevents.ErrLimit, MaxClaim)
	}
	rows, err := db.Query(ctx, s.text.claim, worker, lease.Microseconds(), int64(limit))
	if err != nil {
		return nil, fmt.Errorf("claim deliveries for %s: %w", worker, meaning(err))
	}
	claimed, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil {
		return nil, fmt.Errorf("claim deliveries for %s: %w", worker, meaning(err))
	}
	return claimed, nil
}

func scanDelivery(row pgx.CollectableRow) (domainevents.Delivery, error) {
	var (
		d domainevents.Delivery
		e event
	)
	err := row.Scan(append(e.into(), &d.Receiver, &d.Target, &d.DueAt, &d.Attempts, &d.LastError,
		&d.Claim.Delivery, &d.Claim.By, &d.Claim.At, &d.Claim.Until)...)
	d.Event, d.DueAt, d.Claim.At, d.Claim.Until = e.value(), d.DueAt.UTC(), d.Claim.At.UTC(), d.Claim.Until.UTC()
	return d, err
}

// Succeed acknowledges that the delivery was made.
//
// Each acknowledgement compares who claimed and when, and ends the claim. Where the claim is
// not held any more it changes nothing, and the error is [domainevents.ErrClaimLost]. A
// claim whose lease has lapsed is held until somebody else claims the delivery.
func (s *Store) Succeed(ctx context.Context, db DB, c domainevents.Claim) error {
	return s.acknowledge(ctx, db, c, domainevents.Succeeded, nil, "")
}

// Fail acknowledges an attempt that failed, for the reason given, and is to be
// repeated from retryAt on. A zero retryAt is [domainevents.ErrClaim]. The rest is as with
// Succeed.
func (s *Store) Fail(ctx context.Context, db DB, c domainevents.Claim, retryAt time.Time, reason string) error {
	if retryAt.IsZero() {
		return fmt.Errorf("%w: delivery %d has no time for its next attempt", domainevents.ErrClaim, c.Delivery)
	}
	return s.acknowledge(ctx, db, c, domainevents.Failed, &retryAt, reason)
}

// Dead gives the delivery up, for the reason given: nothing is owed on it, and it can
// be requeued. The rest is as with Succeed.
func (s *Store) Dead(ctx context.Context, db DB, c domainevents.Claim, reason string) error {
	return s.acknowledge(ctx, db, c, domainevents.Dead, nil, reason)
}

// Orphan gives the delivery up because nothing knows its receiver. The rest is as with Dead.
func (s *Store) Orphan(ctx context.Context, db DB, c domainevents.Claim, reason string) error {
	return s.acknowledge(ctx, db, c, domainevents.Orphaned, nil, reason)
}

// Cancel ends the delivery as one that is not wanted any more. The rest is as with Succeed.
func (s *Store) Cancel(ctx context.Context, db DB, c domainevents.Claim, reason string) error {
	return s.acknowledge(ctx, db, c, domainevents.Cancelled, nil, reason)
}

func (s *Store) acknowledge(ctx context.Context, db DB, c domainevents.Claim, to domainevents.Status, due *time.Time, reason string) error {
	var id int64
	err := db.QueryRow(ctx, s.text.acknowledge, c.Delivery, c.By, c.At, string(to), due, text(reason)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("delivery %d is not %s: %w by %s since %s", c.Delivery, to, domainevents.ErrClaimLost, c.By, c.At.Format(time.RFC3339Nano))
	}
	if err != nil {
		return fmt.Errorf("acknowledge delivery %d as %s: %w", c.Delivery, to, meaning(err))
	}
	return nil
}

// text is what the database holds of a reason: whatever an error says must not keep
// its delivery from being acknowledged.
func text(reason string) string {
	reason = strings.ReplaceAll(reason, "\x00", "")
	if len(reason) > maxError {
		reason = reason[:maxError]
	}
	return strings.ToValidUTF8(reason, "")
}
