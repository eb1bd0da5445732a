WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), seen AS MATERIALIZED (  -- the next rows of the tenant
  SELECT e.ctid AS tid, e."id" AS k0 FROM ONLY "public"."runs" e
   WHERE e."tenant_id" >= $2::text  -- whose
     AND e."tenant_id" <= $2::text
     AND (SELECT g.ok FROM gate g)
   ORDER BY e."tenant_id", e."id" LIMIT $3::int
), edge AS MATERIALIZED (  -- the last row of the tenant as the pass begins: larger keys that come meanwhile are for the next one
  SELECT l."id" AS k0 FROM ONLY "public"."runs" l
   WHERE l."tenant_id" <= $2::text
     AND (SELECT true FROM seen s LIMIT 1)  -- who has none, or lost the gate, reads nothing
   ORDER BY l."tenant_id" DESC, l."id" DESC LIMIT 1
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM seen m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , NULL::text  -- stepped over: nothing is locked
     , (SELECT to_json(ARRAY[s.k0::text]::text[])::text FROM seen s ORDER BY s.k0 DESC LIMIT 1) AS last
     , (SELECT to_json(ARRAY[e.k0::text]::text[])::text FROM edge e) AS ends  -- the last key
-- $1: gate
-- $2: tenant
-- $3: limit
