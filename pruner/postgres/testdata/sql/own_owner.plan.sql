WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."keep_seconds", e."tenant_id", e."run_id" FROM ONLY "public"."tokens" e
   WHERE e."expires_at" < $1::timestamptz AND e."expires_at" >= $2::timestamptz
     AND e."keep_seconds" IS NOT NULL
   ORDER BY e."expires_at" LIMIT $3::int
), keys AS MATERIALIZED (  -- distinct owners of the range, with their rows
  SELECT e."tenant_id" AS k0, e."run_id" AS k1, count(*) AS n
       , 0 AS outside, 0 AS held, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END) AS candidates
       , count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND (e."created_at" < $1::timestamptz - interval '3600 seconds' AND NOT (e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint)) IS TRUE) AS unusable, count(*) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN e."keep_seconds" * interval '1 second' < interval '3600 seconds' ELSE false END) AS raised
       , NULL::timestamptz AS oldest_held, min(e."created_at") FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END) AS oldest
       , max(extract(epoch FROM $1::timestamptz + interval '0 seconds' - greatest((((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text), e."created_at" + interval '3600 seconds'))) FILTER (WHERE e."created_at" >= '1990-01-01 00:00:00+00'::timestamptz AND CASE WHEN e."created_at" < $1::timestamptz - interval '3600 seconds' AND e."keep_seconds" > '0'::bigint AND e."keep_seconds" <= '3153600000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_seconds" * interval '1 second') AT TIME ZONE 'UTC'::text) < $1::timestamptz ELSE false END) AS late
    FROM seen e
   WHERE true
   GROUP BY e."tenant_id", e."run_id"
), owners AS MATERIALIZED (  -- got: terminal and locked against a reopening. ok: the state where not got
  SELECT k.*, l.got, s.ok FROM keys k
    LEFT JOIN LATERAL (SELECT true AS got FROM ONLY "public"."runs" r
                        WHERE r."tenant_id" = k.k0 AND r."id" = k.k1
                          AND r."status" IN ('completed'::pg_catalog.text, 'failed'::pg_catalog.text, 'cancelled'::pg_catalog.text)  -- guard
                          AND k.candidates > 0 OFFSET 0) l ON true
    LEFT JOIN LATERAL (SELECT coalesce(r."status" IN ('completed'::pg_catalog.text, 'failed'::pg_catalog.text, 'cancelled'::pg_catalog.text), false) AS ok FROM ONLY "public"."runs" r
                        WHERE l.got IS NULL AND r."tenant_id" = k.k0 AND r."id" = k.k1 OFFSET 0) s ON true
)
SELECT coalesce(sum(o.n), 0)::bigint, coalesce(sum(o.outside), 0)::bigint
     , (coalesce(sum(o.held), 0) + coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND NOT o.ok), 0))::bigint
     , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok IS NULL), 0)::bigint
     , coalesce(sum(o.candidates) FILTER (WHERE o.got), 0)::bigint
     , min(o.oldest) FILTER (WHERE o.got), least(min(o.oldest_held), min(o.oldest) FILTER (WHERE o.got IS NULL AND NOT o.ok))
     , coalesce(sum(o.unusable), 0)::bigint, coalesce(sum(o.raised), 0)::bigint
     , coalesce(max(o.late) FILTER (WHERE o.got), 0)::float8
  FROM owners o
-- $1: cutoff
-- $2: after
-- $3: limit
