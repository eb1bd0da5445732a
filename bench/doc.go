// Bench measures what a sweep costs and how long it takes, beside the statements that people use today: go run ./bench.
//
// It prints tables, and writes the figures as JSON and as one page of HTML with plots. docs/bench.md says what is measured
// and how. Costs are counted by the server, in shared buffers and bytes of WAL, and are the same on every machine; the tests
// here hold their bounds in a short form. Times depend on the machine: they are compared within one run, and no test fails
// on one.
package main
