package postgres_test

import (
	"strings"

	"github.com/prunectl/prunectl/internal/sabotage"
)

// edits take each clause out. Where nothing stands instead, a condition is made true, an order is turned round, a bound is
// a thousand times as much, and a lock is not taken.
func edits() (all []sabotage.Edit) {
	on := func(statement, victim string, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, sabotage.Edit{Statement: statement, Clause: pairs[i], Instead: pairs[i+1], Victim: victim})
		}
	}
	const values = "recorded: VALUES ($1::text, $2::integer, $3::text::jsonb, coalesce($4::timestamptz, now()), nullif($5::text, ''), nullif($6::text, ''),"
	on("record", "what is recorded",
		values, "VALUES ($1::text, $2::integer, $3::text::jsonb, $4::timestamptz, nullif($5::text, ''), nullif($6::text, ''),",
		values, "VALUES ($1::text, $2::integer, $3::text::jsonb, coalesce($4::timestamptz, now()), $5::text, nullif($6::text, ''),",
		values, "VALUES ($1::text, $2::integer, $3::text::jsonb, coalesce($4::timestamptz, now()), nullif($5::text, ''), $6::text,",
		"recorded: nullif($7::text, ''), nullif($8::integer, 0))", "$7::text, nullif($8::integer, 0))",
		"recorded: nullif($7::text, ''), nullif($8::integer, 0))", "nullif($7::text, ''), $8::integer)",
		"recorded: ON CONFLICT (dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING", " ",
		"added: SELECT recorded.id, t.receiver, t.target, coalesce(t.due, now())", "SELECT recorded.id, t.receiver, t.target, t.due")
	on("first", "what is recorded",
		`SELECT e.id FROM "public"."domain_events" AS e WHERE e.dedupe_key = $1::text`, `SELECT e.id FROM "public"."domain_events" AS e WHERE $1::text IS NOT NULL`)

	on("claim", "what is claimed",
		"due: WHERE d.status IN ('pending', 'failed')", "",
		"due: WHERE d.status IN ('pending', 'failed')", "WHERE d.status = 'pending'",
		"due: AND d.due_at <= statement_timestamp()", "",
		"due: ORDER BY d.due_at, d.id", "",
		"due: LIMIT (SELECT $3::bigint)", "",
		"due: FOR UPDATE SKIP LOCKED", "",
		"due: FOR UPDATE SKIP LOCKED", "FOR UPDATE",
		"lapsed: AND d.claimed_until < statement_timestamp()", "",
		"lapsed: ORDER BY d.claimed_until, d.id", "",
		"lapsed: LIMIT (SELECT $3::bigint)", "",
		"lapsed: FOR UPDATE SKIP LOCKED", "",
		"lapsed: FOR UPDATE SKIP LOCKED", "FOR UPDATE",
		"oldest: ORDER BY c.since, c.id", "",
		"oldest: LIMIT $3::bigint", "",
		"taken: SET status = 'claimed',", "SET status = d.status,",
		"taken: claimed_by = $1::text,", "claimed_by = $1::text || 'x',",
		"taken: claimed_at = statement_timestamp(),", "claimed_at = '2020-01-01',",
		"taken: claimed_until = statement_timestamp() + $2::bigint * interval '1 microsecond',", "claimed_until = statement_timestamp() + $2::bigint * interval '2 microseconds',",
		"taken: attempts = d.attempts + 1", "attempts = d.attempts",
		"taken: WHERE d.id = ANY (ARRAY(SELECT oldest.id FROM oldest))", "",
		"coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0),", "e.dedupe_key, coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0),",
		"coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0),", "coalesce(e.dedupe_key, ''), e.suppressed, coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0),",
		"coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0),", "coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), e.retention_policy, coalesce(e.retention_seconds, 0),",
		"coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), coalesce(e.retention_seconds, 0),", "coalesce(e.dedupe_key, ''), coalesce(e.suppressed, ''), coalesce(e.retention_policy, ''), e.retention_seconds,",
		"t.receiver, t.target, t.due_at, t.attempts, coalesce(t.last_error, ''), t.id, t.claimed_by, t.claimed_at, t.claimed_until", "t.receiver, t.target, t.due_at, t.attempts, t.last_error, t.id, t.claimed_by, t.claimed_at, t.claimed_until",
		"JOIN oldest ON oldest.id = t.id", "JOIN oldest ON true",
		`CROSS JOIN LATERAL (SELECT * FROM "public"."domain_events" AS p WHERE p.id = t.event_id OFFSET 0) AS e`, `CROSS JOIN LATERAL (SELECT * FROM "public"."domain_events" AS p OFFSET 0) AS e`,
		"ORDER BY oldest.since, t.id", "")

	on("acknowledge", "what is acknowledged",
		"SET status = $4::text,", "SET status = CASE WHEN $4::text = 'orphaned' THEN 'dead' ELSE $4::text END,",
		"due_at = coalesce($5::timestamptz, d.due_at),", "due_at = coalesce(d.due_at, $5::timestamptz),",
		"due_at = coalesce($5::timestamptz, d.due_at),", "due_at = $5::timestamptz,",
		"claimed_by = NULL,", "claimed_by = d.claimed_by,",
		"claimed_at = NULL,", "claimed_at = d.claimed_at,",
		"claimed_until = NULL,", "claimed_until = d.claimed_until,",
		"last_error = nullif($6::text, ''),", "last_error = $6::text,",
		"finished_at = CASE WHEN $4::text IN ('succeeded', 'dead', 'orphaned', 'cancelled') THEN statement_timestamp() END", "finished_at = statement_timestamp()",
		"WHERE d.id = $1::bigint", "",
		"AND d.claimed_by = $2::text", "",
		"AND d.claimed_at = $3::timestamptz", "")

	for _, pin := range []string{"SELECT set_config('enable_sort', 'off', true),", "set_config('enable_bitmapscan', 'off', true),", "set_config('enable_seqscan', 'off', true),", "set_config('jit', 'off', true)"} {
		on("in order", "the order of dead letters", pin, strings.ReplaceAll(pin, "'off'", "'on'"))
	}
	const event = `SELECT e.type FROM "public"."domain_events" AS e WHERE e.id = $1::bigint FOR UPDATE`
	on("lock an event", "a requeue or replay beside a sweep", event, strings.ReplaceAll(event, " FOR UPDATE", ""))
	on("lock an event", "what is requeued", event, strings.ReplaceAll(event, "e.id = $1::bigint", "$1::bigint IS NOT NULL"))
	for _, name := range []string{"lock dead", "lock dead of a receiver"} {
		const typed = `dead: AND ($2::text IS NULL OR (SELECT e.type FROM "public"."domain_events" AS e WHERE e.id = d.event_id) = $2::text)`
		on(name, "which events are locked",
			"dead: WHERE d.status IN ('dead', 'orphaned')", "",
			"dead: LIMIT $3::bigint", "",
			"wanted: SELECT DISTINCT dead.event_id FROM dead", "SELECT dead.event_id FROM dead UNION ALL SELECT dead.event_id FROM dead",
			"held: WHERE e.id = ANY (ARRAY(SELECT wanted.event_id FROM wanted))", "",
			"held: ORDER BY e.id", "",
			"held: FOR UPDATE", "",
			"LEFT JOIN held ON held.id = wanted.event_id", "LEFT JOIN held ON true")
		on(name, "what is requeued", typed, "", "dead: ORDER BY d.event_id, d.receiver", "")
		on(name, "a requeue or replay beside a sweep", "LEFT JOIN held ON held.id = wanted.event_id", "JOIN held ON held.id = wanted.event_id")
	}
	on("lock dead of a receiver", "which events are locked", "dead: AND d.receiver = $1::text", "")

	on("reopen dead", "what is requeued",
		"dead: WHERE d.event_id = ANY ($1::bigint[])", "",
		"dead: AND d.status IN ('dead', 'orphaned')", "",
		"dead: AND ($2::text IS NULL OR d.receiver = $2::text)", "",
		"dead: LIMIT $3::bigint", "",
		"reopened: SET status = 'pending',", "SET status = d.status,",
		"reopened: due_at = statement_timestamp(),", "due_at = d.due_at,",
		"reopened: attempts = 0,", "attempts = d.attempts,",
		"reopened: finished_at = NULL", "finished_at = d.finished_at",
		"reopened: WHERE d.id = ANY (ARRAY(SELECT dead.id FROM dead))", "")
	on("reopen dead", "in which order deliveries are locked", "dead: ORDER BY d.event_id, d.receiver, d.target", "ORDER BY d.event_id, d.receiver DESC, d.target")
	on("reopen all", "what is replayed",
		"every: WHERE d.event_id = $1::bigint", "",
		"reopened: SET status = 'pending',", "SET status = d.status,",
		"reopened: due_at = statement_timestamp(),", "due_at = d.due_at,",
		"reopened: attempts = 0,", "attempts = d.attempts,",
		"reopened: finished_at = NULL", "finished_at = d.finished_at",
		"reopened: WHERE d.id = every.id", "",
		`FROM (SELECT count(*) AS deliveries FROM "public"."domain_event_deliveries" AS d WHERE d.event_id = $1::bigint) AS t`, `FROM (SELECT count(*) AS deliveries FROM "public"."domain_event_deliveries" AS d WHERE $1::bigint IS NOT NULL) AS t`,
		"LEFT JOIN reopened AS r ON true", "JOIN reopened AS r ON true",
		"ORDER BY r.receiver, r.target", "")
	on("reopen all", "in which order deliveries are locked", "every: ORDER BY d.receiver, d.target", "")
	// Each of the two asks the status of the row as it has become.
	all = append(all,
		sabotage.Edit{Statement: "reopen dead", Clause: "dead: FOR UPDATE", Also: "reopened: AND d.status IN ('dead', 'orphaned')", Victim: "what a worker does while a requeue or replay waits"},
		sabotage.Edit{Statement: "reopen all", Clause: "every: AND d.status <> 'claimed'", Also: "reopened: AND d.status <> 'claimed'", Victim: "what is replayed"},
		sabotage.Edit{Statement: "reopen all", Clause: "every: FOR UPDATE", Also: "reopened: AND d.status <> 'claimed'", Victim: "what a worker does while a requeue or replay waits"})

	on("counts", "health",
		"owed: WHERE o.status IN ('pending', 'failed')", "",
		"owed: LIMIT (SELECT $1::bigint))", "",
		"owed: WHERE c.status = 'claimed'", "",
		"owed: LIMIT (SELECT $1::bigint)) (2)", "LIMIT 1000 * $1::bigint)",
		`(SELECT min((SELECT e.recorded_at FROM "public"."domain_events" AS e WHERE e.id = o.event_id))`, `(SELECT min((SELECT min(e.recorded_at) FROM "public"."domain_events" AS e WHERE o.event_id > 0))`,
		"WHERE x.status IN ('dead', 'orphaned')", "",
		"LIMIT (SELECT $1::bigint)) AS n),", "",
		"AND l.claimed_until < statement_timestamp()", "",
		"LIMIT (SELECT $1::bigint)) AS n), (2)", "LIMIT 1000 * $1::bigint) AS n),",
		"WHERE p.parked", "",
		"LIMIT (SELECT $1::bigint)) AS n)", "")
	on("words", "health",
		"words: ORDER BY e.retention_policy", "",
		"words: LIMIT 1)", "",
		"words: WHERE e.retention_policy > words.word", "",
		"words: ORDER BY e.retention_policy (2)", "ORDER BY e.retention_policy DESC",
		"words: LIMIT 1) (2)", ")",
		"words: WHERE words.word IS NOT NULL", "",
		"WHERE e.retention_policy = words.word", "",
		"WHERE words.word NOT IN ('SUCCEEDED', 'SETTLED')", "",
		"LIMIT $1::bigint) AS u", "",
		"ORDER BY u.word", "")
	on("quiet", "quiet receivers",
		"living: ORDER BY d.receiver", "",
		"living: AND d.receiver > living.receiver", "",
		"living: ORDER BY d.receiver (2)", "ORDER BY d.receiver DESC",
		"living: LIMIT 1) (2)", ")",
		"living: WHERE living.receiver IS NOT NULL", "",
		"successes: WHERE d.status = 'succeeded'", "",
		"successes: AND d.receiver = living.receiver", "",
		"successes: ORDER BY d.finished_at DESC", "",
		"successes: LIMIT 1) AS at", "",
		"HAVING max(s.at) < $1::timestamptz", "HAVING $1::timestamptz IS NOT NULL",
		"ORDER BY max(s.at), s.receiver", "")
	return all
}

