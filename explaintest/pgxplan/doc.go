// Package pgxplan gets plans for package explaintest from a server, through pgx.
//
// [Explain] explains a statement with its arguments, under a plan made for these values or under the generic plan that a
// prepared statement may end with, executed or not. [Fill] makes a table large enough that the planner has a choice, and
// analyses it. [Control] proves a rule: without the index it must fail. [Assert] and [AssertControl] do so for a test.
//
// Whatever a call here executes is rolled back, but for Fill. What a rollback does not take back, such as a sequence's
// next value or what a function does on another connection, it leaves done. The package is for databases of tests: Control
// locks its table until it has its answer.
package pgxplan
