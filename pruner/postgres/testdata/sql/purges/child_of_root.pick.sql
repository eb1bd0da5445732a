WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), page AS MATERIALIZED (  -- the tenant's next rows of "public.tenants"
  SELECT e.ctid AS tid, e."id" AS k0, e."id" AS r0, row_number() OVER (ORDER BY e."id") AS n FROM ONLY "public"."tenants" e
   WHERE e."id" >= $2::text  -- whose
     AND e."id" <= $2::text
     AND (SELECT g.ok FROM gate g)
   ORDER BY e."id" LIMIT $3::int
), found AS MATERIALIZED (  -- the rows that refer to them, and one more than fit
  SELECT p.n, p.tid AS t0, c.tid FROM page p
   CROSS JOIN LATERAL (SELECT x.ctid AS tid FROM ONLY "public"."labels" x WHERE x."tenant" = p.r0 OFFSET 0) c
   LIMIT $4::int + 1
), cut AS MATERIALIZED (  -- the first row of the page that is left for the next batch
  SELECT CASE WHEN (SELECT count(*) FROM found f) > $4::int
              THEN (SELECT max(f.n) FROM found f)
              ELSE (SELECT count(*) + 1 FROM page p) END AS n
), seen AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM found f, cut WHERE f.n < cut.n
), held0 AS MATERIALIZED (  -- by which they are the tenant's: it cannot move to another meanwhile
  SELECT d.ctid AS tid FROM ONLY "public"."tenants" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.t0 FROM seen s))
     AND (d."id" = $2::text) IS TRUE  -- whose, again
     FOR SHARE SKIP LOCKED
), mine AS MATERIALIZED (  -- those that nobody has locked, against changes and new references
  SELECT d.ctid AS tid FROM ONLY "public"."labels" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.tid FROM seen s WHERE (s.t0 IN (SELECT h.tid FROM held0 h)) IS TRUE))
     FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM mine m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.picked', (SELECT coalesce(array_agg(m.tid), '{}')::text FROM mine m), true)
     , (SELECT to_json(ARRAY[p.k0::text]::text[])::text FROM page p, cut WHERE p.n < cut.n ORDER BY p.n DESC LIMIT 1) AS last
     , NULL::text AS ends
     , (SELECT to_json(ARRAY[p.k0::text]::text[])::text FROM page p, cut WHERE p.n = 1 AND cut.n = 1) AS wide  -- has more of them than fit
     , (SELECT count(*) FROM page p WHERE p.n >= (SELECT c.n FROM cut c)) AS rest, (SELECT count(*) FROM page p) AS page
-- $1: gate
-- $2: tenant
-- $3: look
-- $4: limit
