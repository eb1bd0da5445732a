package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/policy"
	engine "github.com/prunectl/prunectl/pruner/postgres"
	"github.com/prunectl/prunectl/purge"
)

// purgeLimit is how many rows one transaction of a purge removes at most.
const purgeLimit = 1000

// Purge removes all connections of a tenant for good, see [connections.Store], as package purge does: in bounded batches of a
// transaction each, whose commits wait for the disk, so that it can be run again after it was cut short. Rows that somebody
// holds are passed over. What the look at the end finds is tried once more, and looked for again.
//
// It needs transactions of its own: the error is [ErrInTransaction] where the store is in one. It is a
// *[engine.RefusedError] where the catalog forbids it, a foreign key of somebody's to the table say; nothing was touched then.
// It sees what is committed: a connection that somebody creates in a transaction which is still open at the end stays.
func (s *Store) Purge(ctx context.Context, tenant string) (int, error) {
	if err := connections.CheckTenant(tenant); err != nil {
		return 0, err
	}
	removed, err := s.removeAll(ctx, tenant)
	if err != nil {
		return removed, failed(err, "purge connections of tenant %q", tenant)
	}
	return removed, nil
}

func (s *Store) removeAll(ctx context.Context, tenant string) (int, error) {
	db, err := s.idle()
	if err != nil {
		return 0, err
	}
	// A tenant without connections needs no right to remove any, and its name may look like a pattern, which the engine takes
	// only if it is somebody's.
	if is, err := s.has(ctx, tenant); err != nil || !is {
		return 0, err
	}
	// That the database has other tables of tenants is what a purge by a policy file is for.
	in, err := engine.InspectOwnPurge(ctx, db, policy.Purge{
		Name: "connections", Key: "tenant_id", Tables: []policy.PurgeTable{{Table: policy.Name{Schema: s.schema, Table: "connections"}}}, Batch: policy.Batch{Limit: purgeLimit},
	}, tenant)
	if err != nil {
		return 0, err
	}
	remover, err := in.Open(db)
	if err != nil {
		return 0, err
	}
	report, err := purge.Run(ctx, remover, purge.Bounds{Limit: purgeLimit})
	return report.Removed(), ended(report, err)
}

// ended is the error of a purge that did not prove that nothing is left.
func ended(r purge.Report, err error) error {
	switch {
	case err != nil:
		return err
	case r.Proof == nil:
		return fmt.Errorf("it ended (%s) without a look at what is left; run it again", r.Stop)
	case !r.Proof.Empty():
		return &connections.LeftError{Rows: r.Proof.Rows(), More: r.Proof.Left[0].More}
	}
	return nil // also where another purge of the tenant was under way, and has removed everything
}

// idle is where the engine works: on the pool, or on a connection that is in no transaction.
func (s *Store) idle() (*engine.DB, error) {
	var conn *pgx.Conn
	switch db := s.db.(type) {
	case *pgxpool.Pool:
		return engine.Pool(db), nil
	case *pgxpool.Conn:
		conn = db.Conn()
	case *pgx.Conn:
		conn = db
	}
	if conn == nil || conn.PgConn().TxStatus() != 'I' && !conn.IsClosed() {
		return nil, ErrInTransaction
	}
	return engine.Conn(conn), nil
}

// has reports whether the tenant has a connection, revoked or not. In a transaction, so that rows which a policy hides are an
// error, and not none.
func (s *Store) has(ctx context.Context, tenant string) (is bool, err error) {
	tx, err := s.db.(interface {
		BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	}).BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly})
	if err != nil {
		return false, err
	}
	var security string
	if err = tx.QueryRow(ctx, s.text.settings).Scan(&security); err == nil {
		err = tx.QueryRow(ctx, s.text.has, tenant).Scan(&is)
	}
	return is, errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
}
