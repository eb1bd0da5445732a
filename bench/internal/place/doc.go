// Package place is where benches run: a throw-away server of their own, or one that --dsn names, with populations that are
// built once and cloned for each measurement, and a meter of what a clone cost.
//
// It refuses to measure on a server without pg_stat_statements and pg_prewarm: costs that are not counted by the server
// itself, on buffers that are as warm for one subject as for the next, cannot be compared.
package place
