package retention_test

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
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/internal/sabotage"
)

var update = flag.Bool("update", false, "write this package's part of docs/sabotage.md anew")

// TestSabotage takes each clause of each statement of the package out, and has a named check notice. The sweeps are not
// among them: their statements are the engine's.
func TestSabotage(t *testing.T) {
	sabotage.Suite{
		Package: "inboxoutbox/retention", Statements: retention.Statements(inboxoutbox.DefaultSchema), Edits: edits(), Exempt: exempt, Victims: slices.Sorted(maps.Keys(victims)),
		Run: func(t *testing.T, victim, statement, sql string) error {
			db := installed.New(t)
			w := &world{t: t, text: retention.Statements(inboxoutbox.DefaultSchema)}
			if statement != "" {
				w.text[statement] = sql
			}
			connect := func() *pgx.Conn {
				return db.Conn(t, func(c *pgx.ConnConfig) {
					c.RuntimeParams["search_path"], c.RuntimeParams["lock_timeout"], c.RuntimeParams["statement_timeout"] = inboxoutbox.DefaultSchema, "1s", "3s"
				})
			}
			w.conn, w.other = connect(), connect()
			return victims[victim](bounded(t), w)
		},
	}.Test(t, filepath.Join("..", "..", "docs", "sabotage.md"), *update)
}

// world is where a victim runs, in a database of its own.
type world struct {
	t           *testing.T
	conn, other *pgx.Conn
	text        map[string]string
}

// answer is what a statement answers, its columns as text.
func (w *world) answer(ctx context.Context, db interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, name string, args ...any) (string, error) {
	rows, err := db.Query(ctx, w.text[name], args...)
	if err != nil {
		return "", err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return fmt.Sprint(values...), err
	})
	return strings.Join(all, "; "), err
}

