package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// statements are the texts of a Store: all the SQL this package has.
type statements struct {
	receive, received, complete, release string
	add, added, claim, deliver, retry    string
	acquire, held, renew, giveBack       string
	health                               string
}

// render writes the statements for the tables of one schema. States are literals, so
// that the predicates of the partial indexes are proved by them. A limit in a sub-select
// is one that the planner cannot read: it then takes the order from the index, also where
// the statistics know of no backlog and a sort of all of it looks cheap.
//
// Whether a lock or a lease has ended is asked by clock_timestamp(), where no index is
// searched by it: the statement may have waited for whoever held the row.
func render(schema string) statements {
	inbox := pgx.Identifier{schema, "inbox"}.Sanitize()
	outbox := pgx.Identifier{schema, "outbox"}.Sanitize()
	leases := pgx.Identifier{schema, "leases"}.Sanitize()
	pending, completed := literal(inboxoutbox.Pending), literal(inboxoutbox.Completed)

	return statements{
		// $1 handler, $2 event, $3 hold in microseconds. No row where somebody is at it, or it was completed.
		receive: `
INSERT INTO ` + inbox + ` AS i (handler, event_id, lock_token, locked_until, attempts)
VALUES ($1::text, $2::text, gen_random_uuid(), clock_timestamp() + $3::bigint * interval '1 microsecond', 1)
ON CONFLICT (handler, event_id) DO UPDATE
   SET lock_token = gen_random_uuid(),
       locked_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
       attempts = i.attempts + 1
 WHERE i.state = ` + pending + `
   AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())
RETURNING i.lock_token::text, i.locked_until, i.attempts`,

		// $1 handler, $2 event. A statement of its own, with a snapshot that sees whom the first one waited for.
		received: `
SELECT i.locked_until, i.completed_at, i.attempts,
       i.state = ` + pending + ` AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())
  FROM ` + inbox + ` AS i
 WHERE i.handler = $1::text
   AND i.event_id = $2::text`,

		// $1 handler, $2 event, $3 token. The token is compared on the newest version of the row, also where this waited for
		// somebody.
		complete: `
UPDATE ` + inbox + ` AS i
   SET state = ` + completed + `,
       completed_at = clock_timestamp(),
       lock_token = NULL,
       locked_until = NULL
 WHERE i.handler = $1::text
   AND i.event_id = $2::text
   AND i.lock_token::text = $3::text
RETURNING true`,

		// $1 handler, $2 event, $3 token.
		release: `
UPDATE ` + inbox + ` AS i
   SET lock_token = NULL,
       locked_until = NULL
 WHERE i.handler = $1::text
   AND i.event_id = $2::text
   AND i.lock_token::text = $3::text
RETURNING true`,

		// $1 event, $2 topic, $3 key, $4 headers, $5 body, $6 available. No row where the event is there already.
		add: `
INSERT INTO ` + outbox + ` (event_id, topic, key, headers, body, available_at)
VALUES ($1::text, $2::text, nullif($3::text, ''), $4::text::jsonb, $5::text::jsonb, coalesce($6::timestamptz, now()))
ON CONFLICT (event_id) DO NOTHING
RETURNING record_id`,

		// $1 event. A statement of its own, with a snapshot that sees whom the first one waited for.
		added: `
SELECT o.record_id FROM ` + outbox + ` AS o WHERE o.event_id = $1::text`,

		// $1 hold in microseconds, $2 limit. A claim moves what it claims to the time when it lapses: one range has all that
		// is ready. By record_id = ANY and not by a join, whose size the planner would overrate.
		claim: `
WITH ready AS MATERIALIZED (
  SELECT o.record_id, o.available_at
    FROM ` + outbox + ` AS o
   WHERE o.delivered_at IS NULL
     AND o.available_at <= statement_timestamp()
   ORDER BY o.available_at, o.record_id
   LIMIT (SELECT $2::bigint)
     FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE ` + outbox + ` AS o
     SET claim_token = gen_random_uuid(),
         claimed_until = statement_timestamp() + $1::bigint * interval '1 microsecond',
         available_at = statement_timestamp() + $1::bigint * interval '1 microsecond',
         attempts = o.attempts + 1
   WHERE o.record_id = ANY (ARRAY(SELECT ready.record_id FROM ready))
  RETURNING o.*
)
SELECT t.record_id, t.event_id, t.topic, coalesce(t.key, ''), t.headers::text, t.body::text, t.created_at, t.attempts,
       t.claim_token::text, t.claimed_until
  FROM taken AS t
  JOIN ready ON ready.record_id = t.record_id
 ORDER BY ready.available_at, t.record_id`,

		// $1 record, $2 token. The token is compared on the newest version of the row, also where this waited for somebody.
		deliver: `
UPDATE ` + outbox + ` AS o
   SET delivered_at = clock_timestamp(),
       claim_token = NULL,
       claimed_until = NULL
 WHERE o.record_id = $1::bigint
   AND o.claim_token::text = $2::text
RETURNING true`,

		// $1 record, $2 token, $3 at.
		retry: `
UPDATE ` + outbox + ` AS o
   SET available_at = coalesce($3::timestamptz, statement_timestamp()),
       claim_token = NULL,
       claimed_until = NULL
 WHERE o.record_id = $1::bigint
   AND o.claim_token::text = $2::text
RETURNING true`,

		// $1 handler, $2 partition, $3 holder, $4 hold in microseconds. No row where somebody has it.
		acquire: `
INSERT INTO ` + leases + ` AS l (handler, partition, holder, token, expires_at)
VALUES ($1::text, $2::text, $3::text, gen_random_uuid(), clock_timestamp() + $4::bigint * interval '1 microsecond')
ON CONFLICT (handler, partition) DO UPDATE
   SET holder = $3::text,
       token = gen_random_uuid(),
       expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
 WHERE l.expires_at < clock_timestamp()
RETURNING l.token::text, l.expires_at`,

		// $1 handler, $2 partition. A statement of its own, with a snapshot that sees whom the first one waited for.
		held: `
SELECT l.holder, l.expires_at
  FROM ` + leases + ` AS l
 WHERE l.handler = $1::text
   AND l.partition = $2::text
   AND l.expires_at >= clock_timestamp()`,

		// $1 handler, $2 partition, $3 token, $4 hold in microseconds. An expired lease may be gone at any time, so that it is
		// lost whether it is or not.
		renew: `
UPDATE ` + leases + ` AS l
   SET expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
 WHERE l.handler = $1::text
   AND l.partition = $2::text
   AND l.token::text = $3::text
   AND l.expires_at >= clock_timestamp()
RETURNING l.expires_at`,

		// $1 handler, $2 partition, $3 token.
		giveBack: `
DELETE FROM ` + leases + ` AS l
 WHERE l.handler = $1::text
   AND l.partition = $2::text
   AND l.token::text = $3::text
RETURNING true`,

		// $1 bound of each count. In the order of an index each, so that the bound ends the reading.
		health: `
SELECT (SELECT count(*) FROM (SELECT 1
                                FROM ` + inbox + ` AS i
                               WHERE i.state = ` + pending + `
                               ORDER BY i.received_at, i.handler, i.event_id
                               LIMIT (SELECT $1::bigint)) AS n),
       (SELECT i.received_at
          FROM ` + inbox + ` AS i
         WHERE i.state = ` + pending + `
         ORDER BY i.received_at, i.handler, i.event_id
         LIMIT 1),
       (SELECT count(*) FROM (SELECT 1
                                FROM ` + outbox + ` AS o
                               WHERE o.delivered_at IS NULL
                               ORDER BY o.available_at, o.record_id
                               LIMIT (SELECT $1::bigint)) AS n),
       (SELECT w.available_at
          FROM ` + outbox + ` AS w
         WHERE w.delivered_at IS NULL
           AND w.available_at <= statement_timestamp()
         ORDER BY w.available_at, w.record_id
         LIMIT 1),
       (SELECT count(*) FROM (SELECT 1
                                FROM ` + leases + ` AS l
                               WHERE l.expires_at >= statement_timestamp()
                               ORDER BY l.expires_at, l.handler, l.partition
                               LIMIT (SELECT $1::bigint)) AS n)`,
	}
}

// literal renders a declared word, which has no quote and no backslash in it.
func literal[T ~string](word T) string { return "'" + string(word) + "'" }
