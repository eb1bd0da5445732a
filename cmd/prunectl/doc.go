// Command prunectl removes old rows from PostgreSQL tables: bounded, guarded, and honest about what it did.
//
// The command decides nothing about rows: package policyfile reads the file, pruner/postgres inspects and removes, drain
// bounds, purge removes a tenant and looks for what is left, internal/report prints. Here are the flags, the connection, the
// signals, the progress and the exit code.
//
// It refuses to guess: a word that is no flag, a variable that is set but empty, a name that is in no file are one line on
// stderr and exit code 2, before anything is touched. It asks two things: whether a policy may make rows due, and the name of
// a tenant that is to go. Where nobody can answer it wants a yes beforehand, so it works the same under cron.
package main
