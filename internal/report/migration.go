package report

import "io"

// MigrationTable prints what is installed: a row each with component, schema, installed and known version, state, and when.
func MigrationTable(w io.Writer, rows [][]string) error {
	return table(w, []column{{"COMPONENT", false}, {"SCHEMA", false}, {"INSTALLED", true}, {"KNOWN", true}, {"STATE", false}, {"APPLIED", false}}, rows)
}
