// Package drain calls a [pruner.Pruner] batch after batch until nothing due is left or a ceiling is reached, and says
// honestly which: [Run] for one arm, [RunSweep] for the arms of a sweep, [RunAll] for the sweeps of a file in fair turns
// under one budget. A [Loop] does that in the idle time of a worker, a little at a time.
//
// A drain is a pass from the oldest row to the cutoff, and a second one where the first met rows that somebody had locked
// or changed; then it stops and says so. It adapts the size of its batches to a time target, finds its way past rows that
// the database refuses to delete or that stay locked, and its counts are exact also beside an error, after a cancelled
// context and after a signal. What ended it is a value, [Stop].
//
// The package refuses to take a short batch for the end, to retry what cannot succeed, to wait without a bound, and to
// start goroutines: the caller's goroutine does all the work, and nothing is left running when a call returns.
package drain
