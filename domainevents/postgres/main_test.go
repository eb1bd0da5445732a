package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
	"github.com/prunectl/prunectl/policy"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const odd = `Odd "schema"`

// installed is a database with the component in two schemas.
var installed = pgtest.NewTemplate("domainevents", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, schema := range []string{"public", odd} {
		if _, err := conn.Exec(ctx, `create schema if not exists `+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
		m, err := migrations.New(config, migrations.Options{Component: "domain_events", Schema: schema})
		if err != nil {
			return err
		}
		defer m.Close()
		if _, err := m.Up(ctx); err != nil {
			return err
		}
	}
	return nil
})

var store = postgres.New(postgres.Options{})

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func to(receivers ...string) (all []domainevents.Target) {
	for _, r := range receivers {
		all = append(all, domainevents.Target{Receiver: r})
	}
	return all
}

// record records one event in a transaction of its own.
func record(t *testing.T, conn *pgx.Conn, d domainevents.Draft, targets ...domainevents.Target) int64 {
	t.Helper()
	if d.Type == "" {
		d.Type = "x"
	}
	var done domainevents.Recorded
	err := pgx.BeginFunc(bounded(t), conn, func(tx pgx.Tx) (err error) {
		done, err = store.Record(bounded(t), tx, d, targets...)
		return err
	})
	if err != nil || !done.New {
		t.Fatalf("record %s: %+v, %v", d.Type, done, err)
	}
	return done.Event
}

// claim claims as worker and wants these deliveries, as event/receiver.
func claim(t *testing.T, db postgres.DB, worker string, limit int, want ...string) []domainevents.Delivery {
	t.Helper()
	all, err := store.Claim(bounded(t), db, worker, time.Minute, limit)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, fmt.Sprintf("%d/%s", d.Event.ID, d.Receiver))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("claimed %q, want %q", got, want)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants compares what is in the tables: the deliveries as event/receiver:status, and the events that are parked.
func wants(t *testing.T, db *pgtest.DB, want string) {
	t.Helper()
	const all = `
select coalesce((select string_agg(event_id || '/' || receiver || ':' || status, ' ' order by event_id, receiver, target) from domain_event_deliveries), '-')
    || coalesce((select ' parked ' || string_agg(id::text, ',' order by id) from domain_events where parked), '')`
	if got := db.Text(t, all); got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
}

// begin opens a transaction on a connection of its own.
func begin(t *testing.T, db *pgtest.DB) (pgx.Tx, uint32) {
	t.Helper()
	conn := db.Conn(t)
	tx, err := conn.Begin(bounded(t))
	must(t, err)
	return tx, conn.PgConn().PID()
}

// exec executes and wants so many rows changed.
func exec(t *testing.T, tx pgx.Tx, want int64, sql string, args ...any) {
	t.Helper()
	tag, err := tx.Exec(bounded(t), sql, args...)
	must(t, err)
	if tag.RowsAffected() != want {
		t.Fatalf("%s: %d rows, want %d", sql, tag.RowsAffected(), want)
	}
}

// own is an own window of an hour.
func own(t *testing.T) domainevents.Retention {
	t.Helper()
	r, err := domainevents.KeepFor(policy.MustWindow(time.Hour))
	must(t, err)
	return r
}
