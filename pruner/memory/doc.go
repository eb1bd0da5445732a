// Package memory is the reference model of a Pruner: a table in memory, small enough to be seen to be right. What it
// removes is what [policy.Sweep.Decide] calls due, in the order of age, and nothing else; the conformance suite holds the
// Postgres engine against it, and tests of package drain run on it.
//
// Beside its rows a [Table] has their owners, and the rows of other tables that refer to them: children, and what is owed.
// It can also play the database that a sweep meets: rows and owners locked by another session, rows that a constraint or a
// trigger keeps in place, rows that change under a batch. It refuses to be fast: each batch sorts the whole table.
package memory
