package preflight

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// DB begins transactions: a *pgxpool.Pool, an idle *pgx.Conn, or a pgx.Tx, whose
// uncommitted changes are then seen.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// errInTransaction is the answer to a connection whose transaction we would end.
var errInTransaction = errors.New("the connection is inside a transaction; give the transaction itself, a pool or an idle connection")

// Check compares a component, in a schema, with its contract; where schema is empty
// it is the one in which the component is installed unless told otherwise. It reads
// the catalog and the ledger in a read-only transaction that is rolled back, takes no
// lock that anybody waits for, waits at most five seconds for one itself, and works on
// a standby. Several may check at once.
//
// What is to be refused is looked at twice, since the server's own functions show
// definitions as they are, whatever the snapshot: beside somebody's DDL one look can
// see half of it.
//
// The error says that the check was not made: ErrUnknownComponent, ErrRights,
// ErrLocked, or the server's. What was found is in the report, also that nothing is
// installed; whether that is good enough to go on is [Report.Err]:
//
//	report, err := preflight.Check(ctx, pool, "domain_events", "")
//	if err == nil {
//		err = report.Err()
//	}
func Check(ctx context.Context, db DB, component, schema string) (Report, error) {
	k, err := find(component)
	if err != nil {
		return Report{}, err
	}
	schema = cmp.Or(schema, k.schema)
	r, err := look(ctx, db, component, schema, k)
	if err == nil && r.refused() > 0 {
		r, err = look(ctx, db, component, schema, k)
	}
	return r, err
}

// look checks once.
func look(ctx context.Context, db DB, component, schema string, k known) (Report, error) {
	r := Report{Component: component, Schema: schema, Known: k.newest(), Pending: []Version{}, Findings: []Finding{}}
	tx, err := begin(ctx, db)
	if err != nil {
		return r, explain(component, schema, err)
	}
	defer func() {
		// A context that is over must not keep the connection in its transaction.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(ctx) // nothing was written, and a broken connection says so when it is used
	}()
	if err := r.fill(ctx, ask(tx), k); err != nil {
		return r, explain(component, schema, err)
	}
	return r, nil
}

// begin begins with one snapshot for all that is read, unless the transaction is the
// caller's.
func begin(ctx context.Context, db DB) (pgx.Tx, error) {
	if c, ok := db.(*pgx.Conn); ok && !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		return nil, errInTransaction
	}
	type beginner interface {
		BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	}
	if b, ok := db.(beginner); ok {
		return b.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	}
	return db.Begin(ctx)
}

// fill makes the report.
func (r *Report) fill(ctx context.Context, a asker, k known) error {
	if err := a.each(ctx, settings, func(pgx.CollectableRow) error { return nil }); err != nil {
		return err
	}
	p, err := a.place(ctx, r.Component, r.Schema)
	if err != nil {
		return err
	}
	r.Pending = p.pending(k)
	against := k.newest()
	if n := len(p.records); n > 0 {
		r.Installed = &p.records[n-1]
		if *r.Installed > k.newest() {
			r.State = Newer
			return nil
		}
		against = max(*r.Installed, 1)
	}
	want, err := k.in(against, r.Schema, p.plain)
	if err != nil {
		return err
	}
	have, err := a.read(ctx, r.Schema, want.tables(), want.functions())
	if err != nil {
		return err
	}
	c := comparison{component: r.Component, schema: r.Schema}
	if r.Installed == nil {
		r.State = NotInstalled
		c.notInstalled(r, p, want, have)
	} else {
		c.compare(want, have)
		switch {
		case len(r.Pending) > 0:
			r.State = Pending
		case c.refused():
			r.State = Drift
		default:
			r.State = UpToDate
		}
	}
	r.Findings = append(r.Findings, c.findings...)
	return nil
}

func (c contract) tables() []string {
	names := []string{}
	for _, t := range c.Tables {
		names = append(names, t.Name)
	}
	return names
}

func (c contract) functions() []string {
	names := []string{}
	for _, f := range c.Functions {
		names = append(names, f.Name)
	}
	return names
}
