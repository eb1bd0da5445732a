WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), page AS MATERIALIZED (  -- the row that is emptied
  SELECT e.ctid AS tid, e."id" AS k0, e."id" AS r0, 1 AS n FROM ONLY "public"."orders" e
   WHERE (e."tenant_id" = $2::text) IS TRUE  -- whose
     AND e."id" = $3::text::pg_catalog.int4
     AND (SELECT g.ok FROM gate g)
), found AS MATERIALIZED (  -- the next rows that refer to it
  SELECT p.n, p.tid AS t0, c1.tid AS t1, c.tid FROM page p
   CROSS JOIN LATERAL (SELECT x.ctid AS tid, x."id" AS r0 FROM ONLY "public"."lines" x WHERE x."order_id" = p.r0 OFFSET 0) c1
   CROSS JOIN LATERAL (SELECT x.ctid AS tid FROM ONLY "public"."parts" x WHERE x."line_id" = c1.r0 OFFSET 0) c
   WHERE NOT (c.tid = ANY ($4::tid[]))  -- those that stayed are passed over by address
   LIMIT $5::int
), seen AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM found f
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM seen m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , NULL::text  -- stepped over: nothing is locked
     , (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s) AS last
     , pg_relation_size('"public"."parts"'::regclass) AS ends  -- the bytes in which its rows are
     , NULL::text AS wide, 0 AS rest, 1 AS page
-- $1: gate
-- $2: tenant
-- $3: whose0
-- $4: passed
-- $5: limit
