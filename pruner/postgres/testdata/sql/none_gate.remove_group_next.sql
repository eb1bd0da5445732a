WITH gate AS MATERIALIZED (  -- one sweeper at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock(-285474982823028593) AS ok
), seen AS MATERIALIZED (  -- the next rows of one age
  SELECT e.ctid AS tid, e."created_at", e."id" FROM ONLY "public"."lines" e
   WHERE (e."created_at", e."id") < ($1::timestamptz, $2::text::pg_catalog.int8)  -- the group, after the batch before
     AND e."created_at" >= $1::timestamptz
     AND (SELECT g.ok FROM gate g)
   ORDER BY e."created_at" DESC, e."id" DESC
   LIMIT $3::int
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, 0 AS held, 0 AS locked, 0 AS orphan
       , 0 AS unusable, 0 AS raised
       , array_agg(e.tid) AS tids
    FROM seen e
   WHERE true
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "public"."lines" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."created_at" = $1::timestamptz  -- age, again
         ) IS TRUE
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, NULL::bigint AS removed
     , (SELECT g.ok FROM gate g) AS ok
     , NULL::text AS stayed
     , NULL::bigint AS edge
     , (SELECT to_json(ARRAY[e."id"::text])::text FROM seen e ORDER BY e."id" LIMIT 1) AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: after
-- $2: tie0
-- $3: limit
