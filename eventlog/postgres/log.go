package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/eventlog"
)

// DB is what a Log asks: a *pgxpool.Pool, a *pgx.Conn, or a pgx.Tx for a
// transaction of the caller's own.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options says where the tables are.
type Options struct {
	// Schema is the schema of runs and run_events, public when empty. Any name
	// will do, it is quoted.
	Schema string
}

// Log is the event log over one schema. It may be used by several goroutines at
// once when its DB may, as a pool may and a connection may not.
type Log struct {
	db   DB
	text statements
}

var _ eventlog.Log = (*Log)(nil)

// New returns the log over the tables in the schema of o. It does not ask the
// database.
func New(db DB, o Options) *Log {
	if o.Schema == "" {
		o.Schema = "public"
	}
	return &Log{db: db, text: render(o.Schema)}
}

// In returns the same log within tx: what it appends is there when tx commits,
// together with what else tx did, and not at all when it rolls back. Until then
// the run's row is locked, and other appenders to that run wait.
func (l *Log) In(tx pgx.Tx) *Log {
	return &Log{db: tx, text: l.text}
}

// Append implements [eventlog.Log].
func (l *Log) Append(ctx context.Context, tenant, run string, drafts ...eventlog.Draft) (int64, error) {
	if len(drafts) == 0 {
		return 0, nil
	}
	types := make([]string, len(drafts))
	payloads := make([]string, len(drafts))
	for i, d := range drafts {
		switch {
		case d.Type == "":
			return 0, fmt.Errorf("append to run %q of tenant %q: draft %d has no type: %w", run, tenant, i+1, eventlog.ErrDraft)
		case len(d.Payload) == 0:
			payloads[i] = "{}"
		case !json.Valid(d.Payload):
			return 0, fmt.Errorf("append to run %q of tenant %q: the payload of draft %d (%s) is no JSON: %w", run, tenant, i+1, d.Type, eventlog.ErrDraft)
		default:
			payloads[i] = string(d.Payload)
		}
		types[i] = d.Type
	}

	var last int64
	err := l.db.QueryRow(ctx, l.text.add, tenant, run, int64(len(drafts)), types, payloads).Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("append to run %q of tenant %q: %w", run, tenant, meaning(err))
	}
	return last, nil
}

// ListAfter implements [eventlog.Log].
func (l *Log) ListAfter(ctx context.Context, tenant, run string, after int64, limit int) ([]eventlog.Event, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list run %q of tenant %q: limit %d: %w", run, tenant, limit, eventlog.ErrLimit)
	}
	rows, err := l.db.Query(ctx, l.text.list, tenant, run, after, int64(limit))
	if err != nil {
		return nil, fmt.Errorf("list run %q of tenant %q: %w", run, tenant, err)
	}
	events, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return nil, fmt.Errorf("list run %q of tenant %q: %w", run, tenant, err)
	}
	return events, nil
}

// LatestSequence implements [eventlog.Log].
func (l *Log) LatestSequence(ctx context.Context, tenant, run string) (int64, error) {
	var latest int64
	err := l.db.QueryRow(ctx, l.text.latest, tenant, run).Scan(&latest)
	if err != nil {
		return 0, fmt.Errorf("latest sequence of run %q of tenant %q: %w", run, tenant, meaning(err))
	}
	return latest, nil
}

func scanEvent(row pgx.CollectableRow) (eventlog.Event, error) {
	var (
		e       eventlog.Event
		payload string
		at      time.Time
	)
	if err := row.Scan(&e.Sequence, &e.Type, &payload, &at); err != nil {
		return eventlog.Event{}, err
	}
	e.Payload, e.CreatedAt = json.RawMessage(payload), at.UTC()
	return e, nil
}

// meaning puts the port's errors in front of what the database said. The driver's
// error stays within reach of errors.As.
func meaning(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return eventlog.ErrUnknownRun // no row of runs was found
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "23505", // unique_violation: somebody wrote an event past the log
		"40001", // serialization_failure, under a caller's isolation level
		"40P01": // deadlock_detected: two transactions took two runs in different orders
		return fmt.Errorf("%w: %w", eventlog.ErrConflict, err)
	case "22P02", "22P05": // a text or number that JSON allows and jsonb does not hold, \u0000 say
		return fmt.Errorf("%w: %w", eventlog.ErrDraft, err)
	}
	return err
}
