WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."held", e."state" FROM ONLY "public"."letters" e
   WHERE e."created_at" < $1::timestamptz AND e."created_at" >= $2::timestamptz
   ORDER BY e."created_at" LIMIT $3::int
)
SELECT count(*), 0, count(*) FILTER (WHERE (NOT coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) OR coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS TRUE)), 0, count(*) FILTER (WHERE coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS NOT TRUE), min(e."created_at") FILTER (WHERE coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS NOT TRUE), min(e."created_at") FILTER (WHERE (NOT coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) OR coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS TRUE)), 0, 0
     , coalesce(max(extract(epoch FROM $1::timestamptz - e."created_at")) FILTER (WHERE coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS NOT TRUE), 0)::float8
  FROM seen e
-- $1: cutoff
-- $2: after
-- $3: limit
