WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."keep_seconds" FROM ONLY "public"."tokens" e
   WHERE e."expires_at" < $1::timestamptz AND e."expires_at" >= $2::timestamptz
     AND e."keep_seconds" IS NOT NULL
   ORDER BY e."expires_at" LIMIT $3::int
)
SELECT count(*), 0, 0, 0, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END), min(e."created_at") FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END), NULL::timestamptz, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND (e."created_at" < $1::timestamptz - interval '3600 seconds' AND NOT (e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint)) IS TRUE), count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN e."keep_seconds" * interval '1 second' < interval '3600 seconds' ELSE false END)
     , coalesce(max(extract(epoch FROM $1::timestamptz + interval '0 seconds' - greatest((((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text), e."created_at" + interval '3600 seconds'))) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END), 0)::float8
  FROM seen e
-- $1: cutoff
-- $2: after
-- $3: limit
