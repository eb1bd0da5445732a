WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), seen AS MATERIALIZED (  -- the next rows of the tenant
  SELECT e.ctid AS tid, e."id" AS k0 FROM ONLY "public"."runs" e
   WHERE (e."tenant_id", e."id") > ($2::text, $3::text::pg_catalog.int4)  -- whose, after the batch before
     AND (e."tenant_id", e."id") <= ($2::text, $4::text::pg_catalog.int4)  -- up to the last one when the pass began
     AND (SELECT g.ok FROM gate g)
   ORDER BY e."tenant_id", e."id" LIMIT $5::int
), mine AS MATERIALIZED (  -- those that nobody has locked, against changes and new references
  SELECT d.ctid AS tid FROM ONLY "public"."runs" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.tid FROM seen s))
     AND (d."tenant_id" = $2::text) IS TRUE  -- whose, again
     FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM mine m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.picked', (SELECT coalesce(array_agg(m.tid), '{}')::text FROM mine m), true)
     , (SELECT to_json(ARRAY[s.k0::text]::text[])::text FROM seen s ORDER BY s.k0 DESC LIMIT 1) AS last
     , NULL::text AS ends
-- $1: gate
-- $2: tenant
-- $3: key0
-- $4: edge0
-- $5: limit
