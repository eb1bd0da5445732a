// Package measure runs a subject and counts: what each batch cost and how long it took, round trips, the memory of the
// command, and what a load beside it noticed.
//
// Costs and times are taken in separate runs: nothing is asked between the batches of a run that is timed.
package measure
