package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations"
)

// eventTables are those of the component domain_events.
var eventTables = pgtest.NewTemplate("command_events", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	m, err := migrations.New(config, migrations.Options{Component: "domain_events"})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	_, err = m.Up(ctx)
	return err
})

// addEvent adds an event that is days old, and a delivery to receivers r1, r2, ... in each of the statuses.
func addEvent(t *testing.T, db *pgtest.DB, kind, policy string, days int, statuses ...string) int64 {
	t.Helper()
	id := db.Int(t, "INSERT INTO domain_events (type, payload, retention_policy, recorded_at) VALUES ($1, '{}', nullif($2, ''), now() - $3::int * interval '1 day') RETURNING id", kind, policy, days)
	for i, status := range statuses {
		db.Exec(t, `
INSERT INTO domain_event_deliveries (event_id, receiver, target, status, attempts, finished_at, claimed_by, claimed_at, claimed_until)
SELECT $1, $2, 'eu', $3, 9, CASE WHEN $3 IN ('succeeded', 'dead', 'orphaned', 'cancelled') THEN now() - $4::int * interval '1 day' END,
       c.by, c.at, c.at - interval '1 minute'
  FROM (SELECT CASE WHEN $3 = 'claimed' THEN 'w' END AS by, CASE WHEN $3 = 'claimed' THEN now() END AS at) c`, id, fmt.Sprintf("r%d", i+1), status, days)
	}
	return id
}

// deliveries are the statuses of an event's deliveries, in the order of their receivers.
func deliveries(t *testing.T, db *pgtest.DB, event int64) string {
	t.Helper()
	return db.Text(t, "SELECT coalesce(string_agg(status, ' ' ORDER BY receiver), '') FROM domain_event_deliveries WHERE event_id = $1", event)
}

// TestRequeue: what is chosen and dead is owed again, and said a delivery a line and in sum; what is not stays.
func TestRequeue(t *testing.T) {
	db := eventTables.New(t)
	paid := addEvent(t, db, "paid", "SUCCEEDED", 3, "succeeded", "dead", "orphaned")
	sent := addEvent(t, db, "sent", "", 2, "dead", "dead", "pending", "cancelled")
	none := addEvent(t, db, "sent", "", 1, "succeeded")
	requeue := func(code int, args string) report.Report {
		t.Helper()
		return invocation{args: append(strings.Fields("events requeue -o json "+args), "--log-format", "json"), env: at(db)}.run(t).must(t, code).document(t)
	}

	r := requeue(exitDone, fmt.Sprintf("--event %d", paid))
	if r.Command != report.Requeuing || r.Reopening.Events != 1 || r.Reopening.Limited || len(r.Reopening.Gone) != 0 {
		t.Errorf("%+v", r.Reopening)
	}
	var said []string
	for _, d := range r.Reopening.Reopened {
		said = append(said, fmt.Sprintf("%d %s %s", d.Event, d.Receiver, d.Target))
		if status := db.Text(t, "SELECT status || attempts FROM domain_event_deliveries WHERE id = $1", d.Delivery); status != "pending0" {
			t.Errorf("delivery %d is %s", d.Delivery, status)
		}
	}
	if want := []string{fmt.Sprintf("%d r2 eu", paid), fmt.Sprintf("%d r3 eu", paid)}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	if got := deliveries(t, db, paid); got != "succeeded pending pending" {
		t.Errorf("event %d: %s", paid, got)
	}
	if got := deliveries(t, db, sent); got != "dead dead pending cancelled" {
		t.Errorf("event %d: %s", sent, got)
	}

	// The limit is said to be reached; nothing is chosen that does not match.
	if r = requeue(exitDone, "--type paid"); len(r.Reopening.Reopened) != 0 {
		t.Errorf("%+v", r.Reopening)
	}
	if r = requeue(exitDone, "--all --limit 1"); len(r.Reopening.Reopened) != 1 || !r.Reopening.Limited {
		t.Errorf("%+v", r.Reopening)
	}
	if r = requeue(exitDone, "--receiver r1"); len(r.Reopening.Reopened) != 0 {
		t.Errorf("%+v", r.Reopening)
	}
	o := invocation{args: []string{"events", "--type", "sent", "requeue", "--receiver", "r2"}, env: at(db)}.run(t).must(t, exitDone)
	contains(t, o.stdout, "EVENT  DELIVERY  RECEIVER  TARGET\n", fmt.Sprintf("%5d", sent), "r2        eu\n1 delivery of 1 event reopened\n")
	contains(t, o.stderr, "database "+db.Name+" on ")
	if got := deliveries(t, db, sent); got != "pending pending pending cancelled" {
		t.Errorf("event %d: %s", sent, got)
	}
	o = invocation{args: []string{"events", "requeue", "--all"}, env: at(db)}.run(t).must(t, exitDone)
	if o.stdout != "nothing was reopened\n" {
		t.Error(o.stdout)
	}
	if got := deliveries(t, db, none); got != "succeeded" {
		t.Errorf("event %d: %s", none, got)
	}
}

