WITH next AS MATERIALIZED (  -- the next children
  SELECT c.tid, c.k0 FROM ONLY "public"."events" p CROSS JOIN LATERAL (SELECT c.ctid AS tid, c1."receiver" AS k0
      FROM (SELECT c1."id", c1."receiver" FROM ONLY "public"."deliveries" c1 WHERE c1."event_id" = p."id" AND (c1."receiver") >= ($1::text::pg_catalog.text) ORDER BY c1."receiver" OFFSET 0) c1 CROSS JOIN LATERAL (SELECT c.ctid FROM ONLY "public"."attempts" c WHERE c."delivery_id" = c1."id" OFFSET 0) c) c
   WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])
   LIMIT $2::int
), gone AS (  -- by address
  DELETE FROM ONLY "public"."attempts" d
   WHERE d.ctid = ANY (ARRAY(SELECT n.tid FROM next n))
  RETURNING d.ctid
)
SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM next) AS seen
     , (SELECT to_json(ARRAY[n.k0::text])::text FROM next n ORDER BY n.k0 DESC LIMIT 1) AS last
     , set_config('prunectl.empty', 'no', true)
-- $1: last0
-- $2: limit
