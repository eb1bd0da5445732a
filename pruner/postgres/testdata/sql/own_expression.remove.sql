WITH edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) AS at FROM ONLY "public"."parcels" e
   WHERE (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < $1::timestamptz  -- cutoff
     AND (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) >= $2::timestamptz  -- cursor
     AND e."kind" = 'a'::pg_catalog.text
     AND e."keep_days" IS NOT NULL
   ORDER BY (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) OFFSET $3::int LIMIT 1  -- oldest first
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_days" > '0'::bigint AND e."keep_days" <= '36500'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END AND e."held" IS TRUE) AS held, 0 AS locked, 0 AS orphan
       , count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND (e."created_at" < $1::timestamptz - interval '3600 seconds' AND NOT (e."keep_days" > '0'::bigint AND e."keep_days" <= '36500'::bigint)) IS TRUE) AS unusable, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_days" > '0'::bigint AND e."keep_days" <= '36500'::bigint THEN e."keep_days" * interval '1 day' < interval '3600 seconds' ELSE false END) AS raised
       , array_agg(e.ctid) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_days" > '0'::bigint AND e."keep_days" <= '36500'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END AND e."held" IS NOT TRUE) AS tids
    FROM ONLY "public"."parcels" e
   WHERE (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) >= $2::timestamptz  -- cursor
     AND e."kind" = 'a'::pg_catalog.text
     AND e."keep_days" IS NOT NULL
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."parcels" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND ((((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) >= $2::timestamptz
     AND d."kind" = 'a'::pg_catalog.text
     AND d."keep_days" IS NOT NULL
     AND d."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN d."created_at" < $1::timestamptz - interval '3600 seconds' AND d."keep_days" > '0'::bigint AND d."keep_days" <= '36500'::bigint THEN (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END AND d."held" IS NOT TRUE  -- state, again
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
