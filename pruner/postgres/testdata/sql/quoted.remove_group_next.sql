WITH seen AS MATERIALIZED (  -- the next rows of one age
  SELECT e.ctid AS tid, e."createdAt", e."order", e."Id" FROM ONLY "Audit-Log"."Run ""Events""" e
   WHERE (e."createdAt", e."Id") > ($1::timestamptz, $2::text::pg_catalog.int8)  -- the group, after the batch before
     AND e."createdAt" <= $1::timestamptz
   ORDER BY e."createdAt", e."Id"
   LIMIT $3::int
), tally AS MATERIALIZED (  -- counts of one snapshot
  SELECT count(*) AS examined, 0 AS outside, count(*) FILTER (WHERE NOT coalesce(e."order" = 'It''s done'::"Audit-Log"."Status", false)) AS held, 0 AS locked, 0 AS orphan
       , 0 AS unusable, 0 AS raised
       , array_agg(e.tid) FILTER (WHERE coalesce(e."order" = 'It''s done'::"Audit-Log"."Status", false)) AS tids
    FROM seen e
   WHERE true
), picked AS MATERIALIZED (  -- what this batch may remove, and nothing else
  SELECT coalesce(t.tids, '{}') AS tids FROM tally t
), gone AS (  -- by address: a Tid Scan under every plan
  DELETE FROM ONLY "Audit-Log"."Run ""Events""" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."createdAt" = $1::timestamptz  -- age, again
     AND coalesce(d."order" = 'It''s done'::"Audit-Log"."Status", false)  -- state, again
         ) IS TRUE
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, NULL::bigint AS removed
     , true AS ok
     , NULL::text AS stayed
     , NULL::bigint AS edge
     , (SELECT to_json(ARRAY[e."Id"::text])::text FROM seen e ORDER BY e."Id" DESC LIMIT 1) AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: after
-- $2: tie0
-- $3: limit
