SELECT count(*), count(*) FILTER (WHERE true)
  FROM (SELECT e."created_at", e."tenant_id", e."run_id" FROM ONLY "public"."run_events" e
         WHERE e."created_at" < '1990-01-01 00:00:00+00'::timestamptz
         LIMIT 100) e
