package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/database"
)

// found is what the schema has under the name of a declared index.
type found struct {
	exists     bool
	kind       string // pg_class.relkind
	table      string // in the same schema, indexes never leave their table's
	valid      bool
	unique     bool
	where      string // its predicate
	definition string // pg_get_indexdef
	builder    int    // a session that is building it, 0 where none is seen
}

// lookUp reads the catalog. The progress view shows a builder of another role
// only to those who may read all statistics; for others builder is 0, and a drop
// waits for that build to end.
func lookUp(ctx context.Context, db database.DBTxConn, schema string, x Index) (found, error) {
	f := found{exists: true}
	err := db.QueryRowContext(ctx, `
SELECT c.relkind::text,
       coalesce(t.relname, ''),
       coalesce(i.indisvalid AND i.indisready AND i.indislive, false),
       coalesce(i.indisunique, false),
       coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), ''),
       coalesce(pg_catalog.pg_get_indexdef(i.indexrelid), ''),
       coalesce((SELECT max(p.pid) FROM pg_catalog.pg_stat_progress_create_index p
                  WHERE p.index_relid = c.oid AND p.datid = (SELECT d.oid FROM pg_catalog.pg_database d
                                                              WHERE d.datname = pg_catalog.current_database())), 0)
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
  LEFT JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
 WHERE n.nspname = $1 AND c.relname = $2`, schema, x.Name).
		Scan(&f.kind, &f.table, &f.valid, &f.unique, &f.where, &f.definition, &f.builder)
	if errors.Is(err, sql.ErrNoRows) {
		return found{}, nil
	}
	if err != nil {
		return found{}, fmt.Errorf("look for index %s: %w", pgx.Identifier{schema, x.Name}.Sanitize(), err)
	}
	return f, nil
}

// declared reports whether f is defined as x is, valid or not. Storage parameters
// and the tablespace are left to those who run the database.
func (f found) declared(x Index) bool {
	_, method, _ := strings.Cut(f.definition, "."+f.table+" USING ") // with the table, which needs no quotes: a schema can have any name
	method, _, _ = strings.Cut(method, " WHERE ")
	method, _, _ = strings.Cut(method, " WITH (")
	return f.kind == "i" && f.table == x.Table && !f.unique && f.where == x.Where && method == x.method()
}

// fault says what is wrong with f as the index x, nothing where nothing is.
func (f found) fault(x Index) string {
	switch {
	case !f.exists:
		return fmt.Sprintf("index %s is missing", x.Name)
	case !f.declared(x):
		return f.differs(x)
	case !f.valid:
		return fmt.Sprintf("index %s is not valid", x.Name)
	}
	return ""
}

func (f found) differs(x Index) string {
	is := f.definition
	if is == "" {
		is = "no index"
	}
	want := x.method() + " on " + x.Table
	if x.Where != "" {
		want += " where " + x.Where
	}
	return fmt.Sprintf("%s is %s and not the declared %s", x.Name, is, want)
}

// create is the statement that builds the index in a schema, whose name comes quoted; how are
// its first words.
func (x Index) create(how, schema string) string {
	text := fmt.Sprintf("%s %s\n  ON %s.%s (%s)", how, x.Name, schema, x.Table, strings.Join(x.Columns, ", "))
	if x.Where != "" {
		text += "\n  WHERE " + x.Where
	}
	return text
}

func (x Index) method() string { return "btree (" + strings.Join(x.Columns, ", ") + ")" }
