package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
)

// statements are the texts of a Store: all the SQL this package has.
type statements struct {
	record, first                            string
	claim                                    string
	acknowledge                              string
	inOrder, lockEvent, lockDead, lockDeadOf string
	reopenDead, reopenAll                    string
	counts, words, quiet                     string
}

// eventColumns are those of an event e, as scanEvent reads them.
const eventColumns = `e.id, e.type, e.version, e.payload::text, e.recorded_at, e.occurred_at,
       coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0)`

// render writes the statements for the tables of one schema. Statuses are literals,
// so that the predicates of the partial indexes are proved by them. A limit in a
// sub-select is one that the planner cannot read: it then takes the order from the
// index, also where the statistics know of no backlog and a sort of all of it looks cheap.
func render(schema string) statements {
	events := pgx.Identifier{schema, "domain_events"}.Sanitize()
	deliveries := pgx.Identifier{schema, "domain_event_deliveries"}.Sanitize()
	receivers := pgx.Identifier{schema, "domain_event_receivers"}.Sanitize()
	pending, claimed, succeeded := literal(domainevents.Pending), literal(domainevents.Claimed), literal(domainevents.Succeeded)
	due := in(domainevents.Pending, domainevents.Failed)
	dead := in(domainevents.DeadLetters()...)
	terminal := in(domainevents.Terminal()...)

	// $1 receiver or null; the dead letters of the events of $2's type, or null for any; up to $3.
	// The type is probed per row: as a join the planner may read all events.
	lockDead := func(which string) string {
		return `
WITH dead AS MATERIALIZED (
  SELECT d.event_id
    FROM ` + deliveries + ` AS d
   WHERE d.status ` + dead + `
     AND ` + which + `
     AND ($2::text IS NULL OR (SELECT e.type FROM ` + events + ` AS e WHERE e.id = d.event_id) = $2::text)
   ORDER BY d.event_id, d.receiver
   LIMIT $3::bigint
), wanted AS MATERIALIZED (
  SELECT DISTINCT dead.event_id FROM dead
), held AS MATERIALIZED (
  SELECT e.id
    FROM ` + events + ` AS e
   WHERE e.id = ANY (ARRAY(SELECT wanted.event_id FROM wanted))
   ORDER BY e.id
     FOR UPDATE
)
SELECT wanted.event_id, held.id IS NOT NULL
  FROM wanted
  LEFT JOIN held ON held.id = wanted.event_id`
	}

	return statements{
		// $1 type, $2 version, $3 payload, $4 occurred, $5 dedupe key, $6 suppressed, $7 policy, $8 seconds; of the
		// targets $9 receivers, $10 targets, $11 due. No row where the key is there already.
		record: `
WITH recorded AS (
  INSERT INTO ` + events + ` (type, version, payload, occurred_at, dedupe_key, suppressed, retention_policy, retention_seconds)
  VALUES ($1::text, $2::integer, $3::text::jsonb, coalesce($4::timestamptz, now()), nullif($5::text, ''), nullif($6::text, ''),
          nullif($7::text, ''), nullif($8::integer, 0))
  ON CONFLICT (dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
  RETURNING id
), added AS (
  INSERT INTO ` + deliveries + ` (event_id, receiver, target, due_at)
  SELECT recorded.id, t.receiver, t.target, coalesce(t.due, now())
    FROM recorded
   CROSS JOIN unnest($9::text[], $10::text[], $11::timestamptz[]) AS t (receiver, target, due)
)
SELECT recorded.id FROM recorded`,

		// $1 dedupe key. A statement of its own, with a snapshot that sees whom the first one waited for.
		first: `
SELECT e.id FROM ` + events + ` AS e WHERE e.dedupe_key = $1::text`,

		// $1 worker, $2 lease in microseconds, $3 limit. Due deliveries and lapsed claims are two ranges, each in the order
		// of its index; of both the oldest are taken. By id = ANY and not by a join, whose size the planner would overrate.
		claim: `
WITH due AS MATERIALIZED (
  SELECT d.id, d.due_at AS since
    FROM ` + deliveries + ` AS d
   WHERE d.status ` + due + `
     AND d.due_at <= statement_timestamp()
   ORDER BY d.due_at, d.id
   LIMIT (SELECT $3::bigint)
     FOR UPDATE SKIP LOCKED
), lapsed AS MATERIALIZED (
  SELECT d.id, d.claimed_until AS since
    FROM ` + deliveries + ` AS d
   WHERE d.status = ` + claimed + `
     AND d.claimed_until < statement_timestamp()
   ORDER BY d.claimed_until, d.id
   LIMIT (SELECT $3::bigint)
     FOR UPDATE SKIP LOCKED
), oldest AS MATERIALIZED (
  SELECT c.id, c.since
    FROM (SELECT due.id, due.since FROM due UNION ALL SELECT lapsed.id, lapsed.since FROM lapsed) AS c
   ORDER BY c.since, c.id
   LIMIT $3::bigint
), taken AS (
  UPDATE ` + deliveries + ` AS d
     SET status = ` + claimed + `,
         claimed_by = $1::text,
         claimed_at = statement_timestamp(),
         claimed_until = statement_timestamp() + $2::bigint * interval '1 microsecond',
         attempts = d.attempts + 1
   WHERE d.id = ANY (ARRAY(SELECT oldest.id FROM oldest))
  RETURNING d.*
)
SELECT ` + eventColumns + `,
       t.receiver, t.target, t.due_at, t.attempts, coalesce(t.last_error, ''), t.id, t.claimed_by, t.claimed_at, t.claimed_until
  FROM taken AS t
  JOIN oldest ON oldest.id = t.id
 CROSS JOIN LATERAL (SELECT * FROM ` + events + ` AS p WHERE p.id = t.event_id OFFSET 0) AS e
 ORDER BY oldest.since, t.id`,

		// $1 delivery, $2 worker, $3 claimed at; $4 status, $5 due, $6 error. The claim is compared on the newest version of
		// the row, also where this waited for somebody.
		acknowledge: `
UPDATE ` + deliveries + ` AS d
   SET status = $4::text,
       due_at = coalesce($5::timestamptz, d.due_at),
       claimed_by = NULL,
       claimed_at = NULL,
       claimed_until = NULL,
       last_error = nullif($6::text, ''),
       finished_at = CASE WHEN $4::text ` + terminal + ` THEN statement_timestamp() END
 WHERE d.id = $1::bigint
   AND d.status = ` + claimed + `
   AND d.claimed_by = $2::text
   AND d.claimed_at = $3::timestamptz
RETURNING d.id`,

		// In a transaction of our own: dead letters are read in the order of their index up to the limit, whatever the planner
		// thinks of sorting them.
		inOrder: `
SELECT set_config('enable_sort', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true)`,

		// $1 event.
		lockEvent: `
SELECT e.type FROM ` + events + ` AS e WHERE e.id = $1::bigint FOR UPDATE`,

		lockDead:   lockDead(`$1::text IS NULL`),
		lockDeadOf: lockDead(`d.receiver = $1::text`),

		// $1 events that are locked, $2 receiver or null, $3 limit. A snapshot of its own, after the locks: what it sees of
		// these events is what there is.
		reopenDead: `
WITH dead AS MATERIALIZED (
  SELECT d.id
    FROM ` + deliveries + ` AS d
   WHERE d.event_id = ANY ($1::bigint[])
     AND d.status ` + dead + `
     AND ($2::text IS NULL OR d.receiver = $2::text)
   ORDER BY d.event_id, d.receiver, d.target
   LIMIT $3::bigint
     FOR UPDATE
), reopened AS (
  UPDATE ` + deliveries + ` AS d
     SET status = ` + pending + `,
         due_at = statement_timestamp(),
         attempts = 0,
         finished_at = NULL
   WHERE d.id = ANY (ARRAY(SELECT dead.id FROM dead))
     AND d.status ` + dead + `
  RETURNING d.event_id, d.id, d.receiver, d.target
)
SELECT r.event_id, r.id, r.receiver, r.target FROM reopened AS r`,

		// $1 event that is locked. Claimed deliveries are left to their workers: they are owed, and under way.
		reopenAll: `
WITH every AS MATERIALIZED (
  SELECT d.id
    FROM ` + deliveries + ` AS d
   WHERE d.event_id = $1::bigint
     AND d.status <> ` + claimed + `
   ORDER BY d.receiver, d.target
     FOR UPDATE
), reopened AS (
  UPDATE ` + deliveries + ` AS d
     SET status = ` + pending + `,
         due_at = statement_timestamp(),
         attempts = 0,
         finished_at = NULL
    FROM every
   WHERE d.id = every.id
     AND d.status <> ` + claimed + `
  RETURNING d.event_id, d.id, d.receiver, d.target
)
SELECT t.deliveries, r.id, r.receiver, r.target
  FROM (SELECT count(*) AS deliveries FROM ` + deliveries + ` AS d WHERE d.event_id = $1::bigint) AS t
  LEFT JOIN reopened AS r ON true
 ORDER BY r.receiver, r.target`,

		// $1 bound of each count. In the order of an index each, so that the bound ends the reading.
		counts: `
WITH owed AS MATERIALIZED (
  (SELECT o.event_id
     FROM ` + deliveries + ` AS o
    WHERE o.status ` + due + `
    ORDER BY o.due_at, o.id
    LIMIT (SELECT $1::bigint))
  UNION ALL
  (SELECT c.event_id
     FROM ` + deliveries + ` AS c
    WHERE c.status = ` + claimed + `
    ORDER BY c.claimed_until, c.id
    LIMIT (SELECT $1::bigint))
)
SELECT (SELECT count(*) FROM owed),
       (SELECT min((SELECT e.recorded_at FROM ` + events + ` AS e WHERE e.id = o.event_id))
          FROM (SELECT DISTINCT owed.event_id FROM owed) AS o),
       (SELECT count(*) FROM (SELECT 1
                                FROM ` + deliveries + ` AS x
                               WHERE x.status ` + dead + `
                               ORDER BY x.event_id, x.receiver
                               LIMIT (SELECT $1::bigint)) AS n),
       (SELECT count(*) FROM (SELECT 1
                                FROM ` + deliveries + ` AS l
                               WHERE l.status = ` + claimed + `
                                 AND l.claimed_until < statement_timestamp()
                               ORDER BY l.claimed_until, l.id
                               LIMIT (SELECT $1::bigint)) AS n),
       (SELECT count(*) FROM (SELECT 1
                                FROM ` + events + ` AS p
                               WHERE p.parked
                               ORDER BY p.recorded_at, p.id
                               LIMIT (SELECT $1::bigint)) AS n)`,

		// $1 bound. From one word to the next, a probe each; then the events of the unknown ones. A parked event has a known one.
		words: `
WITH RECURSIVE words AS (
  (SELECT e.retention_policy AS word
     FROM ` + events + ` AS e
    WHERE e.retention_policy IS NOT NULL
      AND NOT e.parked
    ORDER BY e.retention_policy
    LIMIT 1)
  UNION ALL
  SELECT (SELECT e.retention_policy
            FROM ` + events + ` AS e
           WHERE e.retention_policy > words.word
             AND NOT e.parked
           ORDER BY e.retention_policy
           LIMIT 1)
    FROM words
   WHERE words.word IS NOT NULL
)
SELECT u.word, count(*)
  FROM (SELECT words.word
          FROM words
         CROSS JOIN LATERAL (SELECT 1
                               FROM ` + events + ` AS e
                              WHERE e.retention_policy = words.word
                                AND NOT e.parked
                              ORDER BY e.recorded_at, e.id
                              LIMIT $1::bigint) AS n
         WHERE words.word NOT IN (` + known() + `)
         LIMIT $1::bigint) AS u
 GROUP BY u.word
 ORDER BY u.word`,

		// $1 since. From one receiver to the next, a probe each, among the living rows; beside them what is remembered.
		quiet: `
WITH RECURSIVE living AS (
  (SELECT d.receiver
     FROM ` + deliveries + ` AS d
    WHERE d.status = ` + succeeded + `
    ORDER BY d.receiver
    LIMIT 1)
  UNION ALL
  SELECT (SELECT d.receiver
            FROM ` + deliveries + ` AS d
           WHERE d.status = ` + succeeded + `
             AND d.receiver > living.receiver
           ORDER BY d.receiver
           LIMIT 1)
    FROM living
   WHERE living.receiver IS NOT NULL
), successes AS (
  SELECT living.receiver,
         (SELECT d.finished_at
            FROM ` + deliveries + ` AS d
           WHERE d.status = ` + succeeded + `
             AND d.receiver = living.receiver
           ORDER BY d.finished_at DESC
           LIMIT 1) AS at
    FROM living
   WHERE living.receiver IS NOT NULL
  UNION ALL
  SELECT r.receiver, r.last_success
    FROM ` + receivers + ` AS r
)
SELECT s.receiver, max(s.at)
  FROM successes AS s
 GROUP BY s.receiver
HAVING max(s.at) < $1::timestamptz
 ORDER BY max(s.at), s.receiver`,
	}
}

// in renders statuses as a condition, a single one as =.
func in(statuses ...domainevents.Status) string {
	var all []string
	for _, s := range statuses {
		all = append(all, literal(s))
	}
	if len(all) == 1 {
		return "= " + all[0]
	}
	return "IN (" + strings.Join(all, ", ") + ")"
}

// known are the known policies, as a list.
func known() string {
	var all []string
	for _, p := range domainevents.Policies() {
		all = append(all, literal(p))
	}
	return strings.Join(all, ", ")
}

// literal renders a declared word, which has no quote and no backslash in it.
func literal[T ~string](word T) string { return "'" + string(word) + "'" }
