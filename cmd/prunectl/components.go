package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations"
	"github.com/prunectl/prunectl/migrations/preflight"
	"github.com/prunectl/prunectl/policy"
)

// componentTables are the tables of our components.
var componentTables = map[string][]string{
	"run_events":    {"run_events", "runs"},
	"domain_events": {"domain_event_deliveries", "domain_event_receivers", "domain_events"},
	inboxOutbox:     {"inbox", "leases", "outbox", "settings"},
	"connections":   {"connections"},
}

// component is one of our components in one schema, and what the preflight says of it.
type component struct {
	name, schema string
	report       preflight.Report
	err          error // why the preflight was not made
}

// ledgersSQL says which of the tables are there.
const ledgersSQL = `
SELECT wanted.component, wanted.schema
  FROM unnest($1::text[], $2::text[]) AS wanted (component, schema)
 WHERE EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = wanted.schema AND c.relname = 'prunectl_' || wanted.component || '_migrations')`

// findComponents finds those of our components whose tables a sweep is over. A component is there where the ledger of its
// migrations is: a table of the same name alone may be somebody else's.
func (s *session) findComponents(ctx context.Context) error {
	var names, schemas []string
	for _, sw := range s.sweeps {
		for _, name := range migrations.Components() {
			if slices.Contains(componentTables[name], sw.Table.Table) {
				names, schemas = append(names, name), append(schemas, sw.Table.Schema)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, err := s.pool.Query(ctx, ledgersSQL, names, schemas)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, schema string
		if err := rows.Scan(&name, &schema); err != nil {
			return err
		}
		s.addComponent(name, schema)
	}
	return rows.Err()
}

// addComponent adds a component once.
func (s *session) addComponent(name, schema string) {
	same := func(c *component) bool { return c.name == name && c.schema == schema }
	if !slices.ContainsFunc(s.components, same) {
		s.components = append(s.components, &component{name: name, schema: schema})
	}
}

// componentOf is the component that the table belongs to, nil where it belongs to none.
func (s *session) componentOf(table policy.Name) *component {
	for _, c := range s.components {
		if c.schema == table.Schema && slices.Contains(componentTables[c.name], table.Table) {
			return c
		}
	}
	return nil
}

// preflight compares each component with what its migrations make. A check tells all of them. Other commands ask it of
// inbox_outbox alone, where what may go hangs on the constraints, and tell what cannot be swept: of the others the inspection
// of the sweep asks what it needs, and a trigger that somebody added must not end their retention.
func (s *session) preflight(ctx context.Context) {
	for _, c := range s.components {
		if c.name != inboxOutbox && s.report.Command != report.Checking {
			continue
		}
		c.report, c.err = preflight.Check(ctx, s.pool, c.name, c.schema)
		if c.err != nil && s.report.Command == report.Surveying {
			c.err = nil // who only counts may lack the right to read the ledger
			continue
		}
		if c.refused() || c.err != nil || s.report.Command == report.Checking {
			s.report.Components = append(s.report.Components, c.entry())
		}
	}
}

// refused reports whether nothing may be swept in the component as it is.
func (c *component) refused() bool {
	if c.err != nil {
		return errors.Is(c.err, preflight.ErrRights)
	}
	return c.report.State != "" && c.report.Err() != nil
}

func (c *component) entry() report.Component {
	e := report.Component{Report: c.report, Error: errorOf(c.err)}
	switch {
	case c.err != nil && c.refused():
		e.State, e.Result = report.NotChecked, report.Refuse
	case c.err != nil:
		e.State, e.Result = report.NotChecked, report.Verdict(report.Failed)
	case c.refused():
		e.Result = report.Refuse
	case c.report.Warnings() > 0:
		e.Result = report.Warning
	default:
		e.Result = report.OK
	}
	return e
}

// schemaCheck adds to a sweep over a component that the component cannot be swept as it is, or why that is not known.
func (s *session) schemaCheck(ctx context.Context, in *inspected) {
	switch c := s.componentOf(in.Table); {
	case c == nil:
	case c.refused():
		detail, fix := c.why()
		in.refuse(report.Check{Check: "schema", Result: report.Refuse, Detail: detail, Fix: fix, Position: s.file.Position(in.Name, "table")})
	case c.err != nil:
		in.fail(ctx, c.err)
	}
}

// why says in one line why the component is refused: the state, and the first of the differences.
func (c *component) why() (detail string, fix *string) {
	if c.err != nil {
		const grant = "GRANT "
		detail, do, granting := strings.Cut(c.err.Error(), "; "+grant)
		if do = grant + do; granting {
			fix = &do
		}
		return detail, fix
	}
	detail, _, _ = strings.Cut(c.report.String(), "\n")
	var refused []preflight.Finding
	for _, f := range c.report.Findings {
		if f.Result == preflight.Refused {
			refused = append(refused, f)
		}
	}
	if len(refused) > 0 {
		detail += ": " + strings.TrimPrefix(refused[0].String(), string(preflight.Refused)+": ")
	}
	if more := len(refused) - 1; more > 0 {
		detail += fmt.Sprintf("; and %d more, which prunectl check names", more)
	}
	return detail, nil
}
