WITH gate AS MATERIALIZED (  -- one sweeper at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock(1366676650656463487) AS ok
), edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT e."finished_at" AS at FROM ONLY "public"."jobs" e
   WHERE e."finished_at" < $1::timestamptz  -- cutoff
     AND e."finished_at" >= $2::timestamptz  -- cursor
     AND (SELECT g.ok FROM gate g)
   ORDER BY e."finished_at" OFFSET $3::int LIMIT 1  -- oldest first
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE NOT coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)) AS held, 0 AS locked, 0 AS orphan
       , 0 AS unusable, 0 AS raised
       , array_agg(e.ctid) FILTER (WHERE coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)) AS tids
    FROM ONLY "public"."jobs" e
   WHERE e."finished_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."finished_at" >= $2::timestamptz  -- cursor
     AND (SELECT g.ok FROM gate g)
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), mine AS MATERIALIZED (  -- those that nobody has locked
  SELECT d.ctid AS tid FROM ONLY "public"."jobs" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."finished_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."finished_at" >= $2::timestamptz
     AND coalesce(d."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)  -- state, again
         ) IS TRUE
     FOR UPDATE SKIP LOCKED
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."jobs" d
   WHERE d.ctid = ANY (ARRAY(SELECT m.tid FROM mine m))
     AND (d."finished_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- age, again
     AND d."finished_at" >= $2::timestamptz
     AND coalesce(d."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)  -- state, again
         ) IS TRUE
  RETURNING d.ctid AS tid
), stayed AS MATERIALIZED (  -- picked, and still there: to be looked at again
  SELECT coalesce(array_agg(x.tid)::text, '{}') AS tids
    FROM (SELECT m.tid FROM mine m EXCEPT SELECT g.tid FROM gone g) x
   WHERE (SELECT count(*) FROM gone) < (SELECT count(*) FROM mine)
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, (SELECT count(*) FROM mine) AS mine, (SELECT count(*) FROM gone) AS removed
     , (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.stayed', (SELECT y.tids FROM stayed y), true) AS stayed  -- of this transaction only
     , (SELECT (extract(epoch FROM g.at) * 1000000)::bigint FROM edge g) AS edge  -- microseconds
     , NULL::text AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: cutoff
-- $2: after
-- $3: limit
