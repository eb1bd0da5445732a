WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."held", e."state" FROM ONLY "public"."letters" e
   WHERE e."created_at" < $1::timestamptz AND e."created_at" >= $2::timestamptz
   ORDER BY e."created_at" LIMIT $3::int
)
SELECT 'state' AS reason, e."state"::text AS value, count(*) AS n, NULL::bigint AS owners, min(e."created_at") AS oldest FROM seen e WHERE NOT coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) GROUP BY 2
UNION ALL
SELECT 'hold' AS reason, NULL::text AS value, count(*) AS n, NULL::bigint AS owners, min(e."created_at") AS oldest FROM seen e WHERE coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS TRUE GROUP BY 2
ORDER BY 3 DESC, 1, 2
-- $1: cutoff
-- $2: after
-- $3: limit
