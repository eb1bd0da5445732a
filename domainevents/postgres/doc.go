// Package postgres is the store of domain events on PostgreSQL, over the tables of
// the component domain_events.
//
// An event is recorded in the caller's transaction. Workers claim deliveries with
// SKIP LOCKED and acknowledge them by comparing who claimed and when, so that a
// worker whose lease has lapsed changes nothing any more. Whoever reopens deliveries
// locks their events first, as the sweep does: what was reported as reopened is
// still there, and owed.
//
// The statements work in every exec mode of pgx and behind a transaction pooler. The
// package has no statement that removes a row.
package postgres
