// Package migrations installs the schemas that prunectl owns. Each is a
// component: a numbered list of versions, each an SQL file with its own way down,
// and the indexes it declares. The component run_events has the runs, their
// append-only events and the index that the sweep of them walks. The component
// domain_events has events, their deliveries to receivers and the newest success of
// each receiver, with triggers that park an event which a dead letter keeps, and that
// remember the success of a delivery before it is deleted or reopened. The component
// inbox_outbox has a consumer's inbox, outbox and leases, and the policy that they are
// swept by. The component connections has what tenants connected to.
//
// A component lives in one schema of one database. What was applied is kept there
// in a ledger of its own, the table prunectl_<component>_migrations, written by
// the migration library (goose) and readable with a plain SELECT. But the ledger
// only says what ran: after Up every declared index is there, valid and defined
// as declared, whatever the ledger said before.
//
//   - Indexes are built and dropped CONCURRENTLY: writers are not blocked. A build
//     that was cut short leaves an index that is not valid; the next Up drops it
//     and builds it again. Only the indexes of new tables, which are empty, may be
//     built in the transaction that makes them. A valid index of a declared name
//     with another definition, or on another table, is refused and left alone.
//   - Two migrators may start at once. One works, the other tries again for the
//     lock until it has it (within Options.LockWait) and finds nothing to do. It
//     never waits inside the server: a waiting statement would hold up the
//     concurrent build that it waits for, for ever.
//   - A schema newer than this program is refused, up and down.
//   - A migrator that was killed can be run again. Of a first version that failed
//     nothing is left, no ledger either.
//   - Down goes one version back. The version that created the tables goes down
//     only while they are empty: no flag drops data.
//
// A migrator needs a session of its own (it holds an advisory lock and sets its
// timeouts): connect it to the server, not through a pooler in transaction mode.
// Status is read-only and needs no more than SELECT.
//
// This package creates no database or role, and no schema but one of a component's
// own (see DefaultSchema), grants nothing, and touches no table that is not declared
// here.
package migrations
