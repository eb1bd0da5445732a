SELECT count(*), count(*) FILTER (WHERE e."created_at" < '1990-01-01 00:00:00+00'::timestamptz)
  FROM (SELECT e."created_at", e."keep_days", e."held" FROM ONLY "public"."parcels" e
         WHERE (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_days" * interval '1 day') AT TIME ZONE 'UTC'::text) < '1990-01-01 00:00:00+00'::timestamptz
     AND e."kind" = 'a'::pg_catalog.text
     AND e."keep_days" IS NOT NULL
         LIMIT 100) e
