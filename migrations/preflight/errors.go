package preflight

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Branches a caller takes. The message of an error that wraps one says where and
// what to do.
var (
	// ErrUnknownComponent says that there is no contract of this name.
	ErrUnknownComponent = errors.New("unknown component")
	// ErrRights says that this role may not read what has to be read; nothing is
	// known about the schema.
	ErrRights = errors.New("not enough rights")
	// ErrLocked says that somebody holds one of the tables, or a part of the catalog,
	// for himself; nothing is known about the schema.
	ErrLocked = errors.New("locked by another session")

	// ErrNotInstalled, ErrPending, ErrNewer and ErrDrift are what [Report.Err] wraps:
	// the last one wherever a finding is refused, the others by the state.
	ErrNotInstalled = errors.New("not installed")
	ErrPending      = errors.New("migrations are pending")
	ErrNewer        = errors.New("newer than this binary")
	ErrDrift        = errors.New("not as the migrations made it")
)

// RefusedError is the answer to a schema that can not be used as it is.
type RefusedError struct{ Report Report }

// Error is the report on one line.
func (e *RefusedError) Error() string {
	r := e.Report
	s := r.headline()
	for _, f := range r.Findings {
		if f.Result == Refused {
			s += "; " + f.what()
		}
	}
	return s
}

// Unwrap returns the branches that apply.
func (e *RefusedError) Unwrap() []error {
	var all []error
	switch e.Report.State {
	case NotInstalled:
		all = append(all, ErrNotInstalled)
	case Pending:
		all = append(all, ErrPending)
	case Newer:
		all = append(all, ErrNewer)
	}
	if e.Report.refused() > 0 {
		all = append(all, ErrDrift)
	}
	return all
}

// explain turns a server's refusal into an error that says what to do.
func explain(component, schema string, err error) error {
	where := fmt.Sprintf("check component %s in schema %s", component, printable(schema))
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code == "42501" && strings.Contains(pg.Message, "row-level security"):
			return fmt.Errorf("%s: %w: row security would hide records of the ledger from this role: %w; check as the owner of the ledger, or switch its row security off", where, ErrRights, err)
		case pg.Code == "42501":
			return fmt.Errorf("%s: %w: %w; grant the role SELECT on it", where, ErrRights, err)
		case pg.Code == "55P03":
			return fmt.Errorf("%s: %w: %w; check again when that session has ended its transaction", where, ErrLocked, err)
		}
	}
	return fmt.Errorf("%s: %w", where, err)
}
