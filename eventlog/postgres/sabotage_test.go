package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/eventlog/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/sabotage"
)

var update = flag.Bool("update", false, "write this package's part of docs/sabotage.md anew")

// TestSabotage takes each clause of each statement of the log out, and has a named check notice.
func TestSabotage(t *testing.T) {
	add, list, latest := postgres.Statements("public")
	sabotage.Suite{
		Package: "eventlog/postgres", Statements: map[string]string{"add": add, "list": list, "latest": latest},
		Edits: edits(), Victims: []string{"what is appended", "what is listed", "which sequence is the latest"},
		Run: func(t *testing.T, victim, statement, sql string) error {
			db := withRun.New(t)
			conn := db.Conn(t, func(c *pgx.ConnConfig) {
				c.RuntimeParams["lock_timeout"], c.RuntimeParams["statement_timeout"] = "1s", "3s"
			})
			log := postgres.New(conn, postgres.Options{})
			if statement != "" {
				log = postgres.With(conn, statement, sql)
			}
			ctx, cancel := context.WithTimeout(t.Context(), callPatience)
			defer cancel()
			return victims[victim](ctx, db, conn, log, t)
		},
	}.Test(t, filepath.Join("..", "..", "docs", "sabotage.md"), *update)
}

// callPatience bounds a victim.
const callPatience = 45 * time.Second

func differs(what string, got, want any) error {
	if g, v := fmt.Sprint(got), fmt.Sprint(want); g != v {
		return fmt.Errorf("%s: %s, not %s", what, g, v)
	}
	return nil
}

const events = `select coalesce(string_agg(concat_ws('|', tenant_id, run_id, sequence, type, event, created_at > now() - interval '1 hour'), ' ' order by tenant_id, run_id, sequence), '-') from run_events where tenant_id = 't'`

var victims = map[string]func(context.Context, *pgtest.DB, *pgx.Conn, *postgres.Log, *testing.T) error{
	"what is appended": func(ctx context.Context, db *pgtest.DB, _ *pgx.Conn, log *postgres.Log, t *testing.T) error {
		db.Exec(t, "insert into run_events (tenant_id, run_id, sequence, type, event) values ('t', 'r2', 40, 'theirs', '{}')")
		drafts := []eventlog.Draft{{Type: "a", Payload: []byte(`{"n": 1}`)}, {Type: "b", Payload: []byte(`{"n": 2}`)}}
		last, err := log.Append(ctx, "t", "r", drafts...)
		if err != nil {
			return err
		}
		db.Exec(t, "delete from run_events where tenant_id = 't' and run_id = 'r'")
		again, err := log.Append(ctx, "t", "r", drafts[0])
		if err != nil {
			return err
		}
		imported, err := log.Append(ctx, "t", "r2", drafts...)
		if err != nil {
			return err
		}
		_, unknown := log.Append(ctx, "t", "none", drafts[0])
		if !errors.Is(unknown, eventlog.ErrUnknownRun) {
			return fmt.Errorf("appending to no run ended with %v", unknown)
		}
		return errors.Join(differs("last", fmt.Sprint(last, again, imported), "2 3 42"),
			differs("events", db.Text(t, events), `t|r|3|a|{"n": 1}|t t|r2|40|theirs|{}|t t|r2|41|a|{"n": 1}|t t|r2|42|b|{"n": 2}|t`),
			differs("runs", db.Text(t, "select string_agg(tenant_id || id || last_sequence, ' ' order by tenant_id, id) from runs"), "tr3 tr242 ur0"))
	},
	"what is listed": func(ctx context.Context, db *pgtest.DB, _ *pgx.Conn, log *postgres.Log, t *testing.T) error {
		db.Exec(t, "insert into run_events (tenant_id, run_id, sequence, type, event) select 't', r, n, 'x', '{}' from unnest(array['r2', 'r']) r, generate_series(1, 5) n order by md5(n::text)")
		var got []string
		for _, limit := range []int{2, 10} {
			all, err := log.ListAfter(ctx, "t", "r", 2, limit)
			if err != nil {
				return err
			}
			for _, e := range all {
				got = append(got, fmt.Sprint(e.Sequence))
			}
			got = append(got, "/")
		}
		return differs("listed", got, "[3 4 / 3 4 5 /]")
	},
	"which sequence is the latest": func(ctx context.Context, db *pgtest.DB, _ *pgx.Conn, log *postgres.Log, t *testing.T) error {
		db.Exec(t, `insert into run_events (tenant_id, run_id, sequence, type, event) values ('t', 'r', 4, 'x', '{}'), ('t', 'r2', 30, 'x', '{}');
update runs set last_sequence = 20 where id = 'r' and tenant_id = 'u'; update runs set last_sequence = 7 where tenant_id = 't' and id = 'r'`)
		var got []int64
		for _, run := range []string{"r", "r2"} {
			n, err := log.LatestSequence(ctx, "t", run)
			if err != nil {
				return err
			}
			got = append(got, n)
		}
		if _, err := log.LatestSequence(ctx, "t", "none"); !errors.Is(err, eventlog.ErrUnknownRun) {
			return fmt.Errorf("the latest of no run is %v", err)
		}
		return differs("latest", got, "[7 30]")
	},
}

// edits take each clause out. Where nothing stands instead, a condition is made true and an order is turned round.
func edits() (all []sabotage.Edit) {
	on := func(statement, victim string, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, sabotage.Edit{Statement: statement, Clause: pairs[i], Instead: pairs[i+1], Victim: victim})
		}
	}
	on("add", "what is appended",
		"run: SET last_sequence = $3::bigint + greatest(r.last_sequence,", "SET last_sequence = $3::bigint + least(r.last_sequence,",
		"run: WHERE e.tenant_id = r.tenant_id", "",
		"run: AND e.run_id = r.id))", "",
		"run: WHERE r.tenant_id = $1::text", "",
		"run: AND r.id = $2::text", "")
	on("list", "what is listed",
		"WHERE e.tenant_id = $1::text", "", "AND e.run_id = $2::text", "", "AND e.sequence > $3::bigint", "", "ORDER BY e.sequence", "", "LIMIT $4::bigint", "")
	on("latest", "which sequence is the latest",
		"SELECT greatest(r.last_sequence,", "SELECT least(r.last_sequence,",
		"WHERE e.tenant_id = r.tenant_id", "",
		"AND e.run_id = r.id))", "",
		"WHERE r.tenant_id = $1::text", "",
		"AND r.id = $2::text", "")
	return all
}
