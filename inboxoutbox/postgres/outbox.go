package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// MaxClaim is the most that one Claim claims.
const MaxClaim = 10_000

// Add adds a record within tx: it is there when tx commits, and not at all when it rolls
// back. Where a record of the same event id is there already, nothing is added, and the
// answer says so and has the id of that one. An uncommitted one is waited for.
//
// The error is that of [inboxoutbox.Draft.Check], before the database is asked, or
// [inboxoutbox.ErrConflict]; or [inboxoutbox.ErrEvent] where the body is JSON that the
// database does not hold.
func (s *Store) Add(ctx context.Context, tx pgx.Tx, d inboxoutbox.Draft) (inboxoutbox.Added, error) {
	none := inboxoutbox.Added{}
	if err := d.Check(); err != nil {
		return none, err
	}
	headers := "{}"
	if len(d.Headers) > 0 {
		text, err := json.Marshal(d.Headers)
		if err != nil {
			return none, fmt.Errorf("add event %q: %w", d.EventID, err)
		}
		headers = string(text)
	}
	// The record of the id may go between the two looks: then its id is free again.
	for range tries {
		var id int64
		err := tx.QueryRow(ctx, s.text.add, d.EventID, d.Topic, d.Key, headers, string(d.Body), orNull(d.AvailableAt)).Scan(&id)
		if err == nil {
			return inboxoutbox.Added{Record: id, New: true}, nil
		}
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, s.text.added, d.EventID).Scan(&id)
			if err == nil {
				return inboxoutbox.Added{Record: id}, nil
			}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return none, fmt.Errorf("add event %q: %w", d.EventID, meaning(err))
		}
	}
	return none, fmt.Errorf("add event %q: the record of this id came and went: %w", d.EventID, inboxoutbox.ErrConflict)
}

// Claim claims up to limit records, those that are available longest first: undelivered
// ones, and claimed ones whose claim has lapsed. Each counts as an attempt. What somebody
// else is claiming at this moment is passed over. hold says for how long they are the
// caller's; it is to be longer than the delivery takes.
//
// The error is [inboxoutbox.ErrClaim] where hold is under a millisecond, and
// [inboxoutbox.ErrLimit] where limit is not from 1 to MaxClaim.
func (s *Store) Claim(ctx context.Context, db DB, hold time.Duration, limit int) ([]inboxoutbox.Record, error) {
	if err := checkHold("claim", hold); err != nil {
		return nil, err
	}
	if limit < 1 || limit > MaxClaim {
		return nil, fmt.Errorf("claim %d records: %w; it is from 1 to %d", limit, inboxoutbox.ErrLimit, MaxClaim)
	}
	rows, err := db.Query(ctx, s.text.claim, hold.Microseconds(), int64(limit))
	if err != nil {
		return nil, fmt.Errorf("claim records: %w", meaning(err))
	}
	claimed, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("claim records: %w", meaning(err))
	}
	return claimed, nil
}

func scanRecord(row pgx.CollectableRow) (inboxoutbox.Record, error) {
	var (
		r             inboxoutbox.Record
		headers, body string
		values        map[string]json.RawMessage
	)
	if err := row.Scan(&r.ID, &r.EventID, &r.Topic, &r.Key, &headers, &body, &r.CreatedAt, &r.Attempts, &r.Claim.Token, &r.Claim.Until); err != nil {
		return r, err
	}
	r.Body = json.RawMessage(body)
	r.Claim.Record, r.CreatedAt, r.Claim.Until = r.ID, r.CreatedAt.UTC(), r.Claim.Until.UTC()
	if err := json.Unmarshal([]byte(headers), &values); err != nil {
		return r, err
	}
	r.Headers = make(map[string]string, len(values))
	for name, v := range values {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v) // somebody else's insert: what is no text is kept as it is written
		}
		r.Headers[name] = text
	}
	return r, nil
}

// Deliver acknowledges that the record was delivered.
//
// It compares the claim's token, and ends the claim. Where the claim is not held any more
// it changes nothing, and the error is [inboxoutbox.ErrClaimLost]. A claim that has lapsed
// is held until somebody else claims the record.
func (s *Store) Deliver(ctx context.Context, db DB, c inboxoutbox.Claim) error {
	var done bool
	if err := db.QueryRow(ctx, s.text.deliver, c.Record, string(c.Token)).Scan(&done); err != nil {
		return lost(err, "record %d is not delivered", c.Record)
	}
	return nil
}

// Retry gives the claim back, for the record to be claimed again from at on; a zero at is
// at once. The rest is as with Deliver.
func (s *Store) Retry(ctx context.Context, db DB, c inboxoutbox.Claim, at time.Time) error {
	var done bool
	if err := db.QueryRow(ctx, s.text.retry, c.Record, string(c.Token), orNull(at)).Scan(&done); err != nil {
		return lost(err, "record %d is not put off", c.Record)
	}
	return nil
}
