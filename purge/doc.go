// Package purge removes everything of one tenant, and proves it: [Run] goes through the tables that hold the tenant's rows,
// children before parents, in bounded and durable batches, and ends with a look at all of them in one snapshot.
//
// The package refuses to call rows gone that it has not looked for, and to look away from rows that came meanwhile: what
// the look after the first pass finds is counted, removed in a second pass, and looked for again. It knows no database:
// pruner/postgres has the steps. What removes a tenant is kept apart from what sweeps by age, see package tenant.
//
// A purge that was ended, by a signal, a ceiling or a crash, is run again: what is gone stays gone, and it goes on with what
// is left.
package purge
