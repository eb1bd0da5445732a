package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/sabotage"
)

var update = flag.Bool("update", false, "write this package's part of docs/sabotage.md anew")

// TestSabotage takes each clause of each statement of the store out, and has a named check notice.
func TestSabotage(t *testing.T) {
	sabotage.Suite{
		Package: "domainevents/postgres", Statements: postgres.Statements("public"), Edits: edits(), Exempt: exempt, Victims: slices.Sorted(maps.Keys(victims)),
		Run: func(t *testing.T, victim, statement, sql string) error {
			w := &world{t: t, db: installed.New(t), store: store, text: postgres.Statements("public")}
			if statement != "" {
				w.store, w.text[statement] = postgres.With("public", statement, sql), sql
			}
			w.conn = w.patient("1s")
			return victims[victim](bounded(t), w)
		},
	}.Test(t, filepath.Join("..", "..", "docs", "sabotage.md"), *update)
}

// world is where a victim runs: a store, and a database of its own.
type world struct {
	t     *testing.T
	db    *pgtest.DB
	conn  *pgx.Conn
	store *postgres.Store
	text  map[string]string
}

// patient is a connection that waits so long for a lock, and for an end.
func (w *world) patient(lock string) *pgx.Conn {
	return w.db.Conn(w.t, func(c *pgx.ConnConfig) {
		c.RuntimeParams["lock_timeout"], c.RuntimeParams["statement_timeout"] = lock, "3s"
	})
}

// holds is a transaction of somebody else, which has done this.
func (w *world) holds(ctx context.Context, sql string) (pgx.Tx, error) {
	tx, err := w.db.Conn(w.t).Begin(ctx)
	if err == nil {
		_, err = tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
	}
	return tx, err
}

// waits runs f until its session waits for another one, and then goes on with meanwhile before it looks at what came of it.
func (w *world) waits(ctx context.Context, conn *pgx.Conn, f func() error, meanwhile func() error) error {
	done, err := w.db.Waiting(ctx, conn, f)
	if err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return errors.Join(err, <-done)
	}
	return <-done
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// same compares what a query says, as text.
func (w *world) same(sql, want string) error {
	return differs(sql, w.db.Text(w.t, "select coalesce(("+sql+")::text, '-')"), want)
}

func differs(what string, got, want any) error {
	if g, v := fmt.Sprint(got), fmt.Sprint(want); g != v {
		return fmt.Errorf("%s: %s, not %s", strings.Join(strings.Fields(what), " "), g, v)
	}
	return nil
}

// filled empties the tables and fills them. Its ages are minutes before now, in which no test waits.
func (w *world) filled(script string) {
	w.db.Exec(w.t, "truncate domain_events, domain_event_deliveries, domain_event_receivers restart identity cascade; "+script)
}

const deliveries = `string_agg(event_id || receiver || ':' || status, ' ' order by event_id, receiver, target)`
