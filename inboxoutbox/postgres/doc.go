// Package postgres is the store of an inbox, an outbox and leases on PostgreSQL, over the
// tables of the component inbox_outbox.
//
// An event is received under a lock and completed in the transaction of what its handler
// wrote, by comparing the lock's token: both are there when that transaction commits, or
// neither. Records are added in the transaction of what happened. Workers claim them with
// SKIP LOCKED and acknowledge them by comparing the claim's token. So whoever lost his
// lock, claim or lease to somebody else changes nothing any more.
//
// All times are the database's. The statements work in every exec mode of pgx and behind a
// transaction pooler. The package has one statement that removes a row: a lease goes when
// its holder gives it back.
package postgres
