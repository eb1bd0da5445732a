// Command prunectl removes old rows from PostgreSQL tables: bounded, guarded, and honest about what it did.
//
// The command decides nothing about rows: package policyfile reads the file, pruner/postgres inspects and removes, drain
// bounds, internal/report prints. Here are the flags, the connection, the signals, the progress and the exit code.
//
// It refuses to guess: a word that is no flag, a variable that is set but empty, a name that is in no file are one line on
// stderr and exit code 2, before anything is touched. It asks nothing, so it works the same under cron.
package main
