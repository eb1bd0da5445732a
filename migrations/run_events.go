package migrations

import "github.com/prunectl/prunectl/eventlog"

// runEvents declares the component run_events: runs, and their events. The states
// of a run are those of package eventlog.
func runEvents() *component {
	return declare(&component{
		name: "run_events",
		indexes: []Index{{
			Name:  "run_events_retention",
			Table: "run_events",
			// The age leads, so a sweep is one range. The owner's key lets it decide
			// without the table. The sequence makes the key unique, so that many events
			// of one age can be walked by key.
			Columns: []string{"created_at", "tenant_id", "run_id", "sequence"},
			Version: 2,
		}},
		facts: map[string]any{"States": eventlog.States()},
	})
}
