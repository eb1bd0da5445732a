// Package postgres is the event log on PostgreSQL: an adapter of the port
// eventlog.Log over the tables runs and run_events of the component run_events.
//
// It works on a pool, on a connection and in a transaction of the caller's own,
// in every exec mode of pgx and behind a transaction pooler: each method is one
// statement and leaves nothing behind in the session.
//
// It appends and reads. It has no statement that removes or rewrites an event,
// and it neither creates runs nor changes their state: those rows belong to the
// application. (Append counts in runs.last_sequence and touches nothing else of
// the row.)
package postgres