// TestReplay: every delivery of the one event is owed again; one that a worker has is left to it.
func TestReplay(t *testing.T) {
	db := eventTables.New(t)
	event := addEvent(t, db, "paid", "SETTLED", 3, "succeeded", "claimed", "dead", "cancelled")
	other := addEvent(t, db, "paid", "SETTLED", 3, "succeeded")
	o := invocation{args: []string{"events", "replay", "--event", fmt.Sprint(event)}, env: at(db)}.run(t).must(t, exitDone)
	contains(t, o.stdout, "3 deliveries of 1 event reopened\n1 under way already")
	if got := deliveries(t, db, event); got != "pending claimed pending pending" {
		t.Errorf("event %d: %s", event, got)
	}
	if got := deliveries(t, db, other); got != "succeeded" {
		t.Errorf("event %d: %s", other, got)
	}
	r := invocation{args: []string{"events", "replay", "--event", fmt.Sprint(other), "-o", "json"}, env: at(db)}.run(t).must(t, exitDone).document(t)
	if d := r.Reopening.Reopened; r.Command != report.Replaying || len(d) != 1 || d[0].Event != other || d[0].Receiver != "r1" {
		t.Errorf("%+v", r.Reopening)
	}
	// Without deliveries there is nothing to do again.
	bare := addEvent(t, db, "paid", "", 3)
	if o := (invocation{args: []string{"events", "replay", "--event", fmt.Sprint(bare)}, env: at(db)}.run(t).must(t, exitDone)); o.stdout != "nothing was reopened\n" {
		t.Error(o.stdout)
	}
}

// TestReopeningWhatIsGone: it is said, and is a failure.
func TestReopeningWhatIsGone(t *testing.T) {
	db := eventTables.New(t)
	for _, word := range []string{"requeue", "replay"} {
		args := []string{"events", word, "--event", "4711"}
		o := invocation{args: args, env: at(db)}.run(t).must(t, exitFailed)
		if o.stdout != "nothing was reopened\nevent 4711 is gone: nothing of it was reopened\n" {
			t.Error(o.stdout)
		}
		contains(t, o.stderr, "prunectl: event 4711 is gone\n")
		r := invocation{args: append(args, "-o", "json"), env: at(db)}.run(t).must(t, exitFailed).document(t)
		if !slices.Equal(r.Reopening.Gone, []int64{4711}) || r.Error == nil {
			t.Errorf("%+v %+v", r.Reopening, r.Error)
		}
	}
}

