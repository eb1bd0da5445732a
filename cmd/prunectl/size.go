package main

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

// sizeSQL estimates the rows of a table as the planner does, by what the last ANALYZE found on a page; null where there
// was none. A table that is locked as a whole is not waited for.
const sizeSQL = `
SELECT CASE WHEN pg_relation_size(c.oid) = 0 THEN 0
            WHEN c.relpages > 0 AND c.reltuples >= 0
            THEN round(c.reltuples::numeric / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::int))::bigint END
     , pg_total_relation_size(c.oid)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'm')`

// size is how many rows the table has about, and how many bytes. It is asked beside the work, so a failure leaves it out.
func (s *session) size(ctx context.Context, sw policy.Sweep) (rows, bytes *int64) {
	err := s.read(ctx, sw, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, sizeSQL, sw.Table.Schema, sw.Table.Table).Scan(&rows, &bytes)
	})
	if err != nil {
		return nil, nil
	}
	return rows, bytes
}

// read asks in a read-only transaction, under the timeouts of the sweep.
func (s *session) read(ctx context.Context, sw policy.Sweep, f func(pgx.Tx) error) error {
	sw = sw.WithDefaults()
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		const bounds = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)"
		if _, err := tx.Exec(ctx, bounds, millis(sw.Timeouts.Lock), millis(sw.Timeouts.Statement)); err != nil {
			return err
		}
		return f(tx)
	})
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
