WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."kind", e."tenant_id", e."run_id" FROM ONLY "public"."run_events" e
   WHERE e."created_at" < $1::timestamptz AND e."created_at" >= $2::timestamptz
   ORDER BY e."created_at" LIMIT $3::int
), keys AS MATERIALIZED (  -- distinct owners of the range, with their rows
  SELECT e."tenant_id" AS k0, e."run_id" AS k1, count(*) AS n
       , count(*) FILTER (WHERE NOT (NOT (coalesce(e."kind" = 'keep'::pg_catalog.text, false) OR e."kind" IS NULL))) AS outside, 0 AS held, count(*) FILTER (WHERE (NOT (coalesce(e."kind" = 'keep'::pg_catalog.text, false) OR e."kind" IS NULL))) AS candidates
       , NULL::timestamptz AS oldest_held, min(e."created_at") FILTER (WHERE (NOT (coalesce(e."kind" = 'keep'::pg_catalog.text, false) OR e."kind" IS NULL))) AS oldest
       , max(extract(epoch FROM $1::timestamptz - e."created_at")) FILTER (WHERE (NOT (coalesce(e."kind" = 'keep'::pg_catalog.text, false) OR e."kind" IS NULL))) AS late
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
     , 0, 0
     , coalesce(max(o.late) FILTER (WHERE o.got), 0)::float8
  FROM owners o
-- $1: cutoff
-- $2: after
-- $3: limit
