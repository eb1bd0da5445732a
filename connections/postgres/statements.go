package postgres

import (
	"github.com/jackc/pgx/v5"
)

// statements are the texts of a Store: all the SQL this package has.
type statements struct {
	create, get, list, update, revoke string
	settings, has                     string
}

// render writes the statements for the table of one schema. A limit in a sub-select is one that the planner cannot read: it
// then takes the order from the index, also where the statistics know of no rows and a sort of all of them looks cheap.
func render(schema string) statements {
	table := pgx.Identifier{schema, "connections"}.Sanitize()
	// As IS NULL this would let the planner take the index of the lists, with all rows of the tenant, where the table was never
	// analysed.
	const living = `num_nonnulls(c.revoked_at) = 0`
	const shown = `c.id, c.kind, c.name, c.settings::text, c.created_at, c.updated_at`
	return statements{
		// $1 tenant, $2 id, $3 kind, $4 name, $5 settings, $6 secret. No row where the id is there already: an error would
		// end a caller's transaction.
		create: `
INSERT INTO ` + table + ` AS c (tenant_id, id, kind, name, settings, secret, created_at, updated_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text::jsonb, $6::bytea, statement_timestamp(), statement_timestamp())
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING ` + shown,

		// $1 tenant, $2 id. As hexadecimal digits, which no setting of the session writes in another way.
		get: `
SELECT ` + shown + `, encode(c.secret, 'hex') AS secret
  FROM ` + table + ` AS c
 WHERE c.tenant_id = $1::text
   AND c.id = $2::text
   AND ` + living,

		// $1 tenant, $2 and $3 the place to begin behind, $4 limit.
		list: `
SELECT ` + shown + `
  FROM ` + table + ` AS c
 WHERE c.tenant_id = $1::text
   AND (c.created_at, c.id) > ($2::timestamptz, $3::text)
   AND c.revoked_at IS NULL
 ORDER BY c.created_at, c.id
 LIMIT (SELECT $4::bigint)`,

		// $1 tenant, $2 id, $3 name, $4 settings, null to leave each as it is, $5 whether $6 is the secret. That the
		// connection is not revoked is asked of the newest version of its row, also where this waited for somebody; the time
		// is that after the wait, where the row was changed meanwhile.
		update: `
UPDATE ` + table + ` AS c
   SET name = coalesce($3::text, c.name),
       settings = coalesce($4::text::jsonb, c.settings),
       secret = CASE WHEN $5::boolean THEN $6::bytea ELSE c.secret END,
       updated_at = greatest(clock_timestamp(), c.updated_at)
 WHERE c.tenant_id = $1::text
   AND c.id = $2::text
   AND ` + living + `
RETURNING ` + shown,

		// $1 tenant, $2 id. The first time stays: it is read off the newest version of the row, also where this waited for
		// somebody who revoked it.
		revoke: `
UPDATE ` + table + ` AS c
   SET revoked_at = coalesce(c.revoked_at, greatest(clock_timestamp(), c.updated_at)),
       secret = NULL
 WHERE c.tenant_id = $1::text
   AND c.id = $2::text
RETURNING c.revoked_at`,

		// Rows that a policy hides are an error from here to the end of the transaction.
		settings: `
SELECT set_config('row_security', 'off', true)`,

		// $1 tenant. In the order of the key, which is the index to ask; EXISTS would read a table that looks small.
		has: `
SELECT count(*) > 0
  FROM (SELECT 1
          FROM ` + table + ` AS c
         WHERE c.tenant_id = $1::text
         ORDER BY c.id
         LIMIT 1) AS n`,
	}
}