func (w *world) exec(ctx context.Context, sql string) error {
	_, err := w.conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

func differs(what string, got, want any) error {
	if g, v := fmt.Sprint(got), fmt.Sprint(want); g != v {
		return fmt.Errorf("%s: %s, not %s", what, g, v)
	}
	return nil
}

// aged fills each ledger with rows of 1 to 9 days ago, half a day more, and with some that have not ended.
const aged = `insert into inbox (handler, event_id, state, completed_at) select 'h', n::text, 'completed', now() - (n + 0.5) * interval '1 day' from generate_series(0, 9) n; insert into inbox (handler, event_id) values ('h', 'open');
insert into outbox (event_id, topic, body, delivered_at) select n::text, 't', '1', now() - (n + 0.5) * interval '1 day' from generate_series(0, 9) n; insert into outbox (event_id, topic, body) values ('open', 't', '1');
insert into leases select 'h', n::text, 'v', gen_random_uuid(), now() - (n + 0.5) * interval '1 day' from generate_series(-3, 9) n`

const settings = "select fingerprint || settings || recorded_by || (recorded_at > now() - interval '1 hour')::text from settings"

var victims = map[string]func(context.Context, *world) error{
	"the first policy is recorded": func(ctx context.Context, w *world) error {
		a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
		if _, err := w.answer(ctx, w.conn, "record", a, `{"batch": 1}`, "me"); err != nil {
			return err
		}
		again, err := w.answer(ctx, w.conn, "record", b, `{}`, "you")
		if err != nil {
			return err
		}
		var got string
		if err := w.conn.QueryRow(ctx, settings).Scan(&got); err != nil {
			return err
		}
		if err := errors.Join(differs("recorded again", again, ""), differs("recorded", got, a+`{"batch": 1}metrue`)); err != nil {
			return err
		}
		if err := w.exec(ctx, "truncate settings"); err != nil {
			return err
		}
		if _, err := w.answer(ctx, w.conn, "record", a, `{}`, ""); err != nil {
			return err
		}
		var who string
		if err := w.conn.QueryRow(ctx, "select recorded_by from settings").Scan(&who); err != nil {
			return err
		}
		return differs("recorded by", who, w.conn.Config().User)
	},
	"a policy is locked and replaced": func(ctx context.Context, w *world) error {
		a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
		if err := w.exec(ctx, "insert into settings values (true, '"+a+"', '{}', '2020-01-01', 'me')"); err != nil {
			return err
		}
		tx, err := w.other.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := w.answer(ctx, tx, "lock"); err != nil {
			return err
		}
		var free int
		if err := w.conn.QueryRow(ctx, "select count(*) from (select from settings for update skip locked) x").Scan(&free); err != nil {
			return err
		}
		if err := errors.Join(differs("rows that nobody has locked", free, 0), tx.Rollback(ctx)); err != nil {
			return err
		}
		if _, err := w.answer(ctx, w.conn, "replace", b, `{"batch": 2}`, ""); err != nil {
			return err
		}
		var got string
		if err := w.conn.QueryRow(ctx, settings).Scan(&got); err != nil {
			return err
		}
		if err := differs("replaced", got, b+`{"batch": 2}`+w.conn.Config().User+"true"); err != nil {
			return err
		}
		if _, err := w.answer(ctx, w.conn, "replace", b, `{}`, "you"); err != nil {
			return err
		}
		if err := w.conn.QueryRow(ctx, "select recorded_by from settings").Scan(&got); err != nil {
			return err
		}
		return differs("replaced by", got, "you")
	},
	"what becomes due by a shorter window": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, aged); err != nil {
			return err
		}
		const day = int64(86400)
		for _, name := range []string{"due inbox", "due outbox"} {
			for bound, want := range map[int64]string{100: "4", 3: "3"} {
				got, err := w.answer(ctx, w.conn, name, 7*day, 3*day, bound)
				if err != nil {
					return err
				}
				if err := differs(name, got, want); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"what is left": func(ctx context.Context, w *world) error {
		if err := w.exec(ctx, aged); err != nil {
			return err
		}
		now := time.Now()
		ago := func(days int) time.Time { return now.Add(-time.Duration(days) * day) }
		for bound, want := range map[int64]string{100: "5 3 4 4 3 8", 2: "2 2 2 2 2 2"} {
			got, err := w.answer(ctx, w.conn, "left", ago(8), ago(3), ago(4), ago(5), bound)
			if err != nil {
				return err
			}
			if err := differs(fmt.Sprintf("left, up to %d", bound), got, want); err != nil {
				return err
			}
		}
		return nil
	},
}

// edits take each clause out. Where nothing stands instead, a condition is made true, an order is turned round, a bound is
// a thousand times as much, and a lock is not taken.
func edits() (all []sabotage.Edit) {
	on := func(statement, victim string, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, sabotage.Edit{Statement: statement, Clause: pairs[i], Instead: pairs[i+1], Victim: victim})
		}
	}
	const values = "VALUES ($1::text, $2::text::jsonb, statement_timestamp(), coalesce(nullif($3::text, ''), session_user))"
	on("record", "the first policy is recorded",
		values, "VALUES ($1::text, $2::text::jsonb, statement_timestamp(), coalesce($3::text, session_user))",
		values, "VALUES ($1::text, $2::text::jsonb, statement_timestamp(), nullif($3::text, ''))",
		values, "VALUES ($1::text, $2::text::jsonb, '2020-01-01', coalesce(nullif($3::text, ''), session_user))",
		"ON CONFLICT (single) DO NOTHING", " ")
	const locked = `SELECT s.fingerprint, s.settings::text, s.recorded_at, s.recorded_by FROM "inbox_outbox"."settings" AS s FOR UPDATE`
	on("lock", "a policy is locked and replaced", locked, strings.TrimSuffix(locked, " FOR UPDATE"))
	on("replace", "a policy is locked and replaced",
		"SET fingerprint = $1::text,", "SET fingerprint = translate($1::text, 'b', 'c'),",
		"settings = $2::text::jsonb,", "settings = $2::text::jsonb || s.settings || '{\"batch\": 3}',",
		"recorded_at = statement_timestamp(),", "recorded_at = s.recorded_at,",
		"recorded_by = coalesce(nullif($3::text, ''), session_user)", "recorded_by = coalesce($3::text, session_user)",
		"recorded_by = coalesce(nullif($3::text, ''), session_user)", "recorded_by = nullif($3::text, '')")
	on("due inbox", "what becomes due by a shorter window",
		"AND i.completed_at >= statement_timestamp() - $1::bigint * interval '1 second'", "",
		"AND i.completed_at < statement_timestamp() - $2::bigint * interval '1 second'", "",
		"LIMIT (SELECT $3::bigint)) AS n", "")
	on("due outbox", "what becomes due by a shorter window",
		"WHERE o.delivered_at >= statement_timestamp() - $1::bigint * interval '1 second'", "",
		"AND o.delivered_at < statement_timestamp() - $2::bigint * interval '1 second'", "",
		"LIMIT (SELECT $3::bigint)) AS n", "")
	on("left", "what is left",
		"AND i.completed_at >= $1::timestamptz AND i.completed_at < $2::timestamptz", "AND i.completed_at < $2::timestamptz",
		"AND i.completed_at >= $1::timestamptz AND i.completed_at < $2::timestamptz", "AND i.completed_at >= $1::timestamptz",
		"LIMIT (SELECT $5::bigint)) AS n),", "",
		"AND i.completed_at >= $2::timestamptz", "",
		"LIMIT (SELECT $5::bigint)) AS n), (2)", "LIMIT 1000 * $5::bigint) AS n),",
		"WHERE o.delivered_at >= $1::timestamptz AND o.delivered_at < $3::timestamptz", "WHERE o.delivered_at < $3::timestamptz",
		"WHERE o.delivered_at >= $1::timestamptz AND o.delivered_at < $3::timestamptz", "WHERE o.delivered_at >= $1::timestamptz",
		"LIMIT (SELECT $5::bigint)) AS n), (3)", "LIMIT 1000 * $5::bigint) AS n),",
		"WHERE o.delivered_at >= $3::timestamptz", "",
		"LIMIT (SELECT $5::bigint)) AS n), (4)", "LIMIT 1000 * $5::bigint) AS n),",
		"WHERE l.expires_at >= $1::timestamptz AND l.expires_at < $4::timestamptz", "WHERE l.expires_at < $4::timestamptz",
		"WHERE l.expires_at >= $1::timestamptz AND l.expires_at < $4::timestamptz", "WHERE l.expires_at >= $1::timestamptz",
		"LIMIT (SELECT $5::bigint)) AS n), (5)", "LIMIT 1000 * $5::bigint) AS n),",
		"WHERE l.expires_at >= $4::timestamptz", "",
		"LIMIT (SELECT $5::bigint)) AS n)", "")
	return all
}

