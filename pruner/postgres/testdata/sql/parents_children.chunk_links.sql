WITH next AS MATERIALIZED (  -- the next children
  SELECT c.tid FROM ONLY "public"."pages" p CROSS JOIN LATERAL (SELECT c.ctid AS tid
      FROM (SELECT c.ctid FROM ONLY "public"."links" c WHERE c."page_id" = p."id" OFFSET 0) c) c
   WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])
   LIMIT $1::int
), gone AS (  -- by address
  DELETE FROM ONLY "public"."links" d
   WHERE d.ctid = ANY (ARRAY(SELECT n.tid FROM next n))
  RETURNING d.ctid
)
SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM next) AS seen
     , NULL::text AS last
     , set_config('prunectl.empty', 'no', true)
-- $1: limit
