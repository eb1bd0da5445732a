package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Consumers are killed in pairs, each with an event or a record in hand: others go on, nothing is lost and nothing is done
// twice, however often a message came.
func TestKilled(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.db.Exec(t, `
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int); RETURN NEW; END $$;
CREATE TRIGGER acknowledged BEFORE UPDATE ON broker FOR EACH ROW WHEN (NEW.acked_at IS NOT NULL) EXECUTE FUNCTION gate('1');
CREATE CONSTRAINT TRIGGER booked AFTER INSERT ON bookings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate('2');
CREATE CONSTRAINT TRIGGER published AFTER INSERT ON broker DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.topic = 'receipts') EXECUTE FUNCTION gate('3')`)
	const handledNotAcknowledged = `
SELECT count(DISTINCT b.event_id) >= 2 FROM broker b JOIN inbox_outbox.inbox i USING (event_id) WHERE b.acked_at IS NULL AND i.state = 'completed'`
	const each = 150
	for i, c := range []struct {
		killed string
		gate   int
		// through says that what the killed one was at is done by the server nevertheless: its client died before it heard so.
		through bool
		left    string
	}{
		{"as they acknowledge to the broker", 1, false, handledNotAcknowledged},
		{"as they commit, in vain", 2, false, `SELECT count(*) >= 2 FROM inbox_outbox.inbox WHERE state = 'pending' AND lock_token IS NOT NULL`},
		{"as they commit", 2, true, handledNotAcknowledged},
		{"as they send from the outbox, in vain", 3, false, `
SELECT count(*) >= 2 FROM inbox_outbox.outbox o WHERE o.claim_token IS NOT NULL AND NOT EXISTS (SELECT FROM broker b WHERE b.event_id = o.event_id)`},
		{"as they send from the outbox", 3, true, `SELECT count(*) >= 2 FROM inbox_outbox.outbox o JOIN broker b USING (event_id) WHERE o.delivered_at IS NULL`},
	} {
		e.do("send", fmt.Sprint(each))
		before := e.db.Int(t, `SELECT count(*) FROM bookings`)
		a, b := e.start(), e.start()
		e.until("something is booked", `SELECT count(*) > $1 FROM bookings`, before+20)
		closed := e.db.Conn(t)
		if _, err := closed.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, c.gate); err != nil {
			t.Fatal(err)
		}
		e.until("both are "+c.killed, waiting, 2)
		a.kill()
		b.kill()
		if !c.through {
			e.db.Exec(t, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		}
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.until("their sessions have ended", alone)
		if e.db.Text(t, c.left) != "t" {
			t.Errorf("%d: consumers killed %s had nothing in hand", i, c.killed)
		}
	}

	a, b := e.start(), e.start()
	e.until("all is done", allDone)
	e.once()
	const n, closed = 5 * each, 5 * each / 50
	e.counts(n, n+n/5, n-closed, n-closed, closed, 2*(n-closed), 0, n-closed)
	if e.db.Int(t, `SELECT count(*) FROM broker WHERE acked_at IS NOT NULL AND deliveries > 1 AND NOT coalesce((body ->> 'shy')::bool, false)`) == 0 {
		t.Error("no message was delivered twice")
	}
	if e.db.Int(t, `SELECT count(*) - count(DISTINCT event_id) FROM broker WHERE topic = 'receipts'`) < 2 {
		t.Error("no record of the outbox was sent twice")
	}

	// And once more all of it, by hand.
	if got := e.do("replay", "3d"); got != fmt.Sprintf("%d payments sent again\n", n) {
		t.Errorf("the replay says %s", got)
	}
	e.until("all is done", allDone)
	a.end()
	b.end()
	e.once()
	e.counts(n, n+n/5+n, n-closed, n-closed, closed, 2*(n-closed), 0, n-closed)
	for _, r := range []*running{a, b} {
		if s := r.log.String(); strings.Contains(s, "ERROR") {
			t.Errorf("something failed:\n%s", s)
		}
	}

	// What was not finished is, as soon as it can be.
	e.db.Exec(t, `UPDATE accounts SET open = true; UPDATE broker SET deliver_at = now() WHERE acked_at IS NULL`)
	a = e.start()
	e.until("nothing is unfinished", `SELECT count(*) = 0 FROM inbox_outbox.inbox WHERE state = 'pending'`)
	e.until("all is done", allDone)
	e.until("all is acknowledged", `SELECT count(*) = 0 FROM broker WHERE acked_at IS NULL`)
	a.end()
	e.counts(n, n+n/5+n, n, n, 0, 2*n, 0, n)
	e.zero("leases held", `SELECT count(*) FROM inbox_outbox.leases`)
	e.zero("payments that are booked twice", `SELECT count(*) FROM (SELECT FROM bookings GROUP BY event_id HAVING count(*) > 1) AS twice`)
}

