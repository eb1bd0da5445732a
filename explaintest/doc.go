// Package explaintest holds the plans of SQL statements to rules, in tests: that a DELETE finds its rows through one index
// and within a bound, that nothing reads a table whole, sorts it or touches more buffers than it may.
//
// [Parse] reads the text of EXPLAIN (FORMAT JSON) of PostgreSQL 14 to 18, from any driver or from psql; the package beside
// this one, pgxplan, runs EXPLAIN through pgx. [Check] holds a [Plan] to rules and returns an error that prints the plan
// with the nodes at fault marked and says what to look at; [Assert] does so for a test. The rules are [UsesIndex],
// [NodeType], [NoSeqScan], [NoSort], [NoJIT], [MaxBuffers] and [MaxRowsRemovedByFilter]; a [Rule] of one's own has two methods.
//
// Rules are about a relation, by its name with or without its schema, and hold for each of its scans, those of its
// partitions included. The package refuses to pass what it cannot see: a rule about a relation that the plan does not
// read, about buffers of a statement that was not executed, or about an index whose columns nobody told, fails.
// It imports the standard library alone.
package explaintest
