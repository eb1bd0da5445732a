package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// at is what the arm's range is one of, and its cursor a place in: the age, or the expiry that an index has of it and the
// row's own window. An expression is written as the index has it, or the planner would not know it.
func (t *target) at(alias string) string {
	switch {
	case !t.arm.Expiry:
		return alias + "." + ident(t.sweep.Age)
	case t.expiry != "":
		return alias + "." + ident(t.expiry)
	}
	return t.sum(alias)
}

// sum is when a row's own window ends. In UTC a day has 24 hours, whatever the session's zone; and only so is the sum
// immutable, which an index and a generated column ask for.
func (t *target) sum(alias string) string {
	return fmt.Sprintf("(((%s.%s AT TIME ZONE 'UTC'::text) + %s) AT TIME ZONE 'UTC'::text)", alias, ident(t.sweep.Age), interval(alias, t.sweep.Own))
}

// interval is an own window as an interval.
func interval(alias string, o *policy.RowWindow) string {
	col := alias + "." + ident(o.Column)
	switch o.Unit {
	case 0:
		return col
	case time.Second:
		return col + " * interval '1 second'"
	case time.Minute:
		return col + " * interval '1 minute'"
	case time.Hour:
		return col + " * interval '1 hour'"
	}
	return col + " * interval '1 day'"
}

// readExpiries finds the generated columns that are the sum of age and own window. The server writes both the column's
// expression and ours, so that they are spelled alike.
func (i *Inspection) readExpiries(ctx context.Context, q query) error {
	f, t := &i.findings, i.target.table
	if i.Sweep.Own == nil || !t.canUse || !t.canSelect || f.refused("rls") || f.refused("server") {
		return nil
	}
	if !slices.ContainsFunc(t.columns, func(c column) bool { return c.generated != "" }) {
		return nil
	}
	var plan string
	if err := q.exec(ctx, i.target.readSettingsSQL()); err != nil {
		return err
	}
	if err := q.row(ctx, fmt.Sprintf("EXPLAIN (VERBOSE, FORMAT JSON) SELECT %s AS at FROM ONLY %s e", i.target.sum("e"), tableName(t.name))).Scan(&plan); err != nil {
		return fmt.Errorf("explain the sum of age and window: %w", err)
	}
	var doc []struct {
		Plan struct{ Output []string }
	}
	if err := json.Unmarshal([]byte(plan), &doc); err != nil || len(doc) != 1 || len(doc[0].Plan.Output) != 1 {
		return fmt.Errorf("explain the sum of age and window: unexpected answer %s", plan)
	}
	want := expression(strings.ReplaceAll(doc[0].Plan.Output[0], "e.", ""))
	for _, c := range t.columns {
		if c.generated != "" && expression(c.generated) == want {
			i.expiries = append(i.expiries, c.name)
		}
	}
	return nil
}

// expression is an expression without what may be written or not.
func expression(s string) string { return strings.NewReplacer(" ", "", "(", "", ")", "").Replace(s) }
