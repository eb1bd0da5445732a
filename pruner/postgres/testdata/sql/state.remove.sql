WITH edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT e."finished_at" AS at FROM ONLY "public"."jobs" e
   WHERE e."finished_at" < $1::timestamptz  -- cutoff
     AND e."finished_at" >= $2::timestamptz  -- cursor
   ORDER BY e."finished_at" OFFSET $3::int LIMIT 1  -- oldest first
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE NOT coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)) AS held, 0 AS locked, 0 AS orphan
       , 0 AS unusable, 0 AS raised
       , array_agg(e.ctid) FILTER (WHERE coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)) AS tids
    FROM ONLY "public"."jobs" e
   WHERE e."finished_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."finished_at" >= $2::timestamptz  -- cursor
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."jobs" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."finished_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."finished_at" >= $2::timestamptz
     AND coalesce(d."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)  -- state, again
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
