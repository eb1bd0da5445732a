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
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/postgres"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/sabotage"
)

var update = flag.Bool("update", false, "write this package's part of docs/sabotage.md anew")

// TestSabotage takes each clause of each statement of the store out, and has a named check notice.
func TestSabotage(t *testing.T) {
	sabotage.Suite{
		Package: "connections/postgres", Statements: postgres.Statements("public"), Edits: edits(), Victims: slices.Sorted(maps.Keys(victims)),
		Run: func(t *testing.T, victim, statement, sql string) error {
			w := &world{t: t, db: installed.New(t), text: postgres.Statements("public"), store: store}
			if statement != "" {
				w.text[statement] = sql
				w.store = func(db postgres.DB) *postgres.Store { return postgres.With(db, statement, sql) }
			}
			w.conn = w.db.Conn(t, func(c *pgx.ConnConfig) {
				c.RuntimeParams["lock_timeout"], c.RuntimeParams["statement_timeout"] = "10s", "20s"
			})
			return victims[victim](bounded(t), w)
		},
	}.Test(t, filepath.Join("..", "..", "docs", "sabotage.md"), *update)
}

// world is where a victim runs: a store that has an edit, and a database of its own.
type world struct {
	t     *testing.T
	db    *pgtest.DB
	conn  *pgx.Conn
	store func(postgres.DB) *postgres.Store
	text  map[string]string
}

