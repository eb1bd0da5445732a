WITH edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT e."created_at" AS at FROM ONLY "public"."leases" e
   WHERE e."created_at" < $1::timestamptz  -- cutoff
     AND e."created_at" >= $2::timestamptz  -- cursor
   ORDER BY e."created_at" OFFSET $3::int LIMIT 1  -- oldest first
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, 0 AS held, 0 AS locked, 0 AS orphan
       , count(*) FILTER (WHERE e."keep" IS NOT NULL AND (e."created_at" < $1::timestamptz AND NOT (e."keep" >= interval '1 second' AND e."keep" <= interval '36500 days') AND e."keep" <> interval '0') IS TRUE) AS unusable, count(*) FILTER (WHERE e."keep" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep" >= interval '1 second' AND e."keep" <= interval '36500 days' THEN e."keep" < interval '3600 seconds' ELSE false END) AS raised
       , array_agg(e.ctid) FILTER (WHERE e."keep" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep" >= interval '1 second' AND e."keep" <= interval '36500 days' THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep") AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END) AS tids
    FROM ONLY "public"."leases" e
   WHERE e."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."created_at" >= $2::timestamptz  -- cursor
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."leases" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."created_at" >= $2::timestamptz
     AND d."keep" IS NOT NULL AND CASE WHEN d."created_at" < $1::timestamptz AND d."keep" >= interval '1 second' AND d."keep" <= interval '36500 days' THEN (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep") AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END  -- state, again
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
