package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const odd = `Odd "schema"`

// installed is a database with the component in two schemas.
var installed = pgtest.NewTemplate("inboxoutbox", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	for _, schema := range []string{"", odd} {
		m, err := migrations.New(config, migrations.Options{Component: "inbox_outbox", Schema: schema})
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin opens a transaction on a connection of its own.
func begin(t *testing.T, db *pgtest.DB) pgx.Tx {
	t.Helper()
	tx, err := db.Conn(t).Begin(bounded(t))
	must(t, err)
	return tx
}

// inTx runs f in a transaction of its own.
func inTx(t *testing.T, db *pgtest.DB, f func(tx pgx.Tx) error) error {
	t.Helper()
	return pgx.BeginFunc(bounded(t), db.Conn(t), f)
}

// receive receives an event and wants this outcome.
func receive(t *testing.T, db postgres.DB, handler, event string, want inboxoutbox.Outcome) inboxoutbox.Receipt {
	t.Helper()
	r, err := store.Receive(bounded(t), db, handler, event, time.Minute)
	must(t, err)
	if r.Outcome != want {
		t.Fatalf("event %s of %s is %s, want %s", event, handler, r.Outcome, want)
	}
	return r
}

// add adds a record for topic t in a transaction of its own, and returns its id.
func add(t *testing.T, db *pgtest.DB, event string) int64 {
	t.Helper()
	var a inboxoutbox.Added
	must(t, inTx(t, db, func(tx pgx.Tx) (err error) {
		a, err = store.Add(bounded(t), tx, inboxoutbox.Draft{EventID: event, Topic: "t", Body: []byte(`{}`)})
		return err
	}))
	if !a.New {
		t.Fatalf("event %s is there already", event)
	}
	return a.Record
}

// claim claims and wants the records of these events.
func claim(t *testing.T, db postgres.DB, limit int, want ...string) []inboxoutbox.Record {
	t.Helper()
	all, err := store.Claim(bounded(t), db, time.Minute, limit)
	must(t, err)
	got := []string{}
	for _, r := range all {
		got = append(got, r.EventID)
	}
	if len(got) != len(want) {
		t.Fatalf("claimed %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("claimed %q, want %q", got, want)
		}
	}
	return all
}

// acquire acquires a partition of handler h and wants it to be so.
func acquire(t *testing.T, db postgres.DB, partition, holder string, want bool) inboxoutbox.Lease {
	t.Helper()
	l, ok, err := store.Acquire(bounded(t), db, "h", partition, holder, time.Minute)
	must(t, err)
	if ok != want {
		t.Fatalf("partition %q acquired by %s: %t, want %t; %+v", partition, holder, ok, want, l)
	}
	return l
}

// wants compares what is in the tables: the events of the inbox with their states, those of the
// outbox, and the leases with their holders.
func wants(t *testing.T, db *pgtest.DB, want string) {
	t.Helper()
	const all = `
select coalesce(string_agg(line, ' ' order by n, line), '') from (
  select 1 as n, 'in:' || handler || '/' || event_id || ':' || state || case when lock_token is null then '' else '*' end as line from inbox_outbox.inbox
  union all
  select 2, 'out:' || event_id || case when delivered_at is not null then ':delivered' when claim_token is not null then ':claimed' else ':waits' end from inbox_outbox.outbox
  union all
  select 3, 'lease:' || partition || ':' || holder from inbox_outbox.leases) x`
	if got := db.Text(t, all); got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
}
