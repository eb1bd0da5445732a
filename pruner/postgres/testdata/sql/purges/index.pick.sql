WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), seen AS MATERIALIZED (  -- the next rows of the tenant
  SELECT e.ctid AS tid FROM ONLY "public"."marks" e
   WHERE e."tenant_id" = $2::text  -- whose
     AND NOT (e.ctid = ANY ($3::tid[]))  -- no index orders them: those that stayed are passed over by address
     AND (SELECT g.ok FROM gate g)
   LIMIT $4::int
), mine AS MATERIALIZED (  -- those that nobody has locked, against changes and new references
  SELECT d.ctid AS tid FROM ONLY "public"."marks" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.tid FROM seen s))
     AND (d."tenant_id" = $2::text) IS TRUE  -- whose, again
     FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM mine m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.picked', (SELECT coalesce(array_agg(m.tid), '{}')::text FROM mine m), true)
     , set_config('prunectl.passed', (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s), true) AS last
     , pg_relation_size('"public"."marks"'::regclass) AS ends  -- the bytes in which its rows are
-- $1: gate
-- $2: tenant
-- $3: passed
-- $4: limit
