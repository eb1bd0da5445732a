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
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/sabotage"
)

var update = flag.Bool("update", false, "write this package's part of docs/sabotage.md anew")

// TestSabotage takes each clause of each statement of the store out, and has a named check notice.
func TestSabotage(t *testing.T) {
	sabotage.Suite{
		Package: "inboxoutbox/postgres", Statements: postgres.Statements(inboxoutbox.DefaultSchema), Edits: edits(), Exempt: exempt, Victims: slices.Sorted(maps.Keys(victims)),
		Run: func(t *testing.T, victim, statement, sql string) error {
			w := &world{t: t, db: installed.New(t), store: store, text: postgres.Statements(inboxoutbox.DefaultSchema)}
			if statement != "" {
				w.store, w.text[statement] = postgres.With(inboxoutbox.DefaultSchema, statement, sql), sql
			}
			w.conn = w.db.Conn(t, func(c *pgx.ConnConfig) {
				c.RuntimeParams["lock_timeout"], c.RuntimeParams["statement_timeout"], c.RuntimeParams["search_path"] = "1s", "3s", inboxoutbox.DefaultSchema
			})
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

// same compares what a query says, as text.
func (w *world) same(sql, want string) error {
	var got string
	if err := w.conn.QueryRow(context.Background(), "select coalesce(("+sql+")::text, '-')").Scan(&got); err != nil {
		return err
	}
	return differs(sql, got, want)
}

func differs(what string, got, want any) error {
	if g, v := fmt.Sprint(got), fmt.Sprint(want); g != v {
		return fmt.Errorf("%s: %s, not %s", strings.Join(strings.Fields(what), " "), g, v)
	}
	return nil
}

// exec changes the tables, as one who may.
func (w *world) exec(sql string) error {
	_, err := w.conn.PgConn().Exec(context.Background(), sql).ReadAll()
	return err
}

// lost wants a claim to be lost.
func lost(what string, err error) error {
	if !errors.Is(err, inboxoutbox.ErrClaimLost) {
		return fmt.Errorf("%s ended with %v, and not a lost claim", what, err)
	}
	return nil
}

// about wants a time to be so far from now, give or take ten seconds.
func about(what string, at time.Time, after time.Duration) error {
	if off := time.Until(at) - after; off.Abs() > 10*time.Second {
		return fmt.Errorf("%s is off by %s", what, off)
	}
	return nil
}

// The others are rows beside those that a victim changes: nothing may happen to them.
const (
	inboxRows = `select string_agg(concat_ws('|', handler || event_id, state, attempts, lock_token is not null, locked_until is not null, completed_at > now() - interval '1 hour'), ' ' order by handler, event_id) from inbox`
	leaseRows = `select string_agg(concat_ws('|', handler || partition, holder, expires_at > now()), ' ' order by handler, partition) from leases`
)
