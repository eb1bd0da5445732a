WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), page AS MATERIALIZED (  -- the tenant's next rows of "public.orders"
  SELECT e.ctid AS tid, e."id" AS k0, e."id" AS r0, row_number() OVER (ORDER BY e."tenant_id", e."id") AS n FROM ONLY "public"."orders" e
   WHERE e."tenant_id" >= $2::text  -- whose
     AND e."tenant_id" <= $2::text
     AND (SELECT g.ok FROM gate g)
   ORDER BY e."tenant_id", e."id" LIMIT $3::int
), found AS MATERIALIZED (  -- the rows that refer to them, and one more than fit
  SELECT p.n, p.tid AS t0, c.tid FROM page p
   CROSS JOIN LATERAL (SELECT x.ctid AS tid FROM ONLY "public"."lines" x WHERE x."order_id" = p.r0 OFFSET 0) c
   LIMIT $4::int + 1
), cut AS MATERIALIZED (  -- the first row of the page that is left for the next batch
  SELECT CASE WHEN (SELECT count(*) FROM found f) > $4::int
              THEN (SELECT max(f.n) FROM found f)
              ELSE (SELECT count(*) + 1 FROM page p) END AS n
), seen AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM found f, cut WHERE f.n < cut.n
), edge AS MATERIALIZED (  -- the last row of the tenant as the pass begins: larger keys that come meanwhile are for the next one
  SELECT l."id" AS k0 FROM ONLY "public"."orders" l
   WHERE l."tenant_id" <= $2::text
     AND (SELECT true FROM page s LIMIT 1)  -- who has none, or lost the gate, reads nothing
   ORDER BY l."tenant_id" DESC, l."id" DESC LIMIT 1
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM seen m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , NULL::text  -- stepped over: nothing is locked
     , (SELECT to_json(ARRAY[p.k0::text]::text[])::text FROM page p, cut WHERE p.n < cut.n ORDER BY p.n DESC LIMIT 1) AS last
     , (SELECT to_json(ARRAY[e.k0::text]::text[])::text FROM edge e) AS ends  -- the last key
     , (SELECT to_json(ARRAY[p.k0::text]::text[])::text FROM page p, cut WHERE p.n = 1 AND cut.n = 1) AS wide  -- has more of them than fit
     , (SELECT count(*) FROM page p WHERE p.n >= (SELECT c.n FROM cut c)) AS rest, (SELECT count(*) FROM page p) AS page
-- $1: gate
-- $2: tenant
-- $3: look
-- $4: limit
