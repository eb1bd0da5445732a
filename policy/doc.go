// Package policy decides what is due: pure values and decisions, no database, no clock of its own, the standard
// library only.
//
// A [Sweep] is one named rule: which rows of which table go, and when. [Sweep.Problems] checks it, [Sweep.Arms] cuts it
// into the parts that one statement each can carry out through an index, and [Sweep.Decide] says of a single row what a
// right sweep does with it and why. Everything that removes rows (the reference model in pruner/memory, the engine in
// pruner/postgres) must agree with Decide.
//
// The safe thing is the zero value: a zero [Window] keeps for ever, a zero [Cutoff] finds nothing, a state that is not
// declared terminal protects. The package refuses to read a clock (now is an argument), to do calendar arithmetic (a day
// is 24 hours) and to evaluate expressions.
package policy