// TestReopeningElsewhere: the component is where --schema says, and where it is not that is said.
func TestReopeningElsewhere(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE SCHEMA "Out box"`)
	invocation{args: []string{"migrate", "up", "--component", "domain_events", "--schema", "Out box"}, env: at(db)}.run(t).must(t, exitDone)
	for _, args := range [][]string{{"events", "requeue", "--all"}, {"events", "replay", "--event", "1"}} {
		o := invocation{args: args, env: at(db)}.run(t).must(t, exitFailed)
		contains(t, o.stderr, "the component domain_events is not installed in schema public; write --schema, or install it with prunectl migrate up")
	}
	db.Exec(t, `INSERT INTO "Out box".domain_events (type, payload) VALUES ('paid', '{}');
INSERT INTO "Out box".domain_event_deliveries (event_id, receiver, status, finished_at) SELECT id, 'r1', 'dead', now() FROM "Out box".domain_events`)
	o := invocation{args: []string{"events", "requeue", "--all", "--schema", "Out box"}, env: at(db)}.run(t).must(t, exitDone)
	contains(t, o.stdout, "1 delivery of 1 event reopened")
	o = invocation{args: []string{"events", "requeue", "--all", "--schema", "Out box"}, env: []string{"DATABASE_URL=" + readOnly(t, db)}}.run(t).must(t, exitFailed)
	contains(t, o.stderr, "read-only target: ")
}

// TestReopeningUnderASignal: the transaction in hand ends, and what it did is reported.
func TestReopeningUnderASignal(t *testing.T) {
	db := eventTables.New(t)
	event := addEvent(t, db, "paid", "", 3, "dead")
	holder := db.Conn(t)
	if _, err := holder.Exec(t.Context(), fmt.Sprintf("BEGIN; SELECT FROM domain_events WHERE id = %d FOR UPDATE", event)); err != nil {
		t.Fatal(err)
	}
	r := invocation{args: []string{"events", "requeue", "--all"}, env: at(db)}.start(t)
	eventually(t, "it waits for the event", func() bool {
		return db.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
	})
	r.signal(syscall.SIGTERM)
	eventually(t, "the signal is heard", func() bool { return strings.Contains(r.said(), "SIGTERM") })
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	o := r.wait().must(t, exitSignal+int(syscall.SIGTERM))
	contains(t, o.stdout, "1 delivery of 1 event reopened")
	if got := deliveries(t, db, event); got != "pending" {
		t.Errorf("it is %s", got)
	}
}

const domainEventsSweep = `
  domain_events: {table: domain_events, only: {retention_seconds: null}, age: recorded_at, window: 90d, guard: {none: "nothing is owed in this test"}}
`

// TestHealth: below the table stands how the deliveries are, where the events are those of the component.
func TestHealth(t *testing.T) {
	db := eventTables.New(t)
	addEvent(t, db, "paid", "SUCCEEDED", 9, "succeeded", "dead", "orphaned")
	addEvent(t, db, "paid", "", 12, "pending", "claimed", "failed")
	addEvent(t, db, "paid", "SETLED", 5)
	addEvent(t, db, "paid", "SETLED", 4)
	addEvent(t, db, "paid", "", 0, "succeeded", "succeeded")
	db.Exec(t, "INSERT INTO domain_event_receivers VALUES ('r2', now() - interval '30 days'), ('r3', now() - interval '40 days')")
	policy := policyOf(domainEventsSweep)
	o := invocation{args: []string{"status"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	lines := strings.Split(o.stdout, "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines:\n%s", len(lines)-1, o.stdout)
	}
	for i, want := range []string{
		"domain_events in public: 2 dead letters; 3 deliveries owed, the oldest event from ", `domain_events in public: retention_policy "SETLED" is not known: the default window holds for 2 events`,
		"domain_events in public: receiver r3 is quiet since ",
	} {
		if !strings.HasPrefix(lines[2+i], want) {
			t.Errorf("%q, want %q", lines[2+i], want)
		}
	}
	contains(t, lines[2], "(12d); 1 lapsed lease; 1 event held by a dead letter")
	contains(t, lines[4], "(40d)")

	h := invocation{args: []string{"status", "-o", "json", "--count-limit", "1"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t).Health
	if len(h) != 1 || *h[0].Dead != (report.Bounded{Count: 1, IsFloor: true}) || *h[0].Parked != (report.Bounded{Count: 1}) || len(h[0].Quiet) != 1 || h[0].Error != nil {
		t.Errorf("%+v", h)
	}

	// A role that sweeps and may read only a part is told what it may not.
	pgtest.Role(t, "command_part", "login")
	db.Exec(t, "GRANT SELECT, UPDATE, DELETE ON domain_events, domain_event_deliveries TO command_part")
	o = invocation{args: []string{"status", "-q"}, env: []string{"DATABASE_URL=" + db.DSNAs("command_part")}, policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, "2 dead letters", "domain_events in public: not read: ", "permission denied for table domain_event_receivers")

	// A table of that name alone is none of the component's.
	db.Exec(t, "DROP TABLE prunectl_domain_events_migrations")
	o = invocation{args: []string{"status"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	lacks(t, o.stdout, "dead letter", "not read")
}