// exec changes the table, as one who may.
func (w *world) exec(ctx context.Context, sql string) error {
	_, err := w.conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// same compares what a query says, as text.
func (w *world) same(ctx context.Context, sql, want string) error {
	var got string
	if err := w.conn.QueryRow(ctx, "select coalesce(("+sql+")::text, '-')").Scan(&got); err != nil {
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

// is wants this error.
func is(what string, err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s ended with %v, and not with %w", what, err, want)
	}
	return nil
}

// waits runs f until the session of w.conn waits for a row that another one holds. That does what is meanwhile, and is told
// when; then f goes on.
func (w *world) waits(ctx context.Context, meanwhile string, f func() error) (since time.Time, err error) {
	other := w.db.Conn(w.t)
	tx, err := other.Begin(ctx)
	if err != nil {
		return since, err
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, "select from connections where tenant_id = 't' and id = 'c' for update"); err != nil {
		return since, err
	}
	done, err := w.db.Waiting(ctx, w.conn, f)
	if err != nil {
		return since, err
	}
	err = tx.QueryRow(ctx, "select clock_timestamp()").Scan(&since)
	if err == nil {
		_, err = tx.Exec(ctx, meanwhile)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return since, errors.Join(err, tx.Rollback(ctx), <-done)
	}
	return since, <-done
}

// rows are two tenants with two connections each, one of one that is revoked, and one that was updated by somebody whose
// clock is ahead.
const rows = `insert into connections (tenant_id, id, kind, name, settings, secret, created_at, updated_at, revoked_at) values
  ('s', 'c', 'k', 'n', '{"a": 1}', 'S', '2020-01-01', '2020-01-01', null), ('s', 'd', 'k', 'n', '{"a": 1}', 'S', '2020-01-01', '2020-01-01', null),
  ('t', 'c', 'k', 'n', '{"a": 1}', 'S', '2020-01-01', '2020-01-01', null), ('t', 'd', 'k', 'n', '{"a": 1}', 'S', '2020-01-01', '2020-01-01', null),
  ('t', 'gone', 'k', 'n', '{"a": 1}', null, '2020-01-01', '2020-01-01', '2020-02-01'), ('t', 'late', 'k', 'n', '{"a": 1}', 'S', '2020-01-01', '2090-01-01', null);`

// changed lists what is not as in rows.
const changed = `select string_agg(concat_ws('|', tenant_id || '/' || id, name, settings, coalesce(encode(secret, 'escape'), '-'),
  case when updated_at between now() - interval '1 hour' and now() + interval '1 hour' then 'now' else updated_at::date::text end,
  case when revoked_at between now() - interval '1 hour' and now() + interval '1 hour' then 'now' else coalesce(revoked_at::date::text, '-') end), ' ' order by tenant_id, id)
  from connections where (name, settings::text, secret, updated_at) is distinct from ('n', '{"a": 1}', 'S', '2020-01-01') or revoked_at is not null`

const unchanged = `t/gone|n|{"a": 1}|-|2020-01-01|2020-02-01 t/late|n|{"a": 1}|S|2090-01-01|-`

var victims = map[string]func(context.Context, *world) error{
	// The second creation is refused, and does not end the transaction that it is in.
	"what is created": func(ctx context.Context, w *world) error {
		return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
			s := w.store(tx)
			if _, err := s.Create(ctx, draft("t", "c")); err != nil {
				return err
			}
			_, err := s.Create(ctx, draft("t", "c"))
			if err := is("the second creation", err, connections.ErrExists); err != nil {
				return err
			}
			_, err = s.Create(ctx, draft("t", "d"))
			return errors.Join(err, w.same(ctx, "select count(*) from connections", "2"))
		})
	},
	"what is got": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, rows+"update connections set secret = convert_to(tenant_id || id, 'UTF8') where revoked_at is null"); err != nil {
			return err
		}
		for _, key := range [][2]string{{"s", "c"}, {"s", "d"}, {"t", "c"}, {"t", "d"}} {
			c, err := w.store(w.conn).Get(ctx, key[0], key[1])
			if err != nil {
				return err
			}
			if err := differs(strings.Join(key[:], "/"), c.ID+" "+string(c.Secret.Reveal()), key[1]+" "+key[0]+key[1]); err != nil {
				return err
			}
		}
		_, err := w.store(w.conn).Get(ctx, "t", "gone")
		return is("to get one that is revoked", err, connections.ErrNotFound)
	},
	"what is listed": func(ctx context.Context, w *world) error {
		err := w.exec(ctx, rows+`insert into connections (tenant_id, id, kind, name, created_at) values ('t', 'b', 'k', 'n', '2020-01-02'), ('t', 'a', 'k', 'n', '2020-01-03'), ('t', 'zz', 'k', 'n', '2020-01-03')`)
		if err != nil {
			return err
		}
		for _, limit := range []int{1, 2, 3, 100} {
			var got []string
			var page connections.Page
			for n := 0; n == 0 || page.After != ""; n++ {
				if n > 10 {
					return fmt.Errorf("a list by pages of %d has no end: %s", limit, got)
				}
				page.Limit = limit
				l, err := w.store(w.conn).List(ctx, "t", page)
				if err != nil {
					return err
				}
				for _, c := range l.Connections {
					got = append(got, c.ID)
				}
				page.After = l.Next
			}
			if err := differs(fmt.Sprintf("the list by pages of %d", limit), got, "[c d late b a zz]"); err != nil {
				return err
			}
		}
		// The store cuts a page to its length: what the server reads is not seen by it.
		tag, err := w.conn.Exec(ctx, w.text["list"], "t", time.Time{}, "", int64(2))
		return errors.Join(err, differs("rows up to a limit of 2", tag.RowsAffected(), 2))
	},
	"what is updated": func(ctx context.Context, w *world) error {
		name, other, none := "m", connections.NewSecret([]byte("T")), connections.Secret{}
		for _, c := range []struct {
			id     string
			change connections.Change
			want   string
		}{
			{"c", connections.Change{Name: &name}, `t/c|m|{"a": 1}|S|now|-`},
			{"c", connections.Change{Settings: []byte(`{"b": 2}`)}, `t/c|n|{"b": 2}|S|now|-`},
			{"c", connections.Change{Secret: &other}, `t/c|n|{"a": 1}|T|now|-`},
			{"c", connections.Change{Secret: &none}, `t/c|n|{"a": 1}|-|now|-`},
			{"late", connections.Change{Name: &name}, `t/late|m|{"a": 1}|S|2090-01-01|-`},
		} {
			if err := w.exec(ctx, "truncate connections; "+rows); err != nil {
				return err
			}
			if _, err := w.store(w.conn).Update(ctx, "t", c.id, c.change); err != nil {
				return err
			}
			want := c.want + " " + unchanged
			if c.id == "late" {
				want = strings.Replace(unchanged, "t/late|n|", "t/late|m|", 1)
			}
			if err := w.same(ctx, changed, want); err != nil {
				return err
			}
		}
		_, err := w.store(w.conn).Update(ctx, "t", "gone", connections.Change{Name: &name})
		return is("to update one that is revoked", err, connections.ErrNotFound)
	},
	"an update that waits": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, rows); err != nil {
			return err
		}
		name := "m"
		var c connections.Connection
		run := func() (err error) {
			c, err = w.store(w.conn).Update(ctx, "t", "c", connections.Change{Name: &name})
			return err
		}
		since, err := w.waits(ctx, "update connections set name = 'o' where tenant_id = 't' and id = 'c'", run)
		if err != nil {
			return err
		}
		if c.Updated.Before(since) {
			return fmt.Errorf("it is of %s, and waited until %s", c.Updated, since)
		}
		_, err = w.waits(ctx, "update connections set revoked_at = clock_timestamp(), secret = null where tenant_id = 't' and id = 'c'", run)
		return is("an update that waited for a revocation", err, connections.ErrNotFound)
	},
	"what is revoked": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, rows); err != nil {
			return err
		}
		var first, again [3]time.Time
		for _, times := range []*[3]time.Time{&first, &again} {
			for i, id := range []string{"c", "gone", "late"} {
				var err error
				if times[i], err = w.store(w.conn).Revoke(ctx, "t", id); err != nil {
					return err
				}
			}
		}
		return errors.Join(differs("revoked once more", again, first),
			differs("the first time", first[1].Format(time.DateOnly)+" "+first[2].Format(time.DateOnly), "2020-02-01 2090-01-01"),
			w.same(ctx, changed, `t/c|n|{"a": 1}|-|2020-01-01|now t/gone|n|{"a": 1}|-|2020-01-01|2020-02-01 t/late|n|{"a": 1}|-|2090-01-01|2090-01-01`))
	},
	"a revocation that waits": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, rows); err != nil {
			return err
		}
		var at time.Time
		run := func() (err error) {
			at, err = w.store(w.conn).Revoke(ctx, "t", "c")
			return err
		}
		since, err := w.waits(ctx, "update connections set name = 'o' where tenant_id = 't' and id = 'c'", run)
		if err != nil {
			return err
		}
		if at.Before(since) {
			return fmt.Errorf("it is of %s, and waited until %s", at, since)
		}
		if err := w.exec(ctx, "truncate connections; "+rows); err != nil {
			return err
		}
		if _, err := w.waits(ctx, "update connections set revoked_at = '2020-03-01', secret = null where tenant_id = 't' and id = 'c'", run); err != nil {
			return err
		}
		return differs("the time of the first", at.Format(time.DateOnly), "2020-03-01")
	},
	// Who may not see the rows is told so, and not that there are none.
	"rows that a policy hides": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, rows+"alter table connections enable row level security"); err != nil {
			return err
		}
		n, err := w.store(as(w.t, w.db, "connections_sabotage", "select, update, delete")).Purge(ctx, "t")
		var pg *pgconn.PgError
		if n != 0 || !errors.As(err, &pg) || pg.Code != "42501" {
			return fmt.Errorf("a purge ended with %d removed and %v", n, err)
		}
		return nil
	},
	"who has a connection": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, rows+"delete from connections where tenant_id = 's' and id = 'd'; update connections set revoked_at = now(), secret = null where tenant_id = 's'"); err != nil {
			return err
		}
		for tenant, want := range map[string]bool{"s": true, "t": true, "nobody": false} {
			var got bool
			if err := w.conn.QueryRow(ctx, w.text["has"], tenant).Scan(&got); err != nil {
				return err
			}
			if err := differs(tenant+" has some", got, want); err != nil {
				return err
			}
		}
		return nil
	},
	// One row through the key: half of the table is the tenant's, so that reading on until there is one looks cheap, and it is
	// the half behind the other.
	"what that reads": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, `insert into connections (tenant_id, id, kind, name) select case when n <= 5000 then 'a' else 't' end, n::text, 'k', 'n' from generate_series(1, 10000) n; analyze connections`); err != nil {
			return err
		}
		for _, generic := range []bool{true, false} {
			p, err := pgxplan.Explain(ctx, w.conn, pgxplan.Statement{SQL: w.text["has"], Args: []any{"t"}, Generic: generic, Analyze: true})
			if err != nil {
				return err
			}
			if n := p.Buffers(); n > 10 {
				return fmt.Errorf("it read %d buffers", n)
			}
		}
		return nil
	},
}
