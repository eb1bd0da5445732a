WITH edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT e."created_at" AS at FROM ONLY "public"."letters" e
   WHERE e."created_at" < $1::timestamptz  -- cutoff
     AND e."created_at" >= $2::timestamptz  -- cursor
   ORDER BY e."created_at" OFFSET $3::int LIMIT 1  -- oldest first
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END AND (NOT coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) OR coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS TRUE)) AS held, 0 AS locked, 0 AS orphan
       , count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND (e."created_at" < $1::timestamptz AND NOT (e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint)) IS TRUE) AS unusable, count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN e."keep_hours" * interval '1 hour' < interval '3600 seconds' ELSE false END) AS raised
       , array_agg(e.ctid) FILTER (WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END AND coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS NOT TRUE) AS tids
    FROM ONLY "public"."letters" e
   WHERE e."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."created_at" >= $2::timestamptz  -- cursor
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), mine AS MATERIALIZED (  -- those that nobody has locked
  SELECT d.ctid AS tid FROM ONLY "public"."letters" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."created_at" >= $2::timestamptz
     AND d."keep_hours" IS NOT NULL AND CASE WHEN d."created_at" < $1::timestamptz AND d."keep_hours" > '0'::bigint AND d."keep_hours" <= '876000'::bigint THEN (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END AND coalesce(d."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND d."held" IS NOT TRUE  -- state, again
         ) IS TRUE
     FOR UPDATE SKIP LOCKED
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."letters" d
   WHERE d.ctid = ANY (ARRAY(SELECT m.tid FROM mine m))
     AND (d."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."created_at" >= $2::timestamptz
     AND d."keep_hours" IS NOT NULL AND CASE WHEN d."created_at" < $1::timestamptz AND d."keep_hours" > '0'::bigint AND d."keep_hours" <= '876000'::bigint THEN (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END AND coalesce(d."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND d."held" IS NOT TRUE  -- state, again
         ) IS TRUE
  RETURNING d.ctid AS tid
), stayed AS MATERIALIZED (  -- picked, and still there: to be looked at again
  SELECT coalesce(array_agg(x.tid)::text, '{}') AS tids
    FROM (SELECT m.tid FROM mine m EXCEPT SELECT g.tid FROM gone g) x
   WHERE (SELECT count(*) FROM gone) < (SELECT count(*) FROM mine)
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, (SELECT count(*) FROM mine) AS mine, (SELECT count(*) FROM gone) AS removed
     , true AS ok
     , set_config('prunectl.stayed', (SELECT y.tids FROM stayed y), true) AS stayed  -- of this transaction only
     , (SELECT (extract(epoch FROM g.at) * 1000000)::bigint FROM edge g) AS edge  -- microseconds
     , NULL::text AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: cutoff
-- $2: after
-- $3: limit
