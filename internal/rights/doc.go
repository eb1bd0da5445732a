// Package rights holds docs/rights.md to the command: the least rights of each command, as GRANT statements in the document,
// are given to a role that has nothing else, and the command does its work; with each single one of them taken away, a right
// on one column too, it refuses or fails, says what is missing, and has touched nothing.
//
// The document is read by the tests: a row of its table is an entry of theirs, and a block of its SQL is what the entry's
// role is given. A row without an entry, an entry without a row and a block that no row names fail the tests.
//
// The package has no code but its tests. That the inspection names every missing right at once, with grants that suffice, is
// held beside the engine.
package rights
