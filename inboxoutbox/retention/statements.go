package retention

import (
	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// statements are the texts of this package: what it asks beside the sweeps.
type statements struct {
	recorded, record, lock, replace string
	dueInbox, dueOutbox             string
	left                            string
}

// render writes the statements for the tables of one schema. Counts are read in the order of
// an index each, so that their bound ends the reading; it is in a sub-select, which the
// planner cannot read, so that it takes that order whatever the statistics say.
func render(schema string) statements {
	settings := pgx.Identifier{schema, "settings"}.Sanitize()
	inboxTable := pgx.Identifier{schema, inbox}.Sanitize()
	outboxTable := pgx.Identifier{schema, outbox}.Sanitize()
	leasesTable := pgx.Identifier{schema, leases}.Sanitize()
	const columns = `s.fingerprint, s.settings::text, s.recorded_at, s.recorded_by`

	completed := func(condition, bound string) string {
		return `
SELECT count(*) FROM (SELECT 1
                        FROM ` + inboxTable + ` AS i
                       WHERE i.state = '` + string(inboxoutbox.Completed) + `'
                         AND ` + condition + `
                       ORDER BY i.completed_at, i.handler, i.event_id
                       LIMIT (SELECT ` + bound + `)) AS n`
	}
	delivered := func(condition, bound string) string {
		return `
SELECT count(*) FROM (SELECT 1
                        FROM ` + outboxTable + ` AS o
                       WHERE ` + condition + `
                       ORDER BY o.delivered_at, o.record_id
                       LIMIT (SELECT ` + bound + `)) AS n`
	}
	expired := func(condition, bound string) string {
		return `
SELECT count(*) FROM (SELECT 1
                        FROM ` + leasesTable + ` AS l
                       WHERE ` + condition + `
                       ORDER BY l.expires_at, l.handler, l.partition
                       LIMIT (SELECT ` + bound + `)) AS n`
	}
	// $1 the longer window, $2 the shorter one, in seconds.
	between := func(age string) string {
		return age + ` >= statement_timestamp() - $1::bigint * interval '1 second'
                         AND ` + age + ` < statement_timestamp() - $2::bigint * interval '1 second'`
	}
	dated := func(age, since, cutoff string) string {
		return age + ` >= ` + since + `::timestamptz AND ` + age + ` < ` + cutoff + `::timestamptz`
	}

	return statements{
		recorded: `
SELECT ` + columns + ` FROM ` + settings + ` AS s`,

		// $1 fingerprint, $2 settings, $3 by. No row where there are some already.
		record: `
INSERT INTO ` + settings + ` AS s (fingerprint, settings, recorded_at, recorded_by)
VALUES ($1::text, $2::text::jsonb, statement_timestamp(), coalesce(nullif($3::text, ''), session_user))
ON CONFLICT (single) DO NOTHING
RETURNING ` + columns,

		// A statement of its own, with a snapshot that sees whom the first one waited for.
		lock: `
SELECT ` + columns + ` FROM ` + settings + ` AS s FOR UPDATE`,

		// $1 fingerprint, $2 settings, $3 by. The row is locked.
		replace: `
UPDATE ` + settings + ` AS s
   SET fingerprint = $1::text,
       settings = $2::text::jsonb,
       recorded_at = statement_timestamp(),
       recorded_by = coalesce(nullif($3::text, ''), session_user)
RETURNING ` + columns,

		// $1 the longer window, $2 the shorter one, in seconds, $3 bound.
		dueInbox:  completed(between(`i.completed_at`), `$3::bigint`),
		dueOutbox: delivered(between(`o.delivered_at`), `$3::bigint`),

		// $1 since; the cutoffs $2 of the inbox, $3 of the outbox and $4 of the leases; $5 bound. Of each what is due, and
		// what is not yet.
		left: `
SELECT (` + completed(dated(`i.completed_at`, `$1`, `$2`), `$5::bigint`) + `),
       (` + completed(`i.completed_at >= $2::timestamptz`, `$5::bigint`) + `),
       (` + delivered(dated(`o.delivered_at`, `$1`, `$3`), `$5::bigint`) + `),
       (` + delivered(`o.delivered_at >= $3::timestamptz`, `$5::bigint`) + `),
       (` + expired(dated(`l.expires_at`, `$1`, `$4`), `$5::bigint`) + `),
       (` + expired(`l.expires_at >= $4::timestamptz`, `$5::bigint`) + `)`,
	}
}
