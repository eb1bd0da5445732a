package postgres

import "github.com/jackc/pgx/v5"

// statements are the texts of a Log: all the SQL this package has.
type statements struct {
	add, list, latest string
}

// render writes the statements for the tables of one schema.
func render(schema string) statements {
	runs := pgx.Identifier{schema, "runs"}.Sanitize()
	events := pgx.Identifier{schema, "run_events"}.Sanitize()
	return statements{
		// $1 tenant, $2 run, $3 number of drafts, $4 types, $5 payloads.
		// The UPDATE takes the run's row, so appenders to one run queue up behind it
		// and the numbers have no gaps; the sweep, which locks the row of an owner
		// before it removes, passes over a run that is being appended to.
		// The number is counted on the run and not read off the events, because the
		// sweep removes events and a number must not be given twice; greatest()
		// lets an import that filled run_events by hand go on where it ended.
		// The time is read once the row is held: now() is the transaction's start and
		// would run backwards within a run.
		add: `
WITH run AS (
  UPDATE ` + runs + ` AS r
     SET last_sequence = $3::bigint + greatest(r.last_sequence,
           (SELECT max(e.sequence)
              FROM ` + events + ` AS e
             WHERE e.tenant_id = r.tenant_id
               AND e.run_id = r.id))
   WHERE r.tenant_id = $1::text
     AND r.id = $2::text
  RETURNING r.last_sequence AS last, clock_timestamp() AS at
), added AS (
  INSERT INTO ` + events + ` (tenant_id, run_id, sequence, type, event, created_at)
  SELECT $1::text, $2::text, run.last - $3::bigint + d.place, d.type, d.event::jsonb, run.at
    FROM run
   CROSS JOIN unnest($4::text[], $5::text[]) WITH ORDINALITY AS d (type, event, place)
)
SELECT run.last FROM run`,

		// $1 tenant, $2 run, $3 after, $4 limit. One range of the primary key, in its order.
		list: `
SELECT e.sequence, e.type, e.event::text, e.created_at
  FROM ` + events + ` AS e
 WHERE e.tenant_id = $1::text
   AND e.run_id = $2::text
   AND e.sequence > $3::bigint
 ORDER BY e.sequence
 LIMIT $4::bigint`,

		// $1 tenant, $2 run. One probe of each primary key.
		latest: `
SELECT greatest(r.last_sequence,
         (SELECT max(e.sequence)
            FROM ` + events + ` AS e
           WHERE e.tenant_id = r.tenant_id
             AND e.run_id = r.id))
  FROM ` + runs + ` AS r
 WHERE r.tenant_id = $1::text
   AND r.id = $2::text`,
	}
}
