package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/database"
)

// ledger is where the migration library keeps what was applied: a table of the
// component's own in its schema. It is a database.Store of ours and not the
// library's, because that one splits names at dots, keeps times without a zone,
// and records a version without looking at what the version made.
type ledger struct {
	component *component
	schema    string
}

var _ database.StoreExtender = ledger{}

// record is one applied version.
type record struct {
	number  int
	applied time.Time
}

func (l ledger) name() string { return "prunectl_" + l.component.name + "_migrations" }

func (l ledger) qualified() string { return pgx.Identifier{l.schema, l.name()}.Sanitize() }

// createText makes the table. It is part of the printed SQL too.
func (l ledger) createText() string {
	return `CREATE TABLE IF NOT EXISTS ` + l.qualified() + ` (
  version    bigint      NOT NULL PRIMARY KEY,
  name       text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`
}

// records returns what was applied, newest version first; none where there is no
// ledger.
func (l ledger) records(ctx context.Context, db database.DBTxConn) ([]record, error) {
	exists, err := l.TableExists(ctx, db)
	if err != nil || !exists {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT version, applied_at FROM `+l.qualified()+` ORDER BY version DESC`)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.qualified(), err)
	}
	defer rows.Close()
	var all []record
	for rows.Next() {
		var r record
		if err := rows.Scan(&r.number, &r.applied); err != nil {
			return nil, fmt.Errorf("read %s: %w", l.qualified(), err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", l.qualified(), err)
	}
	return all, nil
}

// Tablename implements [database.Store].
func (l ledger) Tablename() string { return l.qualified() }

// TableExists implements [database.StoreExtender].
func (l ledger) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	var exists bool
	err := db.QueryRowContext(ctx, `
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = $1 AND c.relname = $2)`, l.schema, l.name()).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", l.qualified(), err)
	}
	return exists, nil
}

// CreateVersionTable implements [database.Store]. It leaves that to Insert: the
// table comes in the transaction of the first version, so that nothing is left of
// one that failed, and so that this version can make the schema.
func (l ledger) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }

// Insert implements [database.Store]. It records a version only when every index
// that the version declares is there, valid and as declared.
func (l ledger) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	if req.Version == 0 {
		return nil // the library's mark of an empty ledger; ours says it by being empty
	}
	v := l.component.versions[req.Version-1]
	if v.number == 1 {
		if _, err := db.ExecContext(ctx, l.createText()); err != nil {
			return fmt.Errorf("create %s: %w", l.qualified(), err)
		}
	}
	for _, x := range v.indexes {
		found, err := lookUp(ctx, db, l.schema, x)
		if err != nil {
			return err
		}
		if fault := found.fault(x); fault != "" {
			return fmt.Errorf("not recorded: %s", fault)
		}
	}
	_, err := db.ExecContext(ctx, `INSERT INTO `+l.qualified()+` (version, name) VALUES ($1, $2)`, req.Version, v.name)
	if err != nil {
		return fmt.Errorf("record in %s: %w", l.qualified(), err)
	}
	return nil
}

// Delete implements [database.Store].
func (l ledger) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, `DELETE FROM `+l.qualified()+` WHERE version = $1`, version)
	if err != nil {
		return fmt.Errorf("remove the record from %s: %w", l.qualified(), err)
	}
	return nil
}

// GetMigration implements [database.Store].
func (l ledger) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	exists, err := l.TableExists(ctx, db)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, database.ErrVersionNotFound
	}
	found := database.GetMigrationResult{IsApplied: true}
	err = db.QueryRowContext(ctx, `SELECT applied_at FROM `+l.qualified()+` WHERE version = $1`, version).Scan(&found.Timestamp)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, database.ErrVersionNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.qualified(), err)
	}
	return &found, nil
}

// GetLatestVersion implements [database.Store].
func (l ledger) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	all, err := l.records(ctx, db)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return int64(all[0].number), nil
}

// ListMigrations implements [database.Store].
func (l ledger) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	all, err := l.records(ctx, db)
	if err != nil {
		return nil, err
	}
	var list []*database.ListMigrationsResult
	for _, r := range all {
		list = append(list, &database.ListMigrationsResult{Version: int64(r.number), IsApplied: true})
	}
	return append(list, &database.ListMigrationsResult{IsApplied: true}), nil // the library wants a version 0 at the end
}
