package migrations

import "github.com/prunectl/prunectl/inboxoutbox"

// inboxOutbox declares the component inbox_outbox: the inbox and the outbox of a
// consumer, its leases, and the policy that was agreed on. States are those of
// package inboxoutbox.
//
// It is one version in one transaction. Its tables are new and empty, so that its
// indexes are built in there too: there is nothing to read, and nobody to block.
func inboxOutbox() *component {
	completed := anyOf("state", []inboxoutbox.State{inboxoutbox.Completed})
	pending := anyOf("state", []inboxoutbox.State{inboxoutbox.Pending})
	return declare(&component{
		name:   "inbox_outbox",
		schema: inboxoutbox.DefaultSchema,
		indexes: []Index{
			// What is not finished, the oldest first.
			{Name: "inbox_ready", Table: "inbox", Columns: []string{"received_at", "handler", "event_id"}, Where: pending, Version: 1},
			// What a worker claims: what is available, and claims that have lapsed.
			{Name: "outbox_ready", Table: "outbox", Columns: []string{"available_at", "record_id"}, Where: "(delivered_at IS NULL)", Version: 1},
			// One for each sweep, with the key behind the age, so that many rows of one age can
			// be walked by it. What is not finished is in none of them.
			{Name: "inbox_retention", Table: "inbox", Columns: []string{"completed_at", "handler", "event_id"}, Where: completed, Version: 1},
			{Name: "outbox_retention", Table: "outbox", Columns: []string{"delivered_at", "record_id"}, Where: "(delivered_at IS NOT NULL)", Version: 1},
			{Name: "leases_expiry", Table: "leases", Columns: []string{"expires_at", "handler", "partition"}, Version: 1},
		},
		facts: map[string]any{
			"States":    list(inboxoutbox.States()),
			"Pending":   inboxoutbox.Pending,
			"Completed": inboxoutbox.Completed,
		},
	})
}
