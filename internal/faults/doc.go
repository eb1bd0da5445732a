// Package faults holds the faults that sweeps of other kinds are known for, each as a small starting state (testdata, a
// file named after the fault) and an entry in a table that says what comes of it here: the policies and the runs of the
// command, what other sessions do meanwhile, the rows that are left, the exit code, the word for the stop, and what the
// report must say.
//
// A further fault is a file in testdata and an entry in the table; a file without an entry, or an entry without a file,
// fails the tests. Next to each state stands a query that counts, without any code of ours, what is right; it is asked
// before the first run, so that an entry cannot drift from its state.
//
// The package has no code but its tests. It tests no clause of a statement and no plan: those have suites of their own,
// beside the engine.
package faults
