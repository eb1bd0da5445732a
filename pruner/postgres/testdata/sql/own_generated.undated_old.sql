SELECT count(*), count(*) FILTER (WHERE e."created_at" < '1990-01-01 00:00:00+00'::timestamptz)
  FROM (SELECT e."created_at", e."keep_seconds" FROM ONLY "public"."tokens" e
         WHERE e."expires_at" < '1990-01-01 00:00:00+00'::timestamptz
     AND e."keep_seconds" IS NOT NULL
         LIMIT 100) e
