package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/connections"
)

// ErrInTransaction is the answer to a purge in a transaction of the caller's: a purge commits, and looks at what is left
// when it has.
var ErrInTransaction = errors.New("a purge commits on its own; give the store a pool, or a connection that is idle")

// failed says what could not be done, and why, without the server's own words.
func failed(err error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), meaning(err))
}

// words are ours for what a server says, by SQLSTATE.
var words = map[string]string{
	"23502": "a column that may not be null was given none",
	"23503": "rows that refer to it are in the way",
	"25006": "the transaction is read-only",
	"3F000": "there is no such schema; see prunectl migrate status --component connections",
	"40001": "it could not be serialized with another transaction",
	"40P01": "it was in a deadlock with another transaction",
	"42501": "permission denied, or row security hides rows from the role, which needs USAGE on the schema, and SELECT, INSERT and UPDATE on the table connections; a purge needs DELETE too",
	"42703": "the table is not as the migrations make it; see prunectl check --component connections",
	"42P01": "there is no table connections; run prunectl migrate up --component connections",
	"53100": "the server's disk is full",
	"55P03": "somebody holds the table or the row, and lock_timeout is over",
	"57014": "the statement was cancelled, or statement_timeout is over",
	"57P01": "the server ended the connection",
}

// meaning puts our errors in front of what the database said, and ours in place of its words: a DETAIL can have the row in
// it that a constraint refuses, and the message of a trigger whatever that one saw. Nor is handed on what the driver says of
// a value that it cannot read: that has the value in it. What it says of a parameter has what that one shows of itself.
func meaning(err error) error {
	var unread pgx.ScanArgError
	if errors.As(err, &unread) {
		return fmt.Errorf("column %s is not as the migrations make it, or the session writes it in a form that pgx does not read", unread.FieldName)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	safe := &pgconn.PgError{Severity: pg.Severity, Code: pg.Code, SchemaName: pg.SchemaName, TableName: pg.TableName, ConstraintName: pg.ConstraintName}
	switch known := words[pg.Code]; {
	case pg.ConstraintName != "":
		safe.Message = fmt.Sprintf("the constraint %q refuses it", pg.ConstraintName)
	case known != "":
		safe.Message = known
	default:
		safe.Message = "the server refused it; what it said can have values in it, and is in its log"
	}
	switch {
	case pg.Code == "40001", pg.Code == "40P01":
		return fmt.Errorf("%w: %w", connections.ErrConflict, safe)
	case strings.HasPrefix(pg.Code, "22"): // a number in the settings that is too large, half of a surrogate pair
		return fmt.Errorf("%w: %w", connections.ErrInput, safe)
	}
	return safe
}
