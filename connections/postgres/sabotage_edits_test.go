package postgres_test

import "github.com/prunectl/prunectl/internal/sabotage"

// edits take each clause out. Where nothing stands instead, a condition is made true, an order is turned round, and a bound
// is a thousand times as much or none.
func edits() (all []sabotage.Edit) {
	on := func(statement, victim string, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, sabotage.Edit{Statement: statement, Clause: pairs[i], Instead: pairs[i+1], Victim: victim})
		}
	}
	const tenant, id, living = "WHERE c.tenant_id = $1::text", "AND c.id = $2::text", "AND num_nonnulls(c.revoked_at) = 0"
	on("create", "what is created", "ON CONFLICT (tenant_id, id) DO NOTHING", " ")
	on("get", "what is got", tenant, "", id, "", living, "")

	const behind, ordered = "AND (c.created_at, c.id) > ($2::timestamptz, $3::text)", "ORDER BY c.created_at, c.id"
	on("list", "what is listed",
		tenant, "",
		behind, "",
		behind, "AND (c.created_at, c.id) >= ($2::timestamptz, $3::text)",
		behind, "AND c.created_at > $2::timestamptz AND ($3::text IS NULL) IS NOT NULL",
		"AND c.revoked_at IS NULL", "",
		ordered, "",
		ordered, "ORDER BY c.created_at, c.id DESC",
		"LIMIT (SELECT $4::bigint)", "")

	const updated = "updated_at = greatest(clock_timestamp(), c.updated_at)"
	on("update", "what is updated",
		"SET name = coalesce($3::text, c.name),", "SET name = coalesce(c.name, $3::text),",
		"SET name = coalesce($3::text, c.name),", "SET name = $3::text,",
		"settings = coalesce($4::text::jsonb, c.settings),", "settings = coalesce(c.settings, $4::text::jsonb),",
		"settings = coalesce($4::text::jsonb, c.settings),", "settings = $4::text::jsonb,",
		"secret = CASE WHEN $5::boolean THEN $6::bytea ELSE c.secret END,", "secret = CASE WHEN $5::boolean IS NULL THEN $6::bytea ELSE c.secret END,",
		"secret = CASE WHEN $5::boolean THEN $6::bytea ELSE c.secret END,", "secret = CASE WHEN $5::boolean IS NOT NULL THEN $6::bytea END,",
		"secret = CASE WHEN $5::boolean THEN $6::bytea ELSE c.secret END,", "secret = CASE WHEN $5::boolean IS NOT NULL THEN coalesce($6::bytea, c.secret) END,",
		updated, "updated_at = c.updated_at",
		updated, "updated_at = clock_timestamp()",
		tenant, "", id, "", living, "")
	on("update", "an update that waits",
		updated, "updated_at = greatest(statement_timestamp(), c.updated_at)",
		living, "")

	const revoked = "SET revoked_at = coalesce(c.revoked_at, greatest(clock_timestamp(), c.updated_at)),"
	on("revoke", "what is revoked",
		revoked, "SET revoked_at = c.revoked_at,",
		revoked, "SET revoked_at = greatest(clock_timestamp(), c.updated_at),",
		revoked, "SET revoked_at = coalesce(c.revoked_at, clock_timestamp()),",
		revoked, "SET revoked_at = coalesce(c.revoked_at, c.updated_at),",
		"secret = NULL", "secret = c.secret",
		tenant, "", id, "")
	on("revoke", "a revocation that waits",
		revoked, "SET revoked_at = coalesce(c.revoked_at, greatest(statement_timestamp(), c.updated_at)),",
		revoked, "SET revoked_at = greatest(clock_timestamp(), c.updated_at),")

	on("settings", "rows that a policy hides", "SELECT set_config('row_security', 'off', true)", "SELECT set_config('row_security', 'on', true)")
	on("has", "who has a connection", tenant, "")
	on("has", "what that reads",
		"ORDER BY c.id", " ",
		"LIMIT 1) AS n", "")
	return all
}
