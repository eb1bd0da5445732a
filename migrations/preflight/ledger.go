package preflight

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// ledger is the table in which the migrations record what ran.
func ledger(component string) string { return "prunectl_" + component + "_migrations" }

// place is the schema as it is found, before anything in it is compared.
type place struct {
	exists   bool
	plain    string // its name as the server quotes it
	readable bool   // the ledger can be asked for its versions
	records  []int  // the versions that are recorded, oldest first
}

const selectPlace = `
SELECT n.oid IS NOT NULL,
       pg_catalog.quote_ident(wanted.name),
       a.attrelid IS NOT NULL,
       coalesce(pg_catalog.has_schema_privilege(n.oid, 'USAGE'), true),
       coalesce(pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT'), true),
       current_user::text
  FROM (VALUES ($1::text, $2::text)) AS wanted (name, ledger)
  LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.name
  LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.ledger AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'version' AND NOT a.attisdropped AND a.atttypid = 'pg_catalog.int8'::regtype`

// place looks for the schema and reads the ledger.
func (a asker) place(ctx context.Context, component, schema string) (place, error) {
	var p place
	var usage, column bool
	var role string
	err := a.row(ctx, selectPlace, schema, ledger(component)).Scan(&p.exists, &p.plain, &p.readable, &usage, &column, &role)
	if err != nil || !p.readable {
		return p, err
	}
	quoted, grantee := pgx.Identifier{schema, ledger(component)}.Sanitize(), pgx.Identifier{role}.Sanitize()
	if !usage {
		return p, fmt.Errorf("%w: role %s may not use the schema; GRANT USAGE ON SCHEMA %s TO %s", ErrRights, role, pgx.Identifier{schema}.Sanitize(), grantee)
	}
	if !column {
		return p, fmt.Errorf("%w: role %s may not read the ledger; GRANT SELECT ON %s TO %s", ErrRights, role, quoted, grantee)
	}
	err = a.each(ctx, `SELECT version FROM `+quoted+` ORDER BY version`, func(row pgx.CollectableRow) error {
		var n int
		err := row.Scan(&n)
		p.records = append(p.records, n)
		return err
	})
	return p, err
}

// pending are the versions of k that are not recorded.
func (p place) pending(k known) []Version {
	all := []Version{}
	for _, v := range k.versions {
		if !slices.Contains(p.records, v.Number) {
			all = append(all, v)
		}
	}
	return all
}
