WITH edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT e."expires_at" AS at FROM ONLY "public"."tokens" e
   WHERE e."expires_at" < $1::timestamptz  -- cutoff
     AND e."expires_at" >= $2::timestamptz  -- cursor
     AND e."keep_seconds" IS NOT NULL
   ORDER BY e."expires_at" OFFSET $3::int LIMIT 1  -- oldest first
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, 0 AS held, 0 AS locked, 0 AS orphan
       , count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND (e."created_at" < $1::timestamptz - interval '3600 seconds' AND NOT (e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint)) IS TRUE) AS unusable, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN e."keep_seconds" * interval '1 second' < interval '3600 seconds' ELSE false END) AS raised
       , array_agg(e.ctid) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END) AS tids
    FROM ONLY "public"."tokens" e
   WHERE e."expires_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."expires_at" >= $2::timestamptz  -- cursor
     AND e."keep_seconds" IS NOT NULL
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."tokens" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."expires_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."expires_at" >= $2::timestamptz
     AND d."keep_seconds" IS NOT NULL
     AND d."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN d."created_at" < $1::timestamptz - interval '3600 seconds' AND d."keep_seconds" > '0'::bigint AND d."keep_seconds" <= '3153600000'::bigint THEN (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END  -- state, again
         ) IS TRUE
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, NULL::bigint AS removed
     , true AS ok
     , NULL::text AS stayed
     , (SELECT (extract(epoch FROM g.at) * 1000000)::bigint FROM edge g) AS edge  -- microseconds
     , NULL::text AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: cutoff
-- $2: after
-- $3: limit
