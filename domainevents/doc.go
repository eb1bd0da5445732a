// Package domainevents is a transactional outbox that forgets: events that are
// recorded in the transaction of what happened, their deliveries to receivers, and
// the rule by which an event goes once nothing is owed on it.
//
// A delivery has one of these statuses; while one of an event's deliveries is in a
// status that is not marked terminal, something is owed, and under no rule does the
// event go. A dead letter was not delivered, and can be requeued:
//
//   - pending
//   - claimed
//   - failed
//   - succeeded (terminal)
//   - dead (terminal, dead letter)
//   - orphaned (terminal, dead letter)
//   - cancelled (terminal)
//
// The declaration is in status.go; the tables, statements and sweeps are rendered
// from it.
//
// How long an event is kept once nothing is owed is its [Retention], which is
// written on its row when it is recorded: the default window, a window of its own,
// or a [Policy]. An event without any delivery is consumed when it is recorded.
//
// Nothing here and in the adapter can remove an event: removal lives with the
// sweep alone, see the package retention. This package brings no driver. The adapter
// for PostgreSQL is domainevents/postgres, the tables come from the component
// domain_events of package migrations.
//
// Lanes, notification, backoff curves, codecs, hooks and routing are out of scope.
package domainevents
