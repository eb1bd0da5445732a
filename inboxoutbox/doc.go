// Package inboxoutbox is a consumer's transactional inbox and outbox that forgets: the
// events it received, so that each is handled once; the records it has to deliver,
// written in the transaction of what happened; the leases by which workers share the
// work; and the one policy by which all of them go.
//
//   - An inbox row is pending until its event was handled, and then completed. A
//     completed row is what keeps the same event from being handled again: with it
//     the event is forgotten, and a late repetition comes in as new. So [Settings] can
//     say how late repetitions can be, and a shorter window is refused.
//   - An outbox record goes a window after it was delivered.
//   - A lease goes when it has expired.
//
// What is not completed and not delivered never goes, whatever its age.
//
// Nothing here and in the adapter can remove a row, but for a lease that its holder
// gives back: removal lives with the sweep alone, see the package retention. This
// package brings no driver. The adapter for PostgreSQL, the one database of this
// version, is inboxoutbox/postgres; the tables come from the component inbox_outbox
// of package migrations.
//
// Lanes, notification, backoff curves, codecs, hooks and routing are out of scope.
package inboxoutbox
