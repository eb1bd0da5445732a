WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."finished_at", e."state" FROM ONLY "public"."jobs" e
   WHERE e."finished_at" < $1::timestamptz AND e."finished_at" >= $2::timestamptz
   ORDER BY e."finished_at" LIMIT $3::int
)
SELECT 'state' AS reason, e."state"::text AS value, count(*) AS n, NULL::bigint AS owners, min(e."finished_at") AS oldest FROM seen e WHERE NOT coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false) GROUP BY 2
ORDER BY 3 DESC, 1, 2
-- $1: cutoff
-- $2: after
-- $3: limit
