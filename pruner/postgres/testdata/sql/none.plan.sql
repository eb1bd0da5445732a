WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at" FROM ONLY "public"."notes" e
   WHERE e."created_at" < $1::timestamptz AND e."created_at" >= $2::timestamptz
     AND e."kind" = 'a'::pg_catalog.text
   ORDER BY e."created_at" LIMIT $3::int
)
SELECT count(*), 0, 0, 0, count(*), min(e."created_at"), NULL::timestamptz, 0, 0
     , coalesce(max(extract(epoch FROM $1::timestamptz - e."created_at")), 0)::float8
  FROM seen e
-- $1: cutoff
-- $2: after
-- $3: limit
