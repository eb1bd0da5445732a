WITH next AS MATERIALIZED (  -- the next children
  SELECT c.tid, c.k0 FROM ONLY "public"."events" p CROSS JOIN LATERAL (SELECT c.ctid AS tid, c."receiver" AS k0
      FROM (SELECT c.ctid, c."receiver" FROM ONLY "public"."deliveries" c WHERE c."event_id" = p."id" AND c."status" IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) ORDER BY c."receiver" OFFSET 0) c) c
   WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])
   LIMIT $1::int
), gone AS (  -- by address
  DELETE FROM ONLY "public"."deliveries" d
   WHERE d.ctid = ANY (ARRAY(SELECT n.tid FROM next n))
   AND (d."status" IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text)) IS TRUE  -- state, again
  RETURNING d.ctid
)
SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM next) AS seen
     , (SELECT to_json(ARRAY[n.k0::text])::text FROM next n ORDER BY n.k0 DESC LIMIT 1) AS last
     , set_config('prunectl.empty', CASE WHEN (SELECT count(*) FROM next) < $1::int THEN 'yes' ELSE 'no' END, true)
-- $1: limit
