SELECT count(*), count(*) FILTER (WHERE true)
  FROM (SELECT e."finished_at" FROM ONLY "public"."tasks" e
         WHERE e."finished_at" < '1990-01-01 00:00:00+00'::timestamptz
     AND e."state" = 'cancelled'::public.job_state
         LIMIT 100) e
