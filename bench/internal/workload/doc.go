// Package workload is what is measured: the populations, and the subjects that drain them. Beside our own sweep these are
// the shapes that people use today, each written from its description.
//
// Populations have fixed ages, so that every run and every machine sees the same rows; a subject is told the time.
package workload
