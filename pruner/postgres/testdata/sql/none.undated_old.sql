SELECT count(*), count(*) FILTER (WHERE true)
  FROM (SELECT e."created_at" FROM ONLY "public"."notes" e
         WHERE e."created_at" < '1990-01-01 00:00:00+00'::timestamptz
     AND e."kind" = 'a'::pg_catalog.text
         LIMIT 100) e
