package faults

import "strings"

// The sweeps that most entries go by; with changes one.
const (
	eventsSweep = `
  run_events:
    table: run_events
    age: created_at
    window: 30d
    guard: {owner: {table: runs, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed, failed, cancelled]}}
    index: run_events_age
    batch: {limit: 100}
    ceiling: {batches: 1000}
`
	jobsSweep = `
  jobs:
    table: jobs
    age: finished_at
    window: 7d
    guard: {state: state, terminal: [done, failed, cancelled]}
    index: jobs_age
    batch: {limit: 100}
`
)

// unguarded is a sweep of a table with nothing owed on its rows, which keeps them 30 days.
func unguarded(table, index string) string {
	return "\n  " + table + ":\n    table: " + table + "\n    age: at\n    window: 30d\n" +
		"    guard: {none: \"rows of a test, on which nothing is owed\"}\n    index: " + index + "\n"
}

// with gives a sweep these lines, in the place of those with the same keys.
func with(sweep string, lines ...string) string {
	for _, line := range lines {
		key, _, _ := strings.Cut(line, ":")
		sweep = without(sweep, key) + "    " + line + "\n"
	}
	return sweep
}

// without takes a key out of a sweep.
func without(sweep, key string) string {
	var kept []string
	for line := range strings.Lines(sweep) {
		if !strings.HasPrefix(line, "    "+key+":") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// named gives a sweep another name.
func named(sweep, name string) string {
	_, rest, _ := strings.Cut(strings.TrimLeft(sweep, "\n"), "\n")
	return "\n  " + name + ":\n" + rest
}

// fileOf is a policy file with these sweeps.
func fileOf(sweeps ...string) string {
	return "version: 1\ndefaults: {schema: public}\nsweeps:" + strings.Join(sweeps, "")
}
