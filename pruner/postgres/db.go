package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrInTransaction is the answer to a connection with an open transaction: a batch is a transaction of its own, and what
// it reports as removed is committed.
var ErrInTransaction = errors.New("the connection is inside a transaction; a batch commits on its own, give a pool or an idle connection")

// DB is where batches run: on the connections of a pool, or on one connection.
type DB struct {
	pool *pgxpool.Pool
	conn *pgx.Conn
}

// Pool returns a DB whose batches run on connections of the pool, one at a time.
func Pool(p *pgxpool.Pool) *DB { return &DB{pool: p} }

// Conn returns a DB whose batches run on this connection. It must be idle: not inside a transaction.
func Conn(c *pgx.Conn) *DB { return &DB{conn: c} }

// with lends a connection that is outside any transaction. A connection that comes back inside one is rolled back, so
// that the pool never gets it in that state; if that fails it is closed.
func (db *DB) with(ctx context.Context, f func(*pgx.Conn) error) error {
	conn := db.conn
	if db.pool != nil {
		c, err := db.pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer c.Release()
		conn = c.Conn()
	}
	if conn.PgConn().TxStatus() != 'I' && !conn.IsClosed() {
		return ErrInTransaction
	}
	defer func() {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			rollback(conn)
		}
	}()
	return f(conn)
}

// rollback does not take the caller's context, which may be over already.
func rollback(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackPatience)
	defer cancel()
	if err := conn.PgConn().Exec(ctx, "ROLLBACK").Close(); err != nil {
		_ = conn.Close(ctx)
	}
}

// another connects anew with the settings of conn, for a question that must not depend on conn.
func another(ctx context.Context, conn *pgx.Conn) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, conn.Config())
}

// read runs f in a read-only transaction of one snapshot, with the planner settings of a batch.
func (db *DB) read(ctx context.Context, settings string, f func(context.Context, query) error) error {
	return db.with(ctx, func(conn *pgx.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		q := query{tx: tx, mode: unnamed(conn)}
		if settings != "" {
			if err = q.exec(ctx, settings); err != nil {
				_ = tx.Rollback(ctx)
				return err
			}
		}
		err = f(ctx, q)
		if e := tx.Rollback(ctx); err == nil {
			err = e
		}
		return err
	})
}

// unnamed is the exec mode that leaves no prepared statement behind, for poolers: the simple protocol where the
// connection asks for it, else the extended protocol with an unnamed statement.
func unnamed(conn *pgx.Conn) pgx.QueryExecMode {
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return pgx.QueryExecModeSimpleProtocol
	}
	return pgx.QueryExecModeExec
}

// query asks in one transaction and one exec mode.
type query struct {
	tx   pgx.Tx
	mode pgx.QueryExecMode
}

func (q query) exec(ctx context.Context, sql string, args ...any) error {
	_, err := q.tx.Exec(ctx, sql, append([]any{q.mode}, args...)...)
	return err
}

func (q query) row(ctx context.Context, sql string, args ...any) pgx.Row {
	return q.tx.QueryRow(ctx, sql, append([]any{q.mode}, args...)...)
}

func (q query) rows(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return q.tx.Query(ctx, sql, append([]any{q.mode}, args...)...)
}

// all collects the rows of a query.
func all[T any](ctx context.Context, q query, sql string, scan func(pgx.CollectableRow) (T, error), args ...any) ([]T, error) {
	rows, err := q.rows(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
