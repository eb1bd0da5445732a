WITH seen AS MATERIALIZED (  -- the next rows of one age
  SELECT e.ctid AS tid, e."finished_at", e."state", e."id" FROM ONLY "public"."jobs" e
   WHERE (e."finished_at", e."id") > ($1::timestamptz, $2::text::pg_catalog.int8)  -- the group, after the batch before
     AND e."finished_at" <= $1::timestamptz
   ORDER BY e."finished_at", e."id"
   LIMIT $3::int
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE NOT coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)) AS held, 0 AS locked, 0 AS orphan
       , 0 AS unusable, 0 AS raised
       , array_agg(e.tid) FILTER (WHERE coalesce(e."state" = 'completed'::public.job_state OR e."state" = 'discarded'::public.job_state AND e."finished_at" < $4::timestamptz - interval '518400 seconds', false)) AS tids
    FROM seen e
   WHERE true
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."jobs" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."finished_at" = $1::timestamptz  -- age, again
     AND coalesce(d."state" = 'completed'::public.job_state OR d."state" = 'discarded'::public.job_state AND d."finished_at" < $4::timestamptz - interval '518400 seconds', false)  -- state, again
         ) IS TRUE
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, NULL::bigint AS removed
     , true AS ok
     , NULL::text AS stayed
     , NULL::bigint AS edge
     , (SELECT to_json(ARRAY[e."id"::text])::text FROM seen e ORDER BY e."id" DESC LIMIT 1) AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: after
-- $2: tie0
-- $3: limit
-- $4: cutoff
