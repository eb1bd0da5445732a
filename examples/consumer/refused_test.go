package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// A schema that the program was not made for is refused at the start, with what is wrong by name, and nothing is touched.
func TestDriftRefusesStart(t *testing.T) {
	e := newExample(t)
	e.refused(hurry, "inbox_outbox", "not installed", "migrate up")
	e.do("setup")
	e.do("send", "20")
	for _, c := range []struct{ change, back, says string }{
		{`ALTER TABLE inbox_outbox.inbox DROP CONSTRAINT inbox_completed_check`,
			`ALTER TABLE inbox_outbox.inbox ADD CONSTRAINT inbox_completed_check CHECK ((state = 'completed') = (completed_at IS NOT NULL))`, "inbox_completed_check"},
		{`CREATE RULE quietly AS ON DELETE TO inbox_outbox.outbox DO INSTEAD NOTHING`, `DROP RULE quietly ON inbox_outbox.outbox`, "quietly"},
		{`ALTER TABLE inbox_outbox.leases ALTER COLUMN token DROP NOT NULL`, `ALTER TABLE inbox_outbox.leases ALTER COLUMN token SET NOT NULL`, "leases.token"},
		{`DROP INDEX inbox_outbox.outbox_retention`, "", "outbox_retention"},
	} {
		e.db.Exec(t, c.change)
		e.refused(hurry, "inbox_outbox", "not as the migrations made it", "refused: ", "expected ", "found ", c.says)
		if c.back != "" {
			e.db.Exec(t, c.back)
		}
	}
	if got := e.do("setup"); got != "inbox_outbox: 1 create_tables, made again\n" {
		t.Errorf("the setup says %s", got)
	}
	e.counts(20, 24, 0, 0, 0, 0, 0, 0)
	e.zero("policies recorded by who was refused", `SELECT count(*) FROM inbox_outbox.settings`)
	e.start().end()
}