var removedLeases = regexp.MustCompile(`leases: [1-9]\d* removed`)

// A consumer is killed in the middle of a cleanup, and another one goes on with it while messages come: what is due goes, what
// is not finished or not delivered stays, and what is within the window is still known.
func TestKilledInCleanup(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	const old, young = 200, 100
	e.do("send", fmt.Sprint(old))
	a := e.start("-cleanup-batch", "20", "-interval", "1s", "-recheck", "1h")
	e.until("all is done", allDone)
	a.says("cleanup: ")
	// All of it gets ten days older, but for what waits at the broker; the unfinished gets ten years older.
	e.db.Exec(t, `
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.02); RETURN OLD; END $$;
CREATE TRIGGER slowly BEFORE DELETE ON inbox_outbox.inbox FOR EACH ROW EXECUTE FUNCTION slowly()`)
	e.db.Exec(t, `
UPDATE broker SET event_at = event_at - interval '10 days';
UPDATE inbox_outbox.inbox SET received_at = received_at - interval '10 years' WHERE state = 'pending';
UPDATE inbox_outbox.inbox SET received_at = received_at - interval '10 days', completed_at = completed_at - interval '10 days' WHERE state = 'completed';
UPDATE inbox_outbox.outbox SET created_at = created_at - interval '10 days', delivered_at = delivered_at - interval '10 days'`)
	e.until("some of it is gone", `SELECT count(*) < $1 FROM inbox_outbox.inbox`, 2*(old-old/50)-20)
	e.until("more is being removed", deleting)
	a.kill()
	e.until("its session has ended", alone)
	if left := e.db.Int(t, `SELECT count(*) FROM inbox_outbox.inbox WHERE state = 'completed'`); left == 0 {
		t.Error("the cleanup was over when it was killed")
	}
	if left := e.db.Int(t, `SELECT count(*) FROM inbox_outbox.inbox WHERE state = 'pending'`); left != old/50 {
		t.Errorf("%d events are unfinished; want %d", left, old/50)
	}
	e.db.Exec(t, `DROP FUNCTION slowly CASCADE`)

	// Leases of a consumer that never came back.
	e.db.Exec(t, `
INSERT INTO inbox_outbox.leases (handler, partition, holder, token, expires_at)
VALUES ('bank', '97', 'gone', gen_random_uuid(), now() - interval '1 minute'), ('bank', '98', 'here', gen_random_uuid(), now() + interval '1 hour')`)
	a, b := e.start("-cleanup-batch", "20", "-interval", "1s"), e.start("-cleanup-batch", "20", "-interval", "1s")
	e.do("send", fmt.Sprint(young))
	e.until("all is done", allDone)
	e.until("all that is due is gone", `
SELECT NOT EXISTS (SELECT FROM inbox_outbox.inbox WHERE completed_at < now() - interval '7 days')
   AND NOT EXISTS (SELECT FROM inbox_outbox.outbox WHERE delivered_at < now() - interval '7 days')
   AND NOT EXISTS (SELECT FROM inbox_outbox.leases WHERE holder = 'gone')`)
	e.once()
	done := int64(young - young/50)
	e.counts(old+young, old+young+(old+young)/5, old-old/50+done, old-old/50+done, (old+young)/50, 2*done, 0, done)
	if e.db.Int(t, `SELECT count(*) FROM inbox_outbox.leases WHERE holder = 'here'`) != 1 {
		t.Error("a lease in force is gone")
	}

	// What is within the window is known when it comes again.
	if got := e.do("replay", "3d"); got != fmt.Sprintf("%d payments sent again\n", young) {
		t.Errorf("the replay says %s", got)
	}
	e.until("all is done", allDone)
	e.once()
	a.end()
	b.end()
	for _, r := range []*running{a, b} {
		if s := r.log.String(); strings.Contains(s, "ERROR") || strings.Contains(s, "failed") {
			t.Errorf("something failed:\n%s", s)
		}
	}
	if s := a.log.String() + b.log.String(); !strings.Contains(s, "inbox: ") || !strings.Contains(s, "not completed (since ") || !removedLeases.MatchString(s) {
		t.Errorf("the reports do not say what was removed and what was kept:\n%s", s)
	}
	// What is older than that may not be sent again.
	e.refused([]string{"replay", "4d"}, "no more than 3d", "up to 7d", "redelivery of 4d")
}
