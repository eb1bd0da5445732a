package migrations

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Branches a caller takes. The message of an error that wraps one says where and
// what to do.
var (
	// ErrUnknownComponent says that Options.Component is none of Components().
	ErrUnknownComponent = errors.New("unknown component")
	// ErrSchema says that the target schema does not exist, has a name that can
	// not be used, or gives this role no right to create.
	ErrSchema = errors.New("unusable schema")
	// ErrReadOnly says that the server, the database or the role is read-only.
	ErrReadOnly = errors.New("read-only")
	// ErrNewer says that the installed version is newer than this program knows.
	ErrNewer = errors.New("newer than this binary")
	// ErrBusy says that another migrator held the lock for all of Options.LockWait.
	ErrBusy = errors.New("another migrator is at work")
	// ErrIndexDiffers says that something of a declared index's name is in the
	// schema and is not that index. Nothing was dropped.
	ErrIndexDiffers = errors.New("not the declared index")
	// ErrHoldsRows says that a version was not taken down because its tables hold
	// rows. Nothing was dropped.
	ErrHoldsRows = errors.New("tables hold rows")
)

// stateHoldsRows is the SQLSTATE with which a down migration refuses to drop
// tables that hold rows; it is ours, no class of PostgreSQL begins with P9.
const stateHoldsRows = "P9001"

// explain adds to a server's error what a person can do about it.
func (m *Migrator) explain(v version, err error) error {
	where := fmt.Sprintf("version %d %s of component %s in schema %s", v.number, v.name, m.component.name, m.schema)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("%s: %w", where, err)
	}
	switch pg.Code {
	case stateHoldsRows:
		return fmt.Errorf("%s: %w: %s; %s", where, ErrHoldsRows, pg.Message, pg.Hint)
	case "42P07": // duplicate_table
		return fmt.Errorf("%s: %w; it is not recorded as ours in %s: install into another schema, or, where a restore lost the record, insert (%d, '%s') there (the printed SQL has the table)",
			where, err, m.ledger.qualified(), v.number, v.name)
	case "42P01": // undefined_table
		return fmt.Errorf("%s: %w; %s records an earlier version whose tables are not there: restore them, or delete its rows and start anew",
			where, err, m.ledger.qualified())
	case "55P03": // lock_not_available
		return fmt.Errorf("%s: %w; a session holds the table: run it again when that one has ended", where, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}
