WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), page AS MATERIALIZED (  -- the row that is emptied
  SELECT e.ctid AS tid, e."id" AS k0, e."id" AS r0, 1 AS n FROM ONLY "public"."tenants" e
   WHERE (e."id" = $2::text) IS TRUE  -- whose
     AND e."id" = $3::text::pg_catalog.text
     AND (SELECT g.ok FROM gate g)
), found AS MATERIALIZED (  -- the next rows that refer to it
  SELECT p.n, p.tid AS t0, c.tid FROM page p
   CROSS JOIN LATERAL (SELECT x.ctid AS tid FROM ONLY "public"."labels" x WHERE x."tenant" = p.r0 OFFSET 0) c
   WHERE NOT (c.tid = ANY ($4::tid[]))  -- those that stayed are passed over by address
   LIMIT $5::int
), seen AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM found f
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
     , set_config('prunectl.passed', (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s), true) AS last
     , pg_relation_size('"public"."labels"'::regclass) AS ends  -- the bytes in which its rows are
     , NULL::text AS wide, 0 AS rest, 1 AS page
-- $1: gate
-- $2: tenant
-- $3: whose0
-- $4: passed
-- $5: limit
