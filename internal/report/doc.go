// Package report is what a command of prunectl says when it is done: one [Report], printed as a table for a person or as
// one JSON document for a program (schema prunectl.report/v1, published as docs/report.schema.json).
//
// Both are views of the same value, so they cannot disagree. The package decides nothing and asks no database: it refuses
// to print what is not in the Report, and a count that was not taken is null or "-", never 0.
package report
