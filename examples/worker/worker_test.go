package main

import (
	"os"
	"strings"
	"testing"
)

// Workers are killed in the middle of a batch of deliveries and in the middle of a sweep, and others go on: all work is done
// once, nothing that is owed or kept is lost, and all that is due goes.
func TestKilled(t *testing.T) {
	e := newExample(t)
	const n = 2000
	e.do("setup")
	e.do("record", "2000")

	// Twice two workers, killed while each has a batch in hand: as they acknowledge, and as they commit. None of them sweeps.
	e.db.Exec(t, `CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int); RETURN NEW; END $$;
CREATE TRIGGER gate BEFORE UPDATE ON domain_event_deliveries FOR EACH ROW WHEN (NEW.status = 'succeeded') EXECUTE FUNCTION gate('1');
CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON work_done DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate('2')`)
	var a, b *running
	for gate := 1; gate <= 2; gate++ {
		a, b = e.start("-sweep=false"), e.start("-sweep=false")
		e.until("work is done", `SELECT count(*) > $1 FROM work_done`, 300*gate)
		closed := e.db.Conn(t)
		if _, err := closed.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, gate); err != nil {
			t.Fatal(err)
		}
		e.until("both are in the middle of a delivery", waiting, 2)
		a.kill()
		b.kill()
		e.db.Exec(t, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e.db.Int(t, `SELECT count(*) FROM domain_event_deliveries WHERE status = 'claimed'`) < 2 {
			t.Error("they had nothing in hand")
		}
	}
	e.db.Exec(t, `DROP FUNCTION gate CASCADE`)

	// Two more do the rest, also what the killed ones had claimed.
	a, b = e.start("-sweep=false"), e.start("-sweep=false")
	e.until("nothing is owed", nothingOwed)
	a.end()
	b.end()
	wholeAndOnce(e, n)
	if events := e.db.Int(t, `SELECT count(*) FROM domain_events`); events != n {
		t.Errorf("%d events are left without a sweep; want all %d", events, n)
	}

	// One sweeps, so slowly that it is killed in the middle of it.
	e.db.Exec(t, `CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.005); RETURN OLD; END $$;
CREATE TRIGGER slowly BEFORE DELETE ON domain_events FOR EACH ROW EXECUTE FUNCTION slowly()`)
	a = e.start()
	e.until("events are being removed", deleting)
	a.kill()
	e.until("its session has ended", alone)
	e.zero("events that lost a part of their deliveries", `SELECT count(*) FROM domain_events e
 WHERE (SELECT count(*) FROM domain_event_deliveries d WHERE d.event_id = e.id) <> CASE e.type WHEN 'order.placed' THEN 2 ELSE 1 END`)
	if e.db.Int(t, `SELECT count(*) FROM domain_events WHERE type = 'cart.left'`) == 0 {
		t.Error("the sweep was over when it was killed")
	}
	e.db.Exec(t, `DROP TRIGGER slowly ON domain_events`)

	// Two more sweep and work at once.
	a, b = e.start(), e.start()
	e.do("record", "1000")
	e.until("nothing is owed", nothingOwed)
	e.until("all that is due is gone", `SELECT count(*) = 0 FROM domain_events WHERE type IN ('cart.left', 'price.changed')`)
	e.until("all that is due is gone", `SELECT count(*) = $1 FROM domain_events WHERE type = 'order.placed'`, n/100+1000/100)
	a.end()
	b.end()
	for _, r := range []*running{a, b} {
		if s := r.log.String(); strings.Contains(s, "failed") || strings.Contains(s, "ERROR") {
			t.Errorf("sweeps failed:\n%s", s)
		}
	}
	wholeAndOnce(e, n+1000)
	// What is left are the dead letters, whole, and what is kept for longer.
	if got, want := e.do("show"), `EVENT           RETENTION  EVENTS  OWED  SUCCEEDED  DEAD
invoice.issued  default    750     0     750        0
order.placed    SUCCEEDED  30      0     30         30
`; got != want {
		t.Errorf("left are\n%swant\n%s", got, want)
	}
	e.zero("dead letters of others than who cannot be reached", `SELECT count(*) FROM domain_event_deliveries d
  JOIN domain_events e ON e.id = d.event_id
 WHERE d.status = 'dead' AND (d.receiver <> 'mail' OR NOT (e.payload ->> 'no_address')::bool OR d.last_error IS NULL)`)
	// That receivers had successes is known, also where the deliveries are gone.
	e.zero("receivers whose newest success is forgotten", `SELECT count(*)
  FROM (SELECT receiver, max(done_at) AS newest FROM work_done GROUP BY receiver) w
 WHERE w.newest > greatest((SELECT last_success FROM domain_event_receivers r WHERE r.receiver = w.receiver),
                           (SELECT max(finished_at) FROM domain_event_deliveries d WHERE d.receiver = w.receiver AND d.status = 'succeeded'))`)
	if got := e.db.Text(t, `SELECT string_agg(receiver, ' ' ORDER BY receiver) FROM domain_event_receivers`); got != "mail stock" {
		t.Errorf("remembered are %q; want those whose deliveries went", got)
	}
}

