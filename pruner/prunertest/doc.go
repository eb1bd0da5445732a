// Package prunertest is the contract of [pruner.Pruner] as a suite of checks. The suite runs on every implementation: a
// [Factory] fills a fresh population from a [Fixture], in memory or in a database, and the checks hold what the
// implementation does with it against [policy.Sweep.Decide].
//
// A check returns an error rather than failing a test, so that the suite itself can be proved: for each check there is a
// Pruner with one defect that it must report.
//
// The suite speaks of what a single session can see. Races between two sessions that need a pause in the middle of a batch,
// plans and costs are for the implementation's own tests.
package prunertest
