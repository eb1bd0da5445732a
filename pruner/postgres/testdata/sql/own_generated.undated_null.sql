SELECT count(*), count(*) FILTER (WHERE e."created_at" IS NULL)
  FROM (SELECT e."created_at", e."keep_seconds" FROM ONLY "public"."tokens" e
         WHERE e."expires_at" IS NULL
     AND e."keep_seconds" IS NOT NULL
         LIMIT 100) e
