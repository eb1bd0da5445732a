WITH seen AS MATERIALIZED (  -- the next rows of one age
  SELECT e.ctid AS tid, e."created_at", e."keep_hours", e."held", e."state", e."id" FROM ONLY "public"."letters" e
   WHERE (e."created_at", e."id") > ($1::timestamptz, $2::text::pg_catalog.int8)  -- the group, after the batch before
     AND e."created_at" <= $1::timestamptz
   ORDER BY e."created_at", e."id"
   LIMIT $3::int
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $4::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($4::timestamptz + interval '3600 seconds') ELSE false END AND (NOT coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) OR coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS TRUE)) AS held, 0 AS locked, 0 AS orphan
       , count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND (e."created_at" < $4::timestamptz AND NOT (e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint)) IS TRUE) AS unusable, count(*) FILTER (WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $4::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN e."keep_hours" * interval '1 hour' < interval '3600 seconds' ELSE false END) AS raised
       , array_agg(e.tid) FILTER (WHERE e."keep_hours" IS NOT NULL AND CASE WHEN e."created_at" < $4::timestamptz AND e."keep_hours" > '0'::bigint AND e."keep_hours" <= '876000'::bigint THEN (((e."created_at" AT TIME ZONE 'UTC'::text) + e."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($4::timestamptz + interval '3600 seconds') ELSE false END AND coalesce(e."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND e."held" IS NOT TRUE) AS tids
    FROM seen e
   WHERE true
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."letters" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."created_at" = $1::timestamptz  -- age, again
     AND d."keep_hours" IS NOT NULL AND CASE WHEN d."created_at" < $4::timestamptz AND d."keep_hours" > '0'::bigint AND d."keep_hours" <= '876000'::bigint THEN (((d."created_at" AT TIME ZONE 'UTC'::text) + d."keep_hours" * interval '1 hour') AT TIME ZONE 'UTC'::text) < ($4::timestamptz + interval '3600 seconds') ELSE false END AND coalesce(d."state" IN ('sent'::pg_catalog.text, 'lost'::pg_catalog.text), false) AND d."held" IS NOT TRUE  -- state, again
         ) IS TRUE
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, NULL::bigint AS removed
     , true AS ok
     , NULL::text AS stayed
     , NULL::bigint AS edge
     , (SELECT to_json(ARRAY[e."id"::text])::text FROM seen e ORDER BY e."id" DESC LIMIT 1) AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: after
-- $2: tie0
-- $3: limit
-- $4: cutoff
