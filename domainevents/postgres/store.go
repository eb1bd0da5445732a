package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/domainevents"
)

// DB is what a Store asks: a *pgxpool.Pool, a *pgx.Conn, or a pgx.Tx for a
// transaction of the caller's own.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Beginner is what a Store asks for a transaction of its own: a *pgxpool.Pool or a
// *pgx.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// Options says where the tables are.
type Options struct {
	// Schema is the schema of the tables, public when empty. Any name will do, it is
	// quoted.
	Schema string
}

// Store is the store of domain events in one schema. It holds no connection: each
// call is given one, and several goroutines may use a Store at once.
type Store struct{ text statements }

// New returns the store over the tables in the schema of o. It does not ask the
// database.
func New(o Options) *Store {
	if o.Schema == "" {
		o.Schema = "public"
	}
	return &Store{render(o.Schema)}
}

// Record records an event and a pending delivery for each target within tx: they are
// there when tx commits, and not at all when it rolls back. The retention is copied
// onto the event's row.
//
// Where an event with the same dedupe key is there already, nothing is recorded, and
// the answer says so and has the id of that one. An uncommitted one is waited for.
//
// The error is that of [domainevents.Draft.Check], before the database is asked, or
// [domainevents.ErrConflict]; or [domainevents.ErrEvent] where the payload is JSON that
// the database does not hold.
func (s *Store) Record(ctx context.Context, tx pgx.Tx, d domainevents.Draft, targets ...domainevents.Target) (domainevents.Recorded, error) {
	none := domainevents.Recorded{}
	if err := d.Check(targets...); err != nil {
		return none, err
	}
	payload := "{}"
	if len(d.Payload) > 0 {
		payload = string(d.Payload)
	}
	receivers, names, due := make([]string, len(targets)), make([]string, len(targets)), make([]*time.Time, len(targets))
	for i, t := range targets {
		receivers[i], names[i], due[i] = t.Receiver, t.Target, orNull(t.DueAt)
	}
	// The event of the key may go between the two looks: then its key is free again.
	for range 3 {
		var id int64
		err := tx.QueryRow(ctx, s.text.record, d.Type, max(d.Version, 1), payload, orNull(d.OccurredAt), d.DedupeKey, d.Suppressed,
			string(d.Retention.Policy()), d.Retention.OwnSeconds(), receivers, names, due).Scan(&id)
		if err == nil {
			return domainevents.Recorded{Event: id, New: true}, nil
		}
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, s.text.first, d.DedupeKey).Scan(&id)
			if err == nil {
				return domainevents.Recorded{Event: id}, nil
			}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return none, fmt.Errorf("record event %s: %w", d.Type, meaning(err))
		}
	}
	return none, fmt.Errorf("record event %s: the event of key %q came and went: %w", d.Type, d.DedupeKey, domainevents.ErrConflict)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// meaning puts our errors in front of what the database said. The driver's error
// stays within reach of errors.As.
func meaning(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "40001", // serialization_failure, under a caller's isolation level
		"40P01": // deadlock_detected
		return fmt.Errorf("%w: %w", domainevents.ErrConflict, err)
	case "22P02", "22P05": // a text or number that JSON allows and jsonb does not hold, \u0000 say
		return fmt.Errorf("%w: %w", domainevents.ErrEvent, err)
	}
	return err
}

// event is where a row's event is scanned to.
type event struct {
	domainevents.Event
	payload, policy string
	seconds         int32
}

// into are the places for eventColumns.
func (e *event) into() []any {
	return []any{&e.ID, &e.Type, &e.Version, &e.payload, &e.RecordedAt, &e.OccurredAt, &e.DedupeKey, &e.Suppressed, &e.policy, &e.seconds}
}

func (e *event) value() domainevents.Event {
	e.Payload = json.RawMessage(e.payload)
	e.RecordedAt, e.OccurredAt = e.RecordedAt.UTC(), e.OccurredAt.UTC()
	e.Retention = domainevents.StoredRetention(domainevents.Policy(e.policy), e.seconds)
	return e.Event
}
