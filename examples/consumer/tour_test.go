package main

import (
	"os"
	"strings"
	"testing"
)

// The tour of the README goes as it says.
func TestTour(t *testing.T) {
	e := newExample(t)
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	has := func(texts ...string) {
		t.Helper()
		for _, s := range texts {
			if !strings.Contains(string(text), s) {
				t.Errorf("the README does not have\n%s", s)
			}
		}
	}
	says := func(command, printed string) {
		t.Helper()
		var block strings.Builder
		for _, line := range append([]string{"$ " + command}, strings.Split(strings.TrimSpace(printed), "\n")...) {
			block.WriteString("   " + line + "\n")
		}
		has(block.String())
	}
	do := func(args string) {
		t.Helper()
		says("./consumer "+args, e.do(strings.Fields(args)...))
	}
	do("setup")
	do("send 1000")
	r := e.start("-interval", "10s")
	e.until("all is done", allDone)
	_, ready := r.get("/readyz")
	says("curl http://127.0.0.1:8080/readyz", ready)
	do("show")
	do("replay 3d")
	e.until("all is done", allDone)
	do("show")
	says("./consumer replay 30d", e.refused([]string{"replay", "30d"}))

	// The unfinished are tried again when their pause is over, which is not waited for here.
	e.db.Exec(t, `UPDATE accounts SET open = true`)
	has(`psql "$DATABASE_URL" -c "UPDATE accounts SET open = true"`, `psql "$DATABASE_URL" -c "DROP INDEX inbox_outbox.inbox_retention"`)
	e.until("the unfinished are done", `
WITH hurry AS (UPDATE broker SET deliver_at = now() WHERE acked_at IS NULL AND deliver_at > now() + interval '2 s')
SELECT NOT EXISTS (SELECT FROM broker WHERE acked_at IS NULL) AND NOT EXISTS (SELECT FROM inbox_outbox.outbox WHERE delivered_at IS NULL)`)

	e.db.Exec(t, `DROP INDEX inbox_outbox.inbox_retention`)
	r.answers(503, "inbox_retention: expected btree (completed_at, handler, event_id) where (state = 'completed'::text), found nothing")
	_, ready = r.get("/readyz")
	says("curl http://127.0.0.1:8080/readyz", ready)
	do("setup")
	r.answers(200, "ready")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.ended()
	for _, line := range []string{
		"component inbox_outbox in schema inbox_outbox: up to date, version 1", "recorded: policy 9c654938c1eb recorded ", "is at work, http://127.0.0.1:", "/readyz says whether all is well",
		" of 20 messages come again: payment-", ", delivery 1: account hal is not open", "interrupt: ending after the batch in hand",
		" has ended: 2000 events handled, 1200 deliveries of events that were handled before, 1000 records sent",
	} {
		if !strings.Contains(r.log.String(), line) {
			t.Errorf("%q is not in\n%s", line, r.log.String())
		}
		has(line)
	}

	windows := "-interval 5s -inbox-window 20s -outbox-window 20s -redelivery 10s -manual 20s -remote 20s"
	refused := e.refused(append(append([]string{}, hurry...), strings.Fields(windows)...))
	has("$ ./consumer run "+windows+"\n", refused[strings.Index(refused, "; cleanup_interval: "):])
	e.db.Exec(t, `UPDATE inbox_outbox.inbox SET completed_at = completed_at - interval '1 min'; UPDATE inbox_outbox.outbox SET delivered_at = delivered_at - interval '1 min'`)
	r = e.start(append(strings.Fields(windows), "-replace-policy", "-yes")...)
	r.says("cleanup: ")
	for _, line := range []string{
		"inbox: 2000 removed, 0 due left, 0 not completed, 0 within the window of 20s; drained", " through inbox_retention, cutoff ",
		"outbox: 1000 removed, 0 due left, 0 not delivered, 0 within the window of 20s; drained", " through outbox_retention, cutoff ",
		"leases: 0 removed, 0 due left, 0 in force; drained, for nothing was due; 0 batches in ", " through leases_expiry, cutoff ",
	} {
		r.says(line)
		has(line)
	}
	r.end()
}
