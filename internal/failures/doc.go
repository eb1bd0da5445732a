// Package failures breaks what a sweep stands on while it works, and holds what the real command then says against what is
// really gone: the command killed at points of the wire, the server's backend or the whole server killed, the line reset in
// a statement or at COMMIT, a standby that does not answer, a full disk, a failover, a reader of its words that went away.
//
// Each test ends with a report that is true, the exit code of the README's table, a server on which nothing of the broken
// run is left, and a next run that takes what was left. What is gone is counted by the test and entered by the server
// itself in a ledger, in the transaction that removes it.
//
// The package has no code but its tests. Faults of states, policies and rights have a table of their own, in package
// faults; what the engine alone answers is tested beside it.
package failures
