package main

import (
	"strings"
	"testing"
)

// SIGTERM ends a consumer after the batch in hand: what it had taken is done, and nothing is held any more.
func TestStop(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.do("send", "200")
	lock := e.db.Conn(t)
	if _, err := lock.Exec(t.Context(), `BEGIN; LOCK TABLE bookings IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	r := e.start("-batch", "30", "-hold", "1h", "-ack-timeout", "1h")
	e.until("it is in the middle of an event", waiting, 1)
	r.term()
	r.says("terminated: ending after the batch in hand")
	if status, body := r.get("/readyz"); status != 503 || !strings.Contains(body, "ending") {
		t.Errorf("/readyz is %d %s while it ends", status, body)
	}
	if _, err := lock.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	r.ended()
	e.zero("locks, claims and leases held", `
SELECT (SELECT count(*) FROM inbox_outbox.inbox WHERE lock_token IS NOT NULL) + (SELECT count(*) FROM inbox_outbox.outbox WHERE claim_token IS NOT NULL)
     + (SELECT count(*) FROM inbox_outbox.leases)`)
	if taken := e.db.Int(t, `SELECT count(*) FROM broker WHERE deliveries > 0`); taken != 30 {
		t.Errorf("%d messages were taken; want the 30 of the batch in hand", taken)
	}
	e.zero("messages neither acknowledged nor put off", `SELECT count(*) FROM broker WHERE deliveries > 0 AND acked_at IS NULL AND deliver_at > now() + interval '5 minutes'`)
}

// SIGTERM ends a cleanup after the batch in hand, too.
func TestStopInCleanup(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.do("send", "50")
	r := e.start("-cleanup-batch", "10", "-interval", "1s", "-recheck", "1h")
	e.until("all is done", allDone)
	r.says("cleanup: ")
	e.db.Exec(t, `
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN OLD; END $$;
CREATE TRIGGER slowly BEFORE DELETE ON inbox_outbox.inbox FOR EACH ROW EXECUTE FUNCTION slowly()`)
	e.db.Exec(t, `UPDATE inbox_outbox.inbox SET completed_at = completed_at - interval '10 days' WHERE state = 'completed'`)
	e.until("it is in the middle of a batch", deleting)
	r.end()
	if left := e.db.Int(t, `SELECT count(*) FROM inbox_outbox.inbox WHERE state = 'completed'`); left == 0 || left == 2*49 {
		t.Errorf("%d of 98 rows are left; want what was not in the batch in hand", left)
	}
	if !strings.Contains(r.log.String(), "not drained: signal") {
		t.Errorf("the report does not say what ended it:\n%s", r.log.String())
	}
}

// Whose lease a partition is, is alone with it, until the lease has expired.
func TestLease(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.do("send", "50")
	one := e.db.Int(t, `SELECT min(partition) FROM broker`)
	e.db.Exec(t, `
INSERT INTO inbox_outbox.leases (handler, partition, holder, token, expires_at)
SELECT 'bank', p, 'other', gen_random_uuid(), now() + interval '1 hour' FROM generate_series(0, 3) AS p WHERE p <> $1`, one)
	r := e.start()
	e.until("the free partition is done", `SELECT NOT EXISTS (SELECT FROM broker WHERE partition = $1 AND acked_at IS NULL AND body ->> 'account' <> 'hal')`, one)
	e.zero("messages taken from the partitions of somebody else", `SELECT count(*) FROM broker WHERE partition <> $1 AND deliveries > 0`, one)
	e.db.Exec(t, `UPDATE inbox_outbox.leases SET expires_at = now()`)
	e.until("all is done", allDone)
	e.once()
	r.end()
}