// exempt are the clauses that no test misses.
var exempt = func() (xs []sabotage.Exemption) {
	for _, e := range [][2]string{{"due inbox", "WHERE i.state = 'completed'"}, {"left", "WHERE i.state = 'completed'"}, {"left", "WHERE i.state = 'completed' (2)"}} {
		xs = append(xs, sabotage.Exemption{Statement: e[0], Clause: e[1], Why: "the table's constraint says it, and it is there for the predicate of the index; TestPlans holds that"})
	}
	for _, e := range [][2]string{{"due inbox", "ORDER BY i.completed_at, i.handler, i.event_id"}, {"due outbox", "ORDER BY o.delivered_at, o.record_id"},
		{"left", "ORDER BY i.completed_at, i.handler, i.event_id"}, {"left", "ORDER BY i.completed_at, i.handler, i.event_id (2)"}, {"left", "ORDER BY o.delivered_at, o.record_id"}, {"left", "ORDER BY o.delivered_at, o.record_id (2)"},
		{"left", "ORDER BY l.expires_at, l.handler, l.partition"}, {"left", "ORDER BY l.expires_at, l.handler, l.partition (2)"}} {
		xs = append(xs, sabotage.Exemption{Statement: e[0], Clause: e[1], Why: "the order of an index, in which the bound ends the reading; TestPlans holds it"})
	}
	return xs
}()
