package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

// forgottenSQL lists the relations that hold rows of their own and have a column that says whose they are. Of partitioned
// tables it has the leaves.
const forgottenSQL = `
SELECT n.nspname::text, c.relname::text, c.relkind::text, (array_agg(a.attname::text ORDER BY a.attnum))[1]
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE a.attname = ANY ($1::text[]) AND a.attnum > 0 AND NOT a.attisdropped
   AND c.relkind IN ('r', 'm', 'f') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
 GROUP BY 1, 2, 3
 ORDER BY 1, 2`

// checkForgotten refuses a purge that leaves a table out which has a column like those that say whose a row is, and looks
// at what is left out by name.
func (i *PurgeInspection) checkForgotten(ctx context.Context, q query) error {
	f := &i.findings
	named := func(n policy.Name) bool {
		return slices.ContainsFunc(i.Purge.Tables, func(t policy.PurgeTable) bool { return t.Table == n || hasChild(t.Children, n) })
	}
	type relation struct {
		name         policy.Name
		kind, column string
	}
	found, err := all(ctx, q, forgottenSQL, func(r pgx.CollectableRow) (x relation, err error) {
		err = r.Scan(&x.name.Schema, &x.name.Table, &x.kind, &x.column)
		return x, err
	}, i.tenantColumns())
	if err != nil {
		return err
	}
	forgotten := 0
	for _, x := range found {
		if i.own || named(x.name) || slices.ContainsFunc(i.Purge.Exclude, func(e policy.Exclusion) bool { return e.Table == x.name }) {
			continue
		}
		forgotten++
		what, fix := "table", excludeFix(x.name)+fmt.Sprintf(", or - {table: %s, column: %s} among tables", x.name, x.column)
		if x.kind != "r" {
			what, fix = kinds[x.kind][2:], excludeFix(x.name)
		}
		f.refuse("forgotten", "tables", fix, "%s %s has a column %s, and the purge neither names nor excludes it", what, x.name, x.column)
	}
	if forgotten == 0 && !i.own {
		f.ok("forgotten", "tables", "every table with such a column is named or excluded")
	}
	for _, e := range i.Purge.Exclude {
		key := "exclude." + e.Table.String()
		t, err := readTable(ctx, q, e.Table)
		switch {
		case err != nil:
			return err
		case t == nil:
			f.warn("excluded", key, "leave it out", "%s does not exist", e.Table)
		default:
			f.ok("excluded", key, "the rows of %s stay: %s", e.Table, e.Reason)
		}
	}
	return nil
}

// hasChild reports whether the table is among the children, or below one.
func hasChild(cs []policy.Child, n policy.Name) bool {
	return slices.ContainsFunc(cs, func(c policy.Child) bool { return c.Table == n || hasChild(c.Children, n) })
}
