package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// RefusedError is the answer to a sweep or a purge that the catalog contradicts.
type RefusedError struct {
	Sweep  string
	Purge  string  // set in place of Sweep where a purge is refused
	Checks []Check // those that are refused
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	if e.Purge != "" {
		fmt.Fprintf(&b, "purge %s is refused", e.Purge)
	} else {
		fmt.Fprintf(&b, "sweep %s is refused", e.Sweep)
	}
	for _, c := range e.Checks {
		fmt.Fprintf(&b, "; %s: %s", c.Name, c.Detail)
	}
	return b.String()
}

// Failures of a batch that mean something to whoever drains.
const (
	codeForeignKey       = "23503"
	codeRestrict         = "23001"
	codeExclusion        = "23P01"
	codeCanceled         = "57014"
	codeLockNotAvailable = "55P03"
	codeDeadlock         = "40P01"
	codeReadOnly         = "25006"
)

// inForce are the timeouts that the settings of a batch answered with: a role's or a database's own may be shorter than
// ours.
type inForce struct{ statement, lock time.Duration }

// limitsOf reads them from the answers before a failure; zero where the settings themselves failed.
func limitsOf(answers []answer) inForce {
	if len(answers) == 0 || len(answers[0]) < 2 {
		return inForce{}
	}
	p := parser{}
	ms := func(f field) time.Duration { return time.Duration(p.int64(f)) * time.Millisecond }
	return inForce{ms(answers[0][0]), ms(answers[0][1])}
}

// classify turns a server's refusal into the error of the port that says what can be done about it. conn is idle again.
func (s sending) classify(ctx context.Context, conn *pgx.Conn, err error, ran time.Duration, limits inForce) error {
	var pg *pgconn.PgError
	if ctx.Err() != nil {
		return fmt.Errorf("the batch was canceled and rolled back: %w", context.Cause(ctx))
	}
	if !errors.As(err, &pg) {
		return fmt.Errorf("batch on %s: %w", s.on, err)
	}
	switch pg.Code {
	case codeForeignKey, codeRestrict, codeExclusion:
		b := pruner.Block{Constraint: pg.ConstraintName, Table: pg.SchemaName + "." + pg.TableName}
		return &pruner.RefusedError{Code: pg.Code, Block: b, Err: err}
	case codeCanceled:
		if limits.statement > 0 && ran >= limits.statement {
			return &pruner.TimeoutError{After: limits.statement, Err: err}
		}
		return fmt.Errorf("batch on %s: another session canceled it after %s: %w", s.on, ran.Round(time.Millisecond), err)
	case codeLockNotAvailable, codeDeadlock:
		return &pruner.LockTimeoutError{Table: lockedTable(ctx, conn, s.locks), CanSkip: s.canSkip, LockAfter: limits.lock, Err: err}
	case codeReadOnly:
		return fmt.Errorf("read-only target: %w", err)
	}
	return fmt.Errorf("batch on %s: %w", s.on, err)
}

// lockProbe locks a table as a batch does, and none of its rows.
type lockProbe struct{ table, sql string }

func deleteProbe(n policy.Name) lockProbe {
	return lockProbe{n.String(), "DELETE FROM ONLY " + tableName(n) + " WHERE false"}
}

// lockProbes are the tables that a batch of the arm locks.
func (a *Arm) lockProbes() []lockProbe {
	probes := []lockProbe{deleteProbe(a.table.name)}
	if a.owner != nil {
		lock := " FOR SHARE"
		if a.arm.Owner.Final {
			lock = ""
		}
		probes = append(probes, lockProbe{a.owner.name.String(), "SELECT FROM ONLY " + tableName(a.owner.name) + " WHERE false" + lock})
	}
	for _, c := range a.children {
		probes = append(probes, deleteProbe(c.table.name))
	}
	return probes
}

// lockedTable asks which table, if any, cannot be locked as a batch locks it. A row lock leaves all free.
func lockedTable(ctx context.Context, conn *pgx.Conn, probes []lockProbe) string {
	for _, p := range probes {
		_, err := transaction(ctx, conn, []call{{sql: "SELECT set_config('lock_timeout', '10ms', true)"}, {sql: p.sql}})
		var pg *pgconn.PgError
		if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			rollback(conn)
		}
		if errors.As(err, &pg) && pg.Code == codeLockNotAvailable {
			return p.table
		}
	}
	return ""
}

// plain is a server's message without its SQLSTATE and severity.
func plain(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Message
	}
	return err.Error()
}
