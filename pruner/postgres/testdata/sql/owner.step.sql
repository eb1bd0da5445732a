WITH edge AS MATERIALIZED (  -- the age of the first row after the batch: its exclusive end, and the next cursor
  SELECT e."created_at" AS at FROM ONLY "public"."run_events" e
   WHERE e."created_at" < $1::timestamptz  -- cutoff
     AND e."created_at" >= $2::timestamptz  -- cursor
   ORDER BY e."created_at" OFFSET $3::int LIMIT 1  -- oldest first
), keys AS MATERIALIZED (  -- distinct owners of the range, with their rows
  SELECT e."tenant_id" AS k0, e."run_id" AS k1, count(*) AS n
       , 0 AS outside, 0 AS held, count(*) AS candidates
    FROM ONLY "public"."run_events" e
   WHERE e."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."created_at" >= $2::timestamptz  -- cursor
   GROUP BY e."tenant_id", e."run_id"
), owners AS MATERIALIZED (  -- got: terminal and locked against a reopening. ok: the state where not got
  SELECT k.*, l.got, s.ok FROM keys k
    LEFT JOIN LATERAL (SELECT true AS got FROM ONLY "public"."runs" r
                        WHERE r."tenant_id" = k.k0 AND r."id" = k.k1
                          AND r."status" IN ('completed'::pg_catalog.text, 'failed'::pg_catalog.text, 'cancelled'::pg_catalog.text)  -- guard
                          AND k.candidates > 0 FOR SHARE SKIP LOCKED) l ON true
    LEFT JOIN LATERAL (SELECT coalesce(r."status" IN ('completed'::pg_catalog.text, 'failed'::pg_catalog.text, 'cancelled'::pg_catalog.text), false) AS ok FROM ONLY "public"."runs" r
                        WHERE l.got IS NULL AND r."tenant_id" = k.k0 AND r."id" = k.k1 OFFSET 0) s ON true
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT coalesce(sum(o.n), 0)::bigint AS examined
       , coalesce(sum(o.outside), 0)::bigint AS outside
       , (coalesce(sum(o.held), 0) + coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND NOT o.ok), 0))::bigint AS held
       , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok), 0)::bigint AS locked  -- terminal, but somebody holds it
       , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok IS NULL), 0)::bigint AS orphan  -- no such owner, or no key to it
       , 0 AS unusable, 0 AS raised
    FROM owners o
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT ARRAY(SELECT e.ctid
    FROM ONLY "public"."run_events" e
   WHERE e."created_at" < coalesce((SELECT g.at FROM edge g), $1::timestamptz)  -- the one upper bound
     AND e."created_at" >= $2::timestamptz  -- cursor
     AND (e."tenant_id", e."run_id") IN (SELECT o.k0, o.k1 FROM owners o WHERE o.got)  -- guard
  ) AS tids
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, NULL::bigint AS removed
     , true AS ok
     , NULL::text AS stayed
     , (SELECT (extract(epoch FROM g.at) * 1000000)::bigint FROM edge g) AS edge  -- microseconds
     , NULL::text AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: cutoff
-- $2: after
-- $3: limit
