WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."finished_at", e."state" FROM ONLY "public"."jobs" e
   WHERE e."finished_at" < $1::timestamptz AND e."finished_at" >= $2::timestamptz
   ORDER BY e."finished_at" LIMIT $3::int
)
SELECT count(*), 0, count(*) FILTER (WHERE NOT coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)), 0, count(*) FILTER (WHERE coalesce(e."state" = 'completed'::public.job_state OR e."state" = 'discarded'::public.job_state AND e."finished_at" < $1::timestamptz - interval '518400 seconds', false)), min(e."finished_at") FILTER (WHERE coalesce(e."state" = 'completed'::public.job_state OR e."state" = 'discarded'::public.job_state AND e."finished_at" < $1::timestamptz - interval '518400 seconds', false)), min(e."finished_at") FILTER (WHERE NOT coalesce(e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state), false)), 0, 0
     , coalesce(max(extract(epoch FROM $1::timestamptz - e."finished_at" - CASE WHEN e."state" = 'discarded'::public.job_state THEN interval '518400 seconds' ELSE interval '0' END)) FILTER (WHERE coalesce(e."state" = 'completed'::public.job_state OR e."state" = 'discarded'::public.job_state AND e."finished_at" < $1::timestamptz - interval '518400 seconds', false)), 0)::float8
  FROM seen e
-- $1: cutoff
-- $2: after
-- $3: limit
