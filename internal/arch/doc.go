// Package arch holds the direction of the project's imports by a test, and
// nothing else: which package may import which, who may use the database
// driver, and what a user of the library brings into his program with it.
//
// A new package needs a line in the test's table, and so does a new module for
// each package that imports it.
package arch
