WITH seen AS MATERIALIZED (  -- the next rows of one age
  SELECT e.ctid AS tid, e."created_at" FROM ONLY "public"."marks" e
   WHERE e."created_at" = $1::timestamptz  -- the group
     AND NOT (e.ctid = ANY ($2::tid[]))  -- no index orders them: those that stayed are passed over by address
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
  DELETE FROM ONLY "public"."marks" d
   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])
     AND (d."created_at" = $1::timestamptz  -- age, again
         ) IS TRUE
  RETURNING d.ctid AS tid
), stayed AS MATERIALIZED (  -- picked, and still there: to be looked at again
  SELECT coalesce(array_agg(x.tid)::text, '{}') AS tids
    FROM (SELECT unnest(p.tids) AS tid FROM picked p EXCEPT SELECT g.tid FROM gone g) x
   WHERE (SELECT count(*) FROM gone) < cardinality((SELECT p.tids FROM picked p))
)
SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, cardinality(p.tids) AS mine, (SELECT count(*) FROM gone) AS removed
     , true AS ok
     , set_config('prunectl.stayed', (SELECT y.tids FROM stayed y), true) AS stayed  -- of this transaction only
     , NULL::bigint AS edge
     , (SELECT coalesce(array_agg(x.tid)::text, '{}') FROM (SELECT e.tid AS tid FROM seen e EXCEPT SELECT g.tid FROM gone g) x) AS last
     , t.unusable, t.raised
  FROM tally t, picked p
-- $1: after
-- $2: passed
-- $3: limit
