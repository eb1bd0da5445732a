WITH seen AS MATERIALIZED (  -- the oldest rows before the cutoff, up to a bound
  SELECT e."created_at", e."kind", e."tenant_id", e."run_id" FROM ONLY "public"."run_events" e
   WHERE e."created_at" < $1::timestamptz AND e."created_at" >= $2::timestamptz
   ORDER BY e."created_at" LIMIT $3::int
), keys AS MATERIALIZED (  -- distinct owners of the range, with their rows
  SELECT e."tenant_id" AS k0, e."run_id" AS k1, count(*) AS n
       , 0 AS outside, count(*) FILTER (WHERE NOT coalesce(e."kind" IN ('step'::pg_catalog.text, 'end'::pg_catalog.text), false)) AS held, count(*) FILTER (WHERE coalesce(e."kind" IN ('step'::pg_catalog.text, 'end'::pg_catalog.text), false)) AS candidates
       , min(e."created_at") FILTER (WHERE NOT coalesce(e."kind" IN ('step'::pg_catalog.text, 'end'::pg_catalog.text), false)) AS oldest_held, min(e."created_at") FILTER (WHERE coalesce(e."kind" IN ('step'::pg_catalog.text, 'end'::pg_catalog.text), false)) AS oldest
       , max(extract(epoch FROM $1::timestamptz - e."created_at")) FILTER (WHERE coalesce(e."kind" IN ('step'::pg_catalog.text, 'end'::pg_catalog.text), false)) AS late
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
SELECT 'state' AS reason, e."kind"::text AS value, count(*) AS n, NULL::bigint AS owners, min(e."created_at") AS oldest FROM seen e WHERE NOT coalesce(e."kind" IN ('step'::pg_catalog.text, 'end'::pg_catalog.text), false) GROUP BY 2
UNION ALL
SELECT CASE WHEN o.ok IS NOT NULL THEN 'owner' WHEN o.k0 IS NULL OR o.k1 IS NULL THEN 'ownerless' ELSE 'orphan' END, x.state, sum(o.candidates)::bigint, CASE WHEN bool_and(o.ok IS NOT NULL) THEN count(*) END, min(o.oldest)
  FROM owners o LEFT JOIN LATERAL (SELECT r."status"::text AS state FROM ONLY "public"."runs" r WHERE r."tenant_id" = o.k0 AND r."id" = o.k1 OFFSET 0) x ON true
 WHERE o.got IS NULL AND o.candidates > 0 GROUP BY 1, 2
ORDER BY 3 DESC, 1, 2
-- $1: cutoff
-- $2: after
-- $3: limit
