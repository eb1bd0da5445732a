package rights

import (
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// everything is a file with a sweep of each form over the tables of users.
var everything = "version: 1\ndefaults: {schema: public}\nsweeps:\n" +
	jobs(byAge, "row_window: {column: keep_seconds, unit: s}", "guard: {state: state, terminal: [done], live: [queued]}") +
	strings.Replace(jobs("expires: expires_at", "guard: {hold: held}", "overlaps: [jobs]"), "jobs:", "sessions:", 1) +
	sweep("run_events", byOwner+"}}") +
	sweep("messages", sent, byOwed, "children: [{table: receipts, key: {id: message_id}}, {table: lines, key: {id: message_id}}]")

// TestLooksWriteNothing: what only looks is given no transaction ID by the server, which every transaction gets that writes
// or locks a row, whatever is rolled back later; and a standby, which can give none, answers the same, but for a check
// of sweeps, which says that they could not run there.
func TestLooksWriteNothing(t *testing.T) {
	bin := built(t)
	t.Parallel()
	primary := pgtest.Own(t, pgserver.Options{})
	standby := pgtest.Own(t, pgserver.Options{StandbyOf: primary})
	on := func(s *pgserver.Server) *pgtest.DB { return &pgtest.DB{Name: "postgres", DSN: s.DSN("postgres")} }
	db := on(primary)
	if err := ourTables(t.Context(), db.DSN); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "DROP TABLE run_events, runs, prunectl_run_events_migrations")
	if err := theirTables(t.Context(), db.DSN); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, someReceipts+someLines)
	next := func() string { return db.Text(t, "SELECT pg_snapshot_xmax(pg_current_snapshot())") }
	for end := time.Now().Add(time.Minute); db.Text(t, "SELECT pg_current_wal_lsn()") != on(standby).Text(t, "SELECT pg_last_wal_replay_lsn()"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute: the standby has all of it")
		}
	}

	before := next()
	for _, e := range []struct {
		entry
		standby int // the exit code there
	}{
		{entry{policy: everything, args: "plan --sql"}, 0},
		{entry{policy: everything, args: "plan -o json"}, 0},
		{entry{policy: everything, args: "sweep --dry-run"}, 0},
		{entry{policy: everything, args: "status"}, 0},
		{entry{policy: tenantsFile(purgedNotes + ", " + purgedOrders), args: "purge --tenant acme --dry-run"}, 0},
		{entry{policy: everything, args: "check"}, 1},
		{entry{policy: ready("domain_events"), args: "plan"}, 0},
		{entry{policy: ready("domain_events"), args: "status"}, 0},
		{entry{policy: ready("domain_events"), args: "check"}, 1},
		{entry{policy: ready("inbox_outbox"), args: "plan"}, 0},
		{entry{policy: ready("inbox_outbox"), args: "status"}, 0},
		{entry{policy: ready("inbox_outbox"), args: "check"}, 1},
		{entry{args: "check --component domain_events,inbox_outbox"}, 0},
		{entry{args: "migrate status --component domain_events,inbox_outbox"}, 0},
	} {
		if code, out := e.run(t, e.args, db.DSN, bin); code != 0 || out == "" {
			t.Errorf("%s: exit code %d\n%s", e.args, code, out)
		}
		if after := next(); after != before {
			t.Errorf("%s: a transaction has written: %s is next, and was %s", e.args, after, before)
			before = after
		}
		code, out := e.run(t, e.args, on(standby).DSN, bin)
		if code != e.standby || code == 1 && !strings.Contains(out, "read-only target: the server is a standby") {
			t.Errorf("%s on a standby: exit code %d\n%s", e.args, code, out)
		}
	}

	// What does write is seen.
	if code, out := (entry{policy: everything}).run(t, "sweep --only jobs", db.DSN, bin); code != 0 || next() == before {
		t.Errorf("a sweep has left no trace: exit code %d\n%s", code, out)
	}
}
