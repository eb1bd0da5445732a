// Package eventlog is the append-only log of what happened to a run: the port
// that ordinary run code is given, and the states a run can be in.
//
// The port ([Log]) can append, list and tell the latest sequence. It has no way
// to remove an event, on purpose: removal lives with the sweep alone, so that
// deletion is out of reach of run code by construction.
//
// A run is in one of these states; those marked terminal owe nothing any more,
// and only the events of a run in a terminal state may be swept:
//
//   - queued
//   - running
//   - waiting-for-question
//   - waiting-for-approval
//   - retry-pending
//   - completed (terminal)
//   - failed (terminal)
//   - cancelled (terminal)
//
// The declaration is in state.go; the SQL of the table is rendered from it.
//
// This package imports the standard library only. The adapter for PostgreSQL is
// eventlog/postgres, the tables come from the component run_events of package
// migrations.
package eventlog
