package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestForeignInbox sweeps inboxes and an outbox of other frameworks by the ready file for such: with the indexes that it
// names, and refused without them.
func TestForeignInbox(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	policy := read("../../examples/policies/foreign_inbox_outbox.yaml")
	db := pgtest.New(t)
	db.Exec(t, read("testdata/foreign.sql"))
	// Of each of 20 days: delivered and done, delivered with a message that refers to it, and not delivered.
	db.Exec(t, `
INSERT INTO messaging."InboxState" ("MessageId", "ConsumerId", "LockId", "Received", "ReceiveCount", "Delivered")
SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), now() - d * interval '1 day', kind, CASE WHEN kind < 3 THEN now() - d * interval '1 day' END
  FROM generate_series(1, 20) d, generate_series(1, 3) kind;
INSERT INTO messaging."OutboxState" ("OutboxId", "LockId", "Created", "Delivered", "LastSequenceNumber")
SELECT gen_random_uuid(), gen_random_uuid(), now() - d * interval '1 day', CASE WHEN kind < 3 THEN now() - d * interval '1 day' END, kind
  FROM generate_series(1, 20) d, generate_series(1, 3) kind;
INSERT INTO messaging."OutboxMessage" ("SentTime", "Body", "InboxMessageId", "InboxConsumerId") SELECT now(), 'm', "MessageId", "ConsumerId" FROM messaging."InboxState" WHERE "ReceiveCount" = 2;
INSERT INTO messaging."OutboxMessage" ("SentTime", "Body", "OutboxId") SELECT now(), 'm', "OutboxId" FROM messaging."OutboxState" WHERE "LastSequenceNumber" = 2;
INSERT INTO wolverine.wolverine_incoming_envelopes
SELECT gen_random_uuid(), status, 0, NULL, 0, 'b', 'm', 'here', now() + interval '1 hour' + (6 - h) * interval '12 hours' FROM generate_series(1, 12) h, unnest(ARRAY['Handled', 'Incoming', 'Scheduled']) status`)

	o := invocation{args: []string{"check"}, env: at(db), policy: policy}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "2 of 3 sweeps refused")
	indexes := regexp.MustCompile(`(?m)^#   (CREATE INDEX .*;)$`).FindAllStringSubmatch(policy, -1)
	if len(indexes) != 2 {
		t.Fatalf("the file names %d indexes", len(indexes))
	}
	for _, m := range indexes {
		db.Exec(t, strings.Replace(m[1], " CONCURRENTLY", "", 1))
	}
	o = invocation{args: []string{"check"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, "0 of 3 sweeps refused", "IX_InboxState_Delivered", "IX_OutboxState_Delivered", "wolverine_incoming_handled")
	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t)
	for name, want := range map[string]int{"inbox": 14, "outbox": 14, "envelopes": 4} {
		if s := sweepOf(t, r, name); s.Removed != want || !s.Drained {
			t.Errorf("%s: %d removed, %s", name, s.Removed, s.Stop)
		}
	}
	for what, want := range map[string]int64{
		`messaging."InboxState" WHERE "ReceiveCount" = 1`:                  6,
		`messaging."InboxState" WHERE "ReceiveCount" > 1`:                  40,
		`messaging."OutboxState" WHERE "LastSequenceNumber" = 1`:           6,
		`messaging."OutboxState" WHERE "LastSequenceNumber" > 1`:           40,
		`messaging."OutboxMessage"`:                                        40,
		`wolverine.wolverine_incoming_envelopes`:                           32,
		`wolverine.wolverine_incoming_envelopes WHERE status <> 'Handled'`: 24,
	} {
		if n := db.Int(t, "SELECT count(*) FROM "+what); n != want {
			t.Errorf("%s: %d, want %d", what, n, want)
		}
	}
}
