// Package policyfile reads the policy language of prunectl: one strict YAML file that says which rows of which tables go,
// and when, and where the rows of one tenant are. docs/policy.md of this repository is its reference.
//
// [Parse] returns the sweeps, the purges and the budget of a file, or every fault of it in one go, each at its line and
// column. What it returns has no [policy.Sweep.Problems] and no [policy.Purge.Problems]; whether the tables, columns and
// states exist is for the database to say, and [File.Position] and [File.PurgePosition] print such findings at their place.
//
// The package refuses to guess. There are no anchors, aliases, merge keys, tags, includes or variables: each sweep says
// all of itself. Two equal keys are an error and never "the last one wins", a bare number is no duration, and a key that is
// not known, or not known yet, is refused and never skipped. It reads no environment, no clock and no database.
package policyfile
