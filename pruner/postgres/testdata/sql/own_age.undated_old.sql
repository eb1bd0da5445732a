SELECT count(*), count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text))
  FROM (SELECT e."created_at", e."keep_hours", e."held", e."state" FROM ONLY "public"."letters" e
         WHERE e."created_at" < '1990-01-01 00:00:00+00'::timestamptz
         LIMIT 100) e
