package postgres_test

import "github.com/prunectl/prunectl/internal/sabotage"

// edits take each clause out. Where nothing stands instead, a condition is made true, an order is turned round, a bound is
// a thousand times as much, and a lock is not taken.
func edits() (all []sabotage.Edit) {
	on := func(statement, victim string, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, sabotage.Edit{Statement: statement, Clause: pairs[i], Instead: pairs[i+1], Victim: victim})
		}
	}
	on("receive", "what is received",
		"SET lock_token = gen_random_uuid(),", "SET lock_token = coalesce(i.lock_token, gen_random_uuid()),",
		"locked_until = clock_timestamp() + $3::bigint * interval '1 microsecond',", "locked_until = clock_timestamp() + $3::bigint * interval '2 microseconds',",
		"attempts = i.attempts + 1", "attempts = i.attempts",
		"WHERE i.state = 'pending'", "",
		"AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())", "",
		"AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())", "AND i.locked_until < clock_timestamp()",
		"AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())", "AND i.locked_until IS NULL")
	on("received", "what is free between two looks",
		"i.state = 'pending' AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())", "i.locked_until IS NULL OR i.locked_until < clock_timestamp()",
		"i.state = 'pending' AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())", "i.state = 'pending' AND i.locked_until IS NULL",
		"i.state = 'pending' AND (i.locked_until IS NULL OR i.locked_until < clock_timestamp())", "i.state = 'pending' AND coalesce(i.locked_until < clock_timestamp(), false)")
	on("received", "what is received", "WHERE i.handler = $1::text", "", "AND i.event_id = $2::text", "")
	on("complete", "what is completed and released",
		"SET state = 'completed',", "SET state = i.state,",
		"completed_at = clock_timestamp(),", "completed_at = '2020-01-01',",
		"lock_token = NULL,", "lock_token = i.lock_token,",
		"locked_until = NULL", "locked_until = i.locked_until",
		"WHERE i.handler = $1::text", "",
		"AND i.event_id = $2::text", "",
		"AND i.lock_token::text = $3::text", "")
	on("release", "what is completed and released",
		"SET lock_token = NULL,", "SET lock_token = i.lock_token,",
		"locked_until = NULL", "locked_until = i.locked_until",
		"WHERE i.handler = $1::text", "",
		"AND i.event_id = $2::text", "",
		"AND i.lock_token::text = $3::text", "")

	const values = "VALUES ($1::text, $2::text, nullif($3::text, ''), $4::text::jsonb, $5::text::jsonb, coalesce($6::timestamptz, now()))"
	on("add", "what is added",
		values, "VALUES ($1::text, $2::text, $3::text, $4::text::jsonb, $5::text::jsonb, coalesce($6::timestamptz, now()))",
		values, "VALUES ($1::text, $2::text, nullif($3::text, ''), $4::text::jsonb, $5::text::jsonb, $6::timestamptz)",
		"ON CONFLICT (event_id) DO NOTHING", " ")
	const added = `SELECT o.record_id FROM "inbox_outbox"."outbox" AS o WHERE o.event_id = $1::text`
	on("added", "what is added", added, `SELECT o.record_id FROM "inbox_outbox"."outbox" AS o WHERE $1::text IS NOT NULL`)
	on("claim", "what is claimed",
		"ready: WHERE o.delivered_at IS NULL", "",
		"ready: AND o.available_at <= statement_timestamp()", "",
		"ready: ORDER BY o.available_at, o.record_id", "",
		"ready: LIMIT (SELECT $2::bigint)", "",
		"ready: FOR UPDATE SKIP LOCKED", "",
		"ready: FOR UPDATE SKIP LOCKED", "FOR UPDATE",
		"taken: SET claim_token = gen_random_uuid(),", "SET claim_token = coalesce(o.claim_token, '00000000-0000-0000-0000-000000000001'),",
		"taken: claimed_until = statement_timestamp() + $1::bigint * interval '1 microsecond',", "claimed_until = statement_timestamp() + $1::bigint * interval '2 microseconds',",
		"taken: available_at = statement_timestamp() + $1::bigint * interval '1 microsecond',", "available_at = o.available_at,",
		"taken: attempts = o.attempts + 1", "attempts = o.attempts",
		"taken: WHERE o.record_id = ANY (ARRAY(SELECT ready.record_id FROM ready))", "",
		"SELECT t.record_id, t.event_id, t.topic, coalesce(t.key, ''), t.headers::text, t.body::text, t.created_at, t.attempts,", "SELECT t.record_id, t.event_id, t.topic, t.key, t.headers::text, t.body::text, t.created_at, t.attempts,",
		"JOIN ready ON ready.record_id = t.record_id", "JOIN ready ON true",
		"ORDER BY ready.available_at, t.record_id", "")
	on("deliver", "what is delivered and put off",
		"SET delivered_at = clock_timestamp(),", "SET delivered_at = '2020-01-01',",
		"claim_token = NULL,", "claim_token = o.claim_token,",
		"claimed_until = NULL", "claimed_until = o.claimed_until",
		"WHERE o.record_id = $1::bigint", "",
		"AND o.claim_token::text = $2::text", "")
	on("retry", "what is delivered and put off",
		"SET available_at = coalesce($3::timestamptz, statement_timestamp()),", "SET available_at = coalesce(statement_timestamp(), $3::timestamptz),",
		"SET available_at = coalesce($3::timestamptz, statement_timestamp()),", "SET available_at = $3::timestamptz,",
		"claim_token = NULL,", "claim_token = o.claim_token,",
		"claimed_until = NULL", "claimed_until = o.claimed_until",
		"WHERE o.record_id = $1::bigint", "",
		"AND o.claim_token::text = $2::text", "")

	on("acquire", "who has a lease",
		"SET holder = $3::text,", "SET holder = l.holder,",
		"token = gen_random_uuid(),", "token = l.token,",
		"expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'", "expires_at = clock_timestamp() + $4::bigint * interval '2 microseconds'",
		"WHERE l.expires_at < clock_timestamp()", "")
	on("held", "who holds it", "WHERE l.handler = $1::text", "", "AND l.partition = $2::text", "", "AND l.expires_at >= clock_timestamp()", "")
	on("renew", "how long a lease is held",
		"SET expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'", "SET expires_at = clock_timestamp() + $4::bigint * interval '2 microseconds'",
		"WHERE l.handler = $1::text", "",
		"AND l.partition = $2::text", "",
		"AND l.token::text = $3::text", "",
		"AND l.expires_at >= clock_timestamp()", "")
	on("give back", "how long a lease is held", "WHERE l.handler = $1::text", "", "AND l.partition = $2::text", "", "AND l.token::text = $3::text", "")

	on("health", "health",
		"WHERE i.state = 'pending'", "",
		"LIMIT (SELECT $1::bigint)) AS n),", "",
		"WHERE i.state = 'pending' (2)", "WHERE true",
		"ORDER BY i.received_at, i.handler, i.event_id (2)", "",
		"LIMIT 1),", "",
		"WHERE o.delivered_at IS NULL", "",
		"LIMIT (SELECT $1::bigint)) AS n), (2)", "LIMIT 1000 * $1::bigint) AS n),",
		"WHERE w.delivered_at IS NULL", "",
		"AND w.available_at <= statement_timestamp()", "",
		"ORDER BY w.available_at, w.record_id", "",
		"LIMIT 1), (2)", "),",
		"WHERE l.expires_at >= statement_timestamp()", "",
		"LIMIT (SELECT $1::bigint)) AS n)", "")
	return all
}

// exempt are the clauses that no test misses.
var exempt = []sabotage.Exemption{
	{Statement: "receive", Clause: "ON CONFLICT (handler, event_id) DO UPDATE", Why: "the statement has no other form"},
	{Statement: "acquire", Clause: "ON CONFLICT (handler, partition) DO UPDATE", Why: "the statement has no other form"},
	{Statement: "health", Clause: "ORDER BY i.received_at, i.handler, i.event_id", Why: "the order of an index, in which the bound ends the reading; TestPlans holds it"},
	{Statement: "health", Clause: "ORDER BY o.available_at, o.record_id", Why: "the order of an index, in which the bound ends the reading; TestPlans holds it"},
	{Statement: "health", Clause: "ORDER BY l.expires_at, l.handler, l.partition", Why: "the order of an index, in which the bound ends the reading; TestPlans holds it"},
}
