package pgxplan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
)

// DB begins transactions: a *pgx.Conn, a *pgxpool.Pool, or a pgx.Tx, whose settings, locks and uncommitted rows then hold.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Statement is what to explain: one SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES.
type Statement struct {
	SQL      string
	Args     []any             // the values of $1, $2 and so on, as pgx takes them
	Settings map[string]string // for the transaction, such as "enable_seqscan": "off"
	Generic  bool              // the plan that serves all values, else the one for these
	Analyze  bool              // execute it, and roll it back
}

// Explain is the plan of a statement, with the catalog that the rules need. The plan is that of a prepared statement: the
// custom and the generic one differ where a plan for all values must be careful, so hold both to the rules.
func Explain(ctx context.Context, db DB, st Statement) (*explaintest.Plan, error) {
	var p *explaintest.Plan
	err := rolledBack(ctx, db, func(tx pgx.Tx) error {
		_, err := output(ctx, tx, st, func(text []byte) (err error) {
			if p, err = explaintest.Parse(text); err != nil {
				return err
			}
			if p.Catalog, err = catalog(ctx, tx.Conn(), p); err != nil {
				return fmt.Errorf("read the catalog: %w", err)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	return p, nil
}

// rolledBack runs f in a transaction, or below a savepoint of one, and takes back what it did.
func rolledBack(ctx context.Context, db DB, f func(pgx.Tx) error) (err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// A cancelled context must not keep us from it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if e := tx.Rollback(ctx); e != nil && err == nil {
			err = fmt.Errorf("roll back: %w", e)
		}
	}()
	return f(tx)
}

var prepared atomic.Int64

// output is what EXPLAIN prints; then, if there is one, is called with it in the same transaction.
func output(ctx context.Context, tx pgx.Tx, st Statement, then func(text []byte) error) (text []byte, err error) {
	conn := tx.Conn()
	mode := map[bool]string{false: "force_custom_plan", true: "force_generic_plan"}[st.Generic]
	for _, name := range slices.Sorted(maps.Keys(st.Settings)) {
		if name == "plan_cache_mode" {
			return nil, fmt.Errorf("the setting plan_cache_mode is Generic's to make")
		}
		if err := set(ctx, conn, name, st.Settings[name]); err != nil {
			return nil, err
		}
	}
	for _, s := range [][2]string{{"plan_cache_mode", mode}, {"standard_conforming_strings", "on"}} {
		if err := set(ctx, conn, s[0], s[1]); err != nil {
			return nil, err
		}
	}
	// Prepared by SQL, not by the protocol: a pooler may give that one's statements names of its own. The extended protocol
	// takes a single statement, so that nothing behind a semicolon can commit.
	name := fmt.Sprintf("explaintest_%d", prepared.Add(1))
	if _, err := run(ctx, conn, "PREPARE "+name+" AS "+st.SQL); err != nil {
		return nil, err
	}
	defer func() {
		if _, e := run(context.WithoutCancel(ctx), conn, "DEALLOCATE "+name); e != nil && err == nil {
			err = e
		}
	}()
	// An error in here must leave a transaction in which it can be deallocated.
	err = rolledBack(ctx, tx, func(tx pgx.Tx) error {
		args, err := literals(ctx, conn, name, st.Args)
		if err != nil {
			return err
		}
		options := "FORMAT JSON, VERBOSE, SETTINGS"
		if st.Analyze {
			options += ", ANALYZE, BUFFERS, WAL, TIMING OFF"
		}
		call := "EXPLAIN (" + options + ") EXECUTE " + name
		if len(args) > 0 {
			call += "(" + strings.Join(args, ", ") + ")"
		}
		rows, err := run(ctx, conn, call)
		if err != nil {
			return err
		}
		if len(rows) != 1 {
			return fmt.Errorf("EXPLAIN returned %d rows", len(rows))
		}
		if text = rows[0][0]; then != nil {
			return then(text)
		}
		return nil
	})
	return text, err
}

// run sends one statement, with texts for values, and returns its rows as text. It works in every query mode of pgx.
func run(ctx context.Context, conn *pgx.Conn, sql string, args ...string) ([][][]byte, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	r := conn.PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, r.Err
}

func set(ctx context.Context, conn *pgx.Conn, name, value string) error {
	_, err := run(ctx, conn, "SELECT set_config($1, $2, true)", name, value)
	return err
}

// literals are the arguments as SQL, encoded for the types that the server found for the parameters: EXECUTE takes no
// parameters of its own.
func literals(ctx context.Context, conn *pgx.Conn, name string, args []any) ([]string, error) {
	rows, err := run(ctx, conn, "SELECT t.t::oid FROM pg_prepared_statements s, unnest(s.parameter_types) WITH ORDINALITY t(t, n) WHERE s.name = $1 ORDER BY t.n", name)
	if err != nil {
		return nil, err
	}
	if len(rows) != len(args) {
		return nil, fmt.Errorf("the statement has %d parameters and %d arguments are given", len(rows), len(args))
	}
	sql := make([]string, len(args))
	for i, a := range args {
		var oid uint32
		if _, err := fmt.Sscan(string(rows[i][0]), &oid); err != nil {
			return nil, fmt.Errorf("type of $%d: %w", i+1, err)
		}
		text, err := conn.TypeMap().Encode(oid, pgx.TextFormatCode, a, []byte{}) // with a nil buffer an empty text would come back as a null
		switch {
		case err != nil:
			return nil, fmt.Errorf("argument $%d: %w", i+1, err)
		case text == nil:
			sql[i] = "NULL"
		default:
			sql[i] = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
		}
	}
	return sql, nil
}
