package migrations

import (
	"fmt"
	"strings"

	"github.com/prunectl/prunectl/domainevents"
)

// domainEvents declares the component domain_events: events, their deliveries, and
// the newest success of each receiver. Statuses and policies are those of package
// domainevents.
func domainEvents() *component {
	const events, deliveries = "domain_events", "domain_event_deliveries"
	return declare(&component{
		name: "domain_events",
		indexes: []Index{
			// One index for each arm of the sweep, so that an idle arm is an empty range: the
			// rows without and with a window of their own, and those that a policy lets go.
			{Name: "domain_events_default", Table: events, Columns: []string{"recorded_at", "id"}, Where: "(retention_seconds IS NULL)", Version: 2},
			{Name: "domain_events_own", Table: events, Columns: []string{"expires_at", "id"}, Where: "(retention_seconds IS NOT NULL)", Version: 2},
			// What a dead letter keeps is not in it, and so is not read again at every sweep.
			{Name: "domain_events_policy", Table: events, Columns: []string{"retention_policy", "recorded_at", "id"},
				Where: "((retention_policy IS NOT NULL) AND (NOT parked))", Version: 2},
			{Name: "domain_events_parked", Table: events, Columns: []string{"recorded_at", "id"}, Where: "parked", Version: 2},
			// Who is owed: of an event's deliveries the few that are not done.
			{Name: "domain_event_deliveries_open", Table: deliveries, Columns: []string{"event_id", "status"}, Where: noneOf("status", domainevents.Done()), Version: 2},
			// What a worker claims: what is due, and claims whose lease has lapsed.
			{Name: "domain_event_deliveries_due", Table: deliveries, Columns: []string{"due_at", "id"},
				Where: anyOf("status", []domainevents.Status{domainevents.Pending, domainevents.Failed}), Version: 2},
			{Name: "domain_event_deliveries_claimed", Table: deliveries, Columns: []string{"claimed_until", "id"},
				Where: anyOf("status", []domainevents.Status{domainevents.Claimed}), Version: 2},
			// What can be requeued, oldest event first.
			{Name: "domain_event_deliveries_dead", Table: deliveries, Columns: []string{"event_id", "receiver"},
				Where: anyOf("status", domainevents.DeadLetters()), Version: 2},
			// The newest success of a receiver among the living rows.
			{Name: "domain_event_deliveries_succeeded", Table: deliveries, Columns: []string{"receiver", "finished_at"},
				Where: anyOf("status", []domainevents.Status{domainevents.Succeeded}), Version: 2},
		},
		facts: map[string]any{
			"Statuses":        list(domainevents.Statuses()),
			"Terminal":        list(domainevents.Terminal()),
			"DeadLetters":     list(domainevents.DeadLetters()),
			"Pending":         domainevents.Pending,
			"Claimed":         domainevents.Claimed,
			"Succeeded":       domainevents.Succeeded,
			"Policies":        list(domainevents.Policies()),
			"PolicySucceeded": domainevents.PolicySucceeded,
		},
	})
}

// anyOf and noneOf are predicates over a text column, in the words in which the
// server prints them.
func anyOf[T ~string](column string, values []T) string {
	if len(values) == 1 {
		return fmt.Sprintf("(%s = %s::text)", column, literal(values[0]))
	}
	return fmt.Sprintf("(%s = ANY (%s))", column, array(values))
}

func noneOf[T ~string](column string, values []T) string {
	return fmt.Sprintf("(%s <> ALL (%s))", column, array(values))
}

func array[T ~string](values []T) string {
	var all []string
	for _, v := range values {
		all = append(all, literal(v)+"::text")
	}
	return "ARRAY[" + strings.Join(all, ", ") + "]"
}

// list renders texts as an SQL list.
func list[T ~string](values []T) string {
	var all []string
	for _, v := range values {
		all = append(all, literal(v))
	}
	return strings.Join(all, ", ")
}
