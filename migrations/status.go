package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Status is what is installed of a component in a schema.
type Status struct {
	Component string
	Schema    string
	// Installed is the newest version that is recorded, nil where none is.
	Installed *int
	// Known is the newest version that this program knows.
	Known int
	// Pending are the known versions that are not recorded, oldest first.
	Pending []Version
	// Faults are the declared indexes of recorded versions that are missing, not
	// valid or not as declared, one sentence each. Up mends the first two kinds.
	Faults []string
	// State is all of it in a few words: "up to date", "pending: 2
	// add_retention_index", "not installed", "newer than this binary" or "damaged:
	// index run_events_retention is not valid".
	State string
	// Applied is when the newest recorded version was applied, in UTC by the
	// database's clock; zero where none is.
	Applied time.Time
}

// UpToDate reports whether Up has nothing to do.
func (s Status) UpToDate() bool {
	return s.Installed != nil && *s.Installed == s.Known && len(s.Pending) == 0 && len(s.Faults) == 0
}

// Status reads what is installed, in a read-only transaction: it creates nothing,
// takes no lock that anybody waits for, and works on a standby. An empty database,
// or one without the schema, has the component "not installed".
func (m *Migrator) Status(ctx context.Context) (Status, error) {
	s := Status{Component: m.component.name, Schema: m.schema, Known: m.component.known()}
	tx, err := m.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return s, fmt.Errorf("status of component %s: %w", m.component.name, err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written, and the connection says it again when it is used

	records, err := m.ledger.records(ctx, tx)
	if err != nil {
		return s, fmt.Errorf("status of component %s: %w", m.component.name, err)
	}
	if len(records) > 0 {
		s.Installed = &records[0].number
		s.Applied = records[0].applied.UTC()
	}
	for _, v := range m.component.versions {
		if !recorded(records, v) {
			s.Pending = append(s.Pending, v.public())
			continue
		}
		for _, x := range v.indexes {
			f, err := lookUp(ctx, tx, m.schema, x)
			if err != nil {
				return s, fmt.Errorf("status of component %s: %w", m.component.name, err)
			}
			if fault := f.fault(x); fault != "" {
				s.Faults = append(s.Faults, fault)
			}
		}
	}
	s.State = s.inWords()
	return s, nil
}

func (s Status) inWords() string {
	switch {
	case s.Installed == nil:
		return "not installed"
	case *s.Installed > s.Known:
		return "newer than this binary"
	case len(s.Faults) > 0:
		return "damaged: " + strings.Join(s.Faults, ", ")
	case len(s.Pending) > 0:
		var names []string
		for _, v := range s.Pending {
			names = append(names, v.String())
		}
		return "pending: " + strings.Join(names, ", ")
	}
	return "up to date"
}
