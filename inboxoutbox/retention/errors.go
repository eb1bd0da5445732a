package retention

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// ErrNotInstalled says that the tables are not in the schema.
var ErrNotInstalled = errors.New("the component inbox_outbox is not installed")

// DifferenceError says that the settings given are others than those recorded. Nothing was
// changed.
type DifferenceError struct {
	Schema   string
	Recorded Policy
	Fields   []inboxoutbox.Difference
}

func (e *DifferenceError) Error() string {
	return fmt.Sprintf("schema %s has another policy, recorded %s by %s; %s; use the recorded one, or say that this one takes its place (--replace-policy)",
		quoted(e.Schema), e.Recorded.At.Format(time.RFC3339), e.Recorded.By, spoken(e.Fields))
}

// NeedsYesError says that the settings have a shorter window than those recorded, and how many
// rows become due by it. Nothing was changed.
type NeedsYesError struct {
	Schema   string
	Recorded Policy
	Fields   []inboxoutbox.Difference
	Due      []Due
}

func (e *NeedsYesError) Error() string {
	return fmt.Sprintf("the policy given for schema %s has a shorter window: %s; %s: say yes to that (--yes)", quoted(e.Schema), spoken(e.Fields), spoken(e.Due))
}

// Due is how many rows become due when a shorter window takes the place of a longer one.
type Due struct {
	Ledger      string
	Rows        inboxoutbox.Count
	Longer, Now time.Duration // the windows
}

func (d Due) String() string {
	return fmt.Sprintf("%s rows of %s become due by it", d.Rows, d.Ledger)
}

func spoken[T fmt.Stringer](all []T) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, "; ")
}

func quoted(schema string) string { return pgx.Identifier{schema}.Sanitize() }

// meaning puts our errors in front of what the database said. The driver's error stays within
// reach of errors.As.
func meaning(schema string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "42P01", "3F000": // undefined_table, invalid_schema_name
		return fmt.Errorf("%w in schema %s: run prunectl migrate up --component inbox_outbox, and name the schema where it is another one: %w", ErrNotInstalled, quoted(schema), err)
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return fmt.Errorf("%w: %w", inboxoutbox.ErrConflict, err)
	}
	return err
}