// Readiness follows the schema, the policy and the database, and while it is not there nothing is taken. The consumer has
// the rights of role.sql, and no more.
func TestReady(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	const role = "bank_consumer"
	pgtest.Role(t, role, "login")
	e.db.Exec(t, roleSQL(t))
	e.db.Exec(t, `ALTER ROLE `+role+` LOGIN`)
	owner := e.env
	e.env = append(append([]string{}, owner...), "DATABASE_URL="+e.db.DSNAs(role))
	r := e.start("-interval", "1s", "-recheck", "50ms")
	e.env = owner
	r.answers(200, "ready")
	alive := func() {
		t.Helper()
		if status, body := r.get("/healthz"); status != 200 {
			t.Errorf("/healthz is %d %s", status, body)
		}
	}

	// The schema drifts, while messages come.
	e.db.Exec(t, `ALTER TABLE inbox_outbox.inbox ADD CONSTRAINT more CHECK (handler <> 'mail') NOT VALID`)
	r.answers(503, "more")
	alive()
	e.do("send", "20")
	r.says("not ready: ")
	asked := e.db.Text(t, `SELECT clock_timestamp()`)
	e.until("it has looked again", asksAgain, role, asked)
	e.zero("messages taken while it was not ready", `SELECT count(*) FROM broker WHERE deliveries > 0`)
	e.db.Exec(t, `ALTER TABLE inbox_outbox.inbox DROP CONSTRAINT more`)
	r.answers(200, "ready")
	e.until("all is done", allDone)

	// The database is away.
	e.db.Exec(t, `ALTER ROLE `+role+` NOLOGIN`)
	e.db.Exec(t, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = $1 AND datname = current_database()`, role)
	r.answers(503, "not permitted to log in")
	alive()
	e.db.Exec(t, `ALTER ROLE `+role+` LOGIN`)
	r.answers(200, "ready")
	e.do("send", "20")
	e.until("all is done", allDone)

	// Another one replaces the policy.
	other := e.start("-inbox-window", "8d", "-replace-policy")
	r.answers(503, "inbox_window: recorded 8d, given 7d")
	other.answers(200, "ready")
	alive()
	other.end()

	e.once()
	r.end()
	if s := r.log.String(); !strings.Contains(s, "ready again") || !strings.Contains(s, "cleanup: ") || strings.Contains(s, "permission denied") {
		t.Errorf("the log has\n%s", s)
	}
}

// asksAgain says that readiness was asked of the database since a time: the last thing that an idle session of the role did.
const asksAgain = `
SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND usename = $1 AND state_change > $2::timestamptz + interval '0.2 s'`

// Readiness is asked of the database once in a while, and not by each request.
func TestReadyIsCheap(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	r := e.start("-recheck", "1h")
	r.says("cleanup: ")
	e.db.Exec(t, `DROP INDEX inbox_outbox.inbox_retention`)
	for range 50 {
		if status, body := r.get("/readyz"); status != 200 {
			t.Fatalf("/readyz is %d %s; want the kept answer", status, body)
		}
	}
	r.end()

	// One who asks and goes away does not leave his error behind.
	e.do("setup")
	s, err := parse("", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&readiness{pool: e.db.Pool(t), policy: s.policy, keep: time.Hour}).check(gone); err != nil {
		t.Errorf("asked by one who has gone, readiness is %v", err)
	}
}

// A policy other than the recorded one is refused with the difference by field, and takes its place where that is said.
func TestPolicy(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.refused([]string{"replay", "1d"}, "no policy is recorded yet")
	e.do("send", "50")
	r := e.start()
	r.says("recorded: policy ")
	e.until("all is done", allDone)
	r.end()
	recorded := func(says string) {
		t.Helper()
		if got := e.db.Text(t, `SELECT (settings ->> 'inbox_window')::int / 86400 || 'd ' || (settings ->> 'cleanup_interval')::int || 's' FROM inbox_outbox.settings`); got != says {
			t.Errorf("recorded is %s; want %s", got, says)
		}
	}
	recorded("7d 3600s")

	longer := append(append([]string{}, hurry...), "-inbox-window", "9d", "-interval", "2h")
	e.refused(longer, "cleanup_interval: recorded 1h, given 2h", "inbox_window: recorded 7d, given 9d", "--replace-policy")
	recorded("7d 3600s")
	r = e.start("-inbox-window", "9d", "-interval", "2h", "-replace-policy")
	r.says("replaced: policy ")
	r.end()
	recorded("9d 7200s")
	e.refused(hurry, "inbox_window: recorded 9d, given 7d")

	// A shorter one says what becomes due by it, and wants a yes.
	e.db.Exec(t, `UPDATE inbox_outbox.inbox SET completed_at = completed_at - interval '8 days' WHERE state = 'completed' AND handler = 'mail'`)
	due := e.db.Int(t, `SELECT count(*) FROM inbox_outbox.inbox WHERE completed_at < now() - interval '7 days'`)
	e.refused(append(append([]string{}, hurry...), "-replace-policy"), fmt.Sprintf("%d rows of inbox become due by it", due), "--yes")
	recorded("9d 7200s")
	if left := e.db.Int(t, `SELECT count(*) FROM inbox_outbox.inbox WHERE completed_at < now() - interval '7 days'`); left != due || due != 49 {
		t.Errorf("%d of %d rows are left; want all 49", left, due)
	}
	r = e.start("-replace-policy", "-yes")
	recorded("7d 3600s")
	e.until("they are gone", `SELECT count(*) = 0 FROM inbox_outbox.inbox WHERE completed_at < now() - interval '7 days'`)
	r.end()
}

// Wrong settings are refused together, before the database is asked.
func TestSettings(t *testing.T) {
	e := newExample(t)
	e.refused([]string{"run", "-inbox-window", "5d", "-outbox-window", "400d", "-interval", "25h", "-cleanup-batch", "100001"},
		"inbox_window is 5d", "replay_window.manual is 7d", "lets the same event in again as new",
		"outbox_window is 400d", "cleanup_interval is 25h", "batch is 100001")
	for _, c := range []struct{ flag, value, says string }{
		{"-inbox-window", "0", "zero"},
		{"-poll", "0s", "zero"},
		{"-hold", "5m", "write min for minutes"},
		{"-batch", "0", "it is from 1"},
		{"-redelivery", "8d", "replay_window.redelivery is 8d"},
	} {
		e.refused([]string{"run", c.flag, c.value}, c.says)
	}
}

// What is not finished or not delivered stays, whatever its age, also under the shortest windows.
func TestUnfinishedNeverGoes(t *testing.T) {
	e := newExample(t)
	e.env = append(e.env, `CONSUMER_SCHEMA=Bank "in" out`) // any name will do
	e.do("setup")
	e.do("send", "200")
	r := e.start()
	const schema = `"Bank ""in"" out"`
	e.until("all but the closed account's are handled", `SELECT count(*) = 2 * 196 FROM `+schema+`.inbox WHERE state = 'completed'`)
	e.until("all is delivered", `SELECT count(*) = 196 FROM `+schema+`.outbox WHERE delivered_at IS NOT NULL`)
	r.end()
	e.db.Exec(t, `
UPDATE `+schema+`.inbox SET received_at = now() - interval '30 years' WHERE state = 'pending';
INSERT INTO `+schema+`.outbox (event_id, topic, body, created_at, available_at) VALUES ('later', 'receipts', '{}', now() - interval '30 years', now() + interval '1 day');
INSERT INTO `+schema+`.leases (handler, partition, holder, token, expires_at)
VALUES ('bank', '97', 'gone', gen_random_uuid(), now() - interval '1 minute'), ('bank', '98', 'here', gen_random_uuid(), now() + interval '1 hour')`)
	r = e.start("-inbox-window", "1s", "-outbox-window", "1s", "-interval", "1s", "-redelivery", "1s", "-manual", "1s", "-remote", "1s", "-replace-policy", "-yes")
	e.until("all that is finished is gone", `
SELECT NOT EXISTS (SELECT FROM `+schema+`.inbox WHERE state = 'completed') AND NOT EXISTS (SELECT FROM `+schema+`.outbox WHERE delivered_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM `+schema+`.leases WHERE holder = 'gone')`)
	cleanups := strings.Count(r.log.String(), "cleanup: ")
	for deadline := time.Now().Add(time.Minute); strings.Count(r.log.String(), "cleanup: ") < cleanups+2; {
		if time.Now().After(deadline) {
			t.Fatalf("no two cleanups in a minute\n%s", r.log.String())
		}
		time.Sleep(10 * time.Millisecond) // between looks
	}
	r.end()
	e.counts(200, 240, 196, 196, 4, 0, 1, 0)
	if e.db.Int(t, `SELECT count(*) FROM `+schema+`.leases WHERE holder = 'here'`) != 1 {
		t.Error("a lease in force is gone")
	}
	if !strings.Contains(r.log.String(), "4 not completed (since ") || !strings.Contains(r.log.String(), "1 not delivered") || !strings.Contains(r.log.String(), "1 in force") {
		t.Errorf("the reports do not say what is held:\n%s", r.log.String())
	}
}
