WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."keep_hours", e."held", e."state" FROM ONLY "public"."letters" e
   WHERE e."created_at" < $1::timestamptz AND e."created_at" >= $2::timestamptz
   ORDER BY e."created_at" LIMIT $3::int
)
SELECT 'state' AS reason, e."state"::text AS value, count(*) AS n, NULL::bigint AS owners, min(e."created_at") AS oldest FROM seen e WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END AND NOT coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) GROUP BY 2
UNION ALL
SELECT 'hold' AS reason, NULL::text AS value, count(*) AS n, NULL::bigint AS owners, min(e."created_at") AS oldest FROM seen e WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $1::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($1::timestamptz + interval '3600 seconds') ELSE false END AND coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS TRUE GROUP BY 2
ORDER BY 3 DESC, 1, 2
-- $1: cutoff
-- $2: after
-- $3: limit
