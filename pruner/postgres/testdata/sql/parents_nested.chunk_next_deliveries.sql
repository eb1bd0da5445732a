WITH next AS MATERIALIZED (  -- the next children
  SELECT c.tid, c.k0 FROM ONLY "public"."events" p CROSS JOIN LATERAL (SELECT c.ctid AS tid, c."receiver" AS k0
      FROM (SELECT c.ctid, c."receiver" FROM ONLY "public"."deliveries" c WHERE c."event_id" = p."id" AND (c."receiver") > ($1::text::pg_catalog.text) AND c."status" IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) ORDER BY c."receiver" OFFSET 0) c) c
   WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])
   LIMIT $2::int
), gone AS (  -- by address
  DELETE FROM ONLY "public"."deliveries" d
   WHERE d.ctid = ANY (ARRAY(SELECT n.tid FROM next n))
   AND (d."status" IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) AND (SELECT true FROM ONLY "public"."attempts" c WHERE c."delivery_id" = d."id" LIMIT 1) IS NULL) IS TRUE  -- state, again
  RETURNING d.ctid
)
SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM next) AS seen
     , (SELECT to_json(ARRAY[n.k0::text])::text FROM next n ORDER BY n.k0 DESC LIMIT 1) AS last
     , set_config('prunectl.empty', CASE WHEN (SELECT count(*) FROM next) < $2::int THEN 'yes' ELSE 'no' END, true)
-- $1: last0
-- $2: limit
