package pgxplan

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
)

// fillRows is the most that Fill inserts.
const fillRows = 2_000_000

// Fill makes a table large enough that the planner has a choice, analyses it, and commits. insert adds the rows from $1 to $2,
// such as
//
//	INSERT INTO events SELECT g, now() - g * interval '1 minute' FROM generate_series($1::bigint, $2::bigint) g
//
// It is called for 10,000 rows at first, then for as many again as there are. Where the table stays too small for 2,000,000
// rows, or a partition of it does, that is an error; partitions that are meant to stay empty are better left out.
func Fill(ctx context.Context, db DB, relation, insert string) error {
	err := committed(ctx, db, func(tx pgx.Tx) error {
		for from, to := 1, 10_000; ; from, to = to+1, 2*to {
			// Arguments go as text, whatever the types that the statement gives them.
			if _, err := run(ctx, tx.Conn(), insert, fmt.Sprint(from), fmt.Sprint(to)); err != nil {
				return err
			}
			err := enough(ctx, tx.Conn(), relation)
			if err == nil || 2*to > fillRows {
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("fill %s: %w", relation, err)
	}
	return nil
}

// Enough analyses a table that is filled already. It is an error where the table, or a partition of it, is so small that the
// planner has no choice: it rightly reads such a table whole, and rules about its plans mean nothing.
func Enough(ctx context.Context, db DB, relation string) error {
	if err := committed(ctx, db, func(tx pgx.Tx) error { return enough(ctx, tx.Conn(), relation) }); err != nil {
		return fmt.Errorf("has %s enough rows: %w", relation, err)
	}
	return nil
}

func committed(ctx context.Context, db DB, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, f)
}

// leavesSQL lists the tables below one that hold rows themselves.
const leavesSQL = `
WITH RECURSIVE below AS (
  SELECT c.oid, c.relkind FROM pg_catalog.pg_class c WHERE c.oid = $1::text::regclass
  UNION
  SELECT c.oid, c.relkind FROM below b JOIN pg_catalog.pg_inherits i ON i.inhparent = b.oid JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
)
SELECT json_build_object('Name', json_build_object('Schema', n.nspname, 'Name', c.relname),
  'Analyzed', c.reltuples >= 0, 'Rows', greatest(c.reltuples, 0)::bigint, 'Pages', greatest(c.relpages, 0))
FROM below b JOIN pg_catalog.pg_class c ON c.oid = b.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE b.relkind IN ('r', 'm') ORDER BY n.nspname, c.relname`

func enough(ctx context.Context, conn *pgx.Conn, relation string) error {
	name := quoted(relation)
	if _, err := run(ctx, conn, "ANALYZE "+name); err != nil {
		return err
	}
	rows, err := run(ctx, conn, leavesSQL, name)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s is no table, nor has it partitions", relation)
	}
	for _, row := range rows {
		var t explaintest.Table
		if err := json.Unmarshal(row[0], &t); err != nil {
			return err
		}
		if err := t.Enough(); err != nil {
			return err
		}
	}
	return nil
}

// quoted is a name as SQL.
func quoted(name string) string {
	n := explaintest.ParseName(name)
	if n.Schema == "" {
		return pgx.Identifier{n.Name}.Sanitize()
	}
	return pgx.Identifier{n.Schema, n.Name}.Sanitize()
}
