// Package pgtest gives tests and benchmarks real PostgreSQL databases.
//
// Each test binary uses one server, found or started when the first test asks
// for it, and each test gets a database of its own on it: an empty one from
// [New], or a clone of one that was built once from [Template.New]. A test that
// kills or restarts servers starts its own with [Own]. A package that uses
// this one ends the server with
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// The server is, in this order: the one that PRUNECTL_TEST_DSN names (a
// superuser's connection string; databases are made and dropped on it); one
// started from local server programs (see package pgserver); and otherwise
// every test that needs one fails, with the ways to get one. A missing server
// is never a reason to skip.
//
// A server of our own runs without fsync and without autovacuum, so that
// nothing but the test changes its tables, and with jit as shipped. What a test
// leaves behind is a failure: a session in its database when that is dropped, a
// goroutine when the test binary ends. The server has
// goroutines of its own: a test that looks for leaked ones takes those present
// after its New for granted (goleak.IgnoreCurrent).
package pgtest