// exempt are the clauses that no test misses.
var exempt = exemptions(
	"the table's constraint says it, and it is there for the predicate of the index; TestPlans holds that", []string{
		"acknowledge", "AND d.status = 'claimed'",
		"claim", "lapsed: WHERE d.status = 'claimed'",
		"counts", "WHERE l.status = 'claimed'",
	},
	"for the predicate of the index: what is parked has a known word, and nulls are the last; TestPlans holds it", []string{
		"words", "words: WHERE e.retention_policy IS NOT NULL",
		"words", "words: AND NOT e.parked",
		"words", "words: AND NOT e.parked (2)",
		"words", "AND NOT e.parked",
	},
	"for the predicate of the index: who never had a success has no time of it; TestPlans holds it", []string{
		"quiet", "living: WHERE d.status = 'succeeded'",
		"quiet", "living: WHERE d.status = 'succeeded' (2)",
		"quiet", "successes: WHERE living.receiver IS NOT NULL",
	},
	"the order of an index, in which the bound ends the reading; TestPlans holds it", []string{
		"counts", "owed: ORDER BY o.due_at, o.id",
		"counts", "owed: ORDER BY c.claimed_until, c.id",
		"counts", "ORDER BY x.event_id, x.receiver",
		"counts", "ORDER BY l.claimed_until, l.id",
		"counts", "ORDER BY p.recorded_at, p.id",
		"words", "ORDER BY e.recorded_at, e.id",
	},
	"saves reading the same again", []string{
		"counts", "FROM (SELECT DISTINCT owed.event_id FROM owed) AS o),",
		"quiet", "living: LIMIT 1)",
		"words", "LIMIT $1::bigint) AS n",
	},
	"the parameter's one use where no receiver is chosen", []string{"lock dead", "dead: AND $1::text IS NULL"},
	"the answer has no other form", []string{"words", "GROUP BY u.word", "quiet", "GROUP BY s.receiver"},
)

func exemptions(all ...any) (xs []sabotage.Exemption) {
	for i := 0; i < len(all); i += 2 {
		why, pairs := all[i].(string), all[i+1].([]string)
		for j := 0; j < len(pairs); j += 2 {
			xs = append(xs, sabotage.Exemption{Statement: pairs[j], Clause: pairs[j+1], Why: why})
		}
	}
	return xs
}
