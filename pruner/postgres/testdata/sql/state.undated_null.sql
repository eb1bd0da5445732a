SELECT count(*), count(*) FILTER (WHERE true AND e."state" IN ('completed'::public.job_state, 'cancelled'::public.job_state, 'discarded'::public.job_state))
  FROM (SELECT e."finished_at", e."state" FROM ONLY "public"."jobs" e
         WHERE e."finished_at" IS NULL
         LIMIT 100) e