// wholeAndOnce holds that of n recorded events every delivery was made, once, or is a dead letter.
func wholeAndOnce(e *example, n int64) {
	e.Helper()
	if orders := e.db.Int(e.T, `SELECT count(*) FROM orders`); orders != n {
		e.Errorf("%d things happened in the shop; want %d", orders, n)
	}
	e.zero("work done more than once", `SELECT count(*) FROM (SELECT FROM work_done GROUP BY event_id, receiver HAVING count(*) > 1) AS twice`)
	// Of a hundred events 25 are of each kind, and one order and one cart have no address.
	for receiver, each := range map[string]int64{"mail": 24 + 24, "stock": 25 + 25, "ledger": 25} {
		if got, want := e.db.Int(e.T, `SELECT count(*) FROM work_done WHERE receiver = $1`, receiver), each*n/100; got != want {
			e.Errorf("%s did its work %d times; want %d", receiver, got, want)
		}
	}
}

// SIGTERM ends a worker after the batch in hand, and what it had claimed is done.
func TestStop(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.do("record", "400")
	lock := e.db.Conn(t)
	if _, err := lock.Exec(t.Context(), `BEGIN; LOCK TABLE work_done IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	r := e.start("-batch", "50", "-lease", "1h")
	e.until("it is in the middle of a delivery", waiting, 1)
	r.term()
	r.says("ending after the batch in hand")
	if _, err := lock.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	r.ended()
	if claimed := e.db.Int(t, `SELECT count(*) FROM domain_event_deliveries WHERE status = 'claimed'`); claimed != 0 {
		t.Errorf("%d deliveries are left claimed", claimed)
	}
	if done := e.db.Int(t, `SELECT count(*) FROM domain_event_deliveries WHERE attempts = 1`); done != 50 {
		t.Errorf("%d deliveries were tried; want the 50 of the batch in hand", done)
	}
}

// What is wrong with the settings or the database is said before any work is done.
func TestRefused(t *testing.T) {
	e := newExample(t)
	e.do("setup")
	e.do("record", "10")
	for _, c := range []struct{ flag, says string }{
		{"-interval=0", "Interval is zero"},
		{"-interval=-1s", "Interval is negative"},
		{"-window=0", "a window of 0s"},
		{"-poll=0", "-poll 0s"},
	} {
		out, err := e.command("run", c.flag).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v, %s; want %q", c.flag, err, out, c.says)
		}
	}
	e.db.Exec(t, `DROP INDEX domain_events_policy`)
	if out, err := e.command("run").CombinedOutput(); err == nil || !strings.Contains(string(out), "domain_events_policy") {
		t.Errorf("without its index: %v, %s", err, out)
	}
	if owed := e.db.Int(t, `SELECT count(*) FROM domain_event_deliveries WHERE status = 'pending'`); owed != 13 {
		t.Errorf("%d deliveries are pending; want all 13", owed)
	}
}

// The tour of the README goes as it says.
func TestTour(t *testing.T) {
	e := newExample(t)
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(command, printed string) {
		t.Helper()
		var block strings.Builder
		for _, line := range append([]string{"$ ./worker " + command}, strings.Split(strings.TrimSpace(printed), "\n")...) {
			block.WriteString("   " + line + "\n")
		}
		if !strings.Contains(string(text), block.String()) {
			t.Errorf("the README does not have\n%s", block.String())
		}
	}
	says("setup", e.do("setup"))
	says("record 1000", e.do("record", "1000"))
	says("show", e.do("show"))
	r := e.start()
	e.until("nothing is owed", nothingOwed)
	e.until("all that is due is gone", `SELECT count(*) = 260 FROM domain_events`)
	r.end()
	for _, line := range []string{
		"is at work", "sweep domain_events: ", "sweep domain_events_succeeded: ", "sweep domain_events_settled: ",
		"deliveries removed in", ", drained", "terminated: ending after the batch in hand", "has ended",
	} {
		if !strings.Contains(r.log.String(), line) || !strings.Contains(string(text), line) {
			t.Errorf("%q is not in the README, or not in\n%s", line, r.log.String())
		}
	}
	says("show", e.do("show"))
}
