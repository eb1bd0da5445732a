WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), page AS MATERIALIZED (  -- the row that is emptied
  SELECT e.ctid AS tid, e."id" AS k0, e."id" AS r0, 1 AS n FROM ONLY "public"."orders" e
   WHERE (e."tenant_id" = $2::text) IS TRUE  -- whose
     AND e."id" = $3::text::pg_catalog.int4
     AND (SELECT g.ok FROM gate g)
), found AS MATERIALIZED (  -- the next rows that refer to it
  SELECT p.n, p.tid AS t0, c.tid, c.l0 FROM page p
   CROSS JOIN LATERAL (SELECT x.ctid AS tid, x."id" AS l0 FROM ONLY "public"."lines" x WHERE x."order_id" = p.r0 ORDER BY x."id" OFFSET 0) c
   LIMIT $4::int
), seen AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM found f
), held0 AS MATERIALIZED (  -- by which they are the tenant's: it cannot move to another meanwhile
  SELECT d.ctid AS tid FROM ONLY "public"."orders" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.t0 FROM seen s))
     AND (d."tenant_id" = $2::text) IS TRUE  -- whose, again
     FOR SHARE SKIP LOCKED
), mine AS MATERIALIZED (  -- those that nobody has locked, against changes and new references
  SELECT d.ctid AS tid FROM ONLY "public"."lines" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.tid FROM seen s WHERE (s.t0 IN (SELECT h.tid FROM held0 h)) IS TRUE))
     FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM mine m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.picked', (SELECT coalesce(array_agg(m.tid), '{}')::text FROM mine m), true)
     , (SELECT to_json(ARRAY[s.l0::text]::text[])::text FROM seen s ORDER BY s.l0 DESC LIMIT 1) AS last
     , pg_relation_size('"public"."lines"'::regclass) AS ends  -- the bytes in which its rows are
     , NULL::text AS wide, 0 AS rest, 1 AS page
-- $1: gate
-- $2: tenant
-- $3: whose0
-- $4: limit
