package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// DB is what a Store asks: a *pgxpool.Pool, a *pgx.Conn, or a pgx.Tx for a
// transaction of the caller's own.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options says where the tables are.
type Options struct {
	// Schema is the schema of the tables, inboxoutbox.DefaultSchema when empty. Any name
	// will do, it is quoted.
	Schema string
}

// Store is the store in one schema. It holds no connection: each call is given one, and
// several goroutines may use a Store at once.
type Store struct{ text statements }

// New returns the store over the tables in the schema of o. It does not ask the database.
func New(o Options) *Store {
	if o.Schema == "" {
		o.Schema = inboxoutbox.DefaultSchema
	}
	return &Store{render(o.Schema)}
}

// tries is how often a row that comes and goes between two looks is looked for again.
const tries = 3

// checkHold refuses what is no time to hold something for.
func checkHold(what string, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("%w: a %s of %s; it is at least a millisecond", inboxoutbox.ErrClaim, what, d)
	}
	return nil
}

// lost is the answer to a compare-and-set that found nothing to change.
func lost(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, inboxoutbox.ErrClaimLost)
	}
	return fmt.Errorf("%s: %w", what, meaning(err))
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
		return fmt.Errorf("%w: %w", inboxoutbox.ErrConflict, err)
	case "22P05", // a text that JSON allows and jsonb does not hold, \u0000 say
		"22021": // a zero byte in a text
		return fmt.Errorf("%w: %w", inboxoutbox.ErrEvent, err)
	}
	return err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// utc is the instant in UTC, the zero time for none.
func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
