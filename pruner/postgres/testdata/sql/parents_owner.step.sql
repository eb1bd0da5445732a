WITH gate AS MATERIALIZED (  -- one sweeper at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock(2066366732516717477) AS ok
), seen AS MATERIALIZED (  -- the next parents, the oldest first, and one more: where the next batch begins
  SELECT e.*, w.owed AS owed
    FROM (SELECT e.ctid AS tid, e."recorded_at" AS at, e."kind", e."parked", e."tenant_id", e."run_id", e."recorded_at", e."id", row_number() OVER (ORDER BY e."recorded_at", e."id") AS n FROM ONLY "public"."events" e
           WHERE e."recorded_at" < $1::timestamptz  -- cutoff
             AND e."recorded_at" >= $2::timestamptz  -- cursor
     AND (SELECT g.ok FROM gate g)
           ORDER BY e."recorded_at", e."id" LIMIT $3::int + 1) e
    LEFT JOIN LATERAL (SELECT true AS owed FROM ONLY "public"."deliveries" o WHERE o."event_id" = e."id" AND o."status" NOT IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text)
                          AND e.n <= $3::int AND (NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false)) AND e."parked" IS NOT TRUE LIMIT 1) w ON true
), keys AS MATERIALIZED (  -- distinct owners of the range, with their rows
  SELECT e."tenant_id" AS k0, e."run_id" AS k1, count(*) AS n
       , count(*) FILTER (WHERE NOT (NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false))) AS outside, count(*) FILTER (WHERE (NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false)) AND e."parked" IS TRUE) AS held, count(*) FILTER (WHERE (NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false)) AND e."parked" IS NOT TRUE) AS candidates
    FROM seen e
   WHERE e.n <= $3::int AND e.owed IS NULL
   GROUP BY e."tenant_id", e."run_id"
), owners AS MATERIALIZED (  -- got: terminal and locked against a reopening. ok: the state where not got
  SELECT k.*, l.got, s.ok FROM keys k
    LEFT JOIN LATERAL (SELECT true AS got FROM ONLY "public"."runs" r
                        WHERE r."tenant_id" = k.k0 AND r."id" = k.k1
                          AND r."status" IN ('completed'::pg_catalog.text, 'failed'::pg_catalog.text, 'cancelled'::pg_catalog.text)  -- guard
                          AND k.candidates > 0 FOR SHARE SKIP LOCKED) l ON true
    LEFT JOIN LATERAL (SELECT coalesce(r."status" IN ('completed'::pg_catalog.text, 'failed'::pg_catalog.text, 'cancelled'::pg_catalog.text), false) AS ok FROM ONLY "public"."runs" r
                        WHERE l.got IS NULL AND r."tenant_id" = k.k0 AND r."id" = k.k1 OFFSET 0) s ON true
), judged AS MATERIALIZED (  -- each parent is in one class
  SELECT e.*, false AS raised
       , CASE WHEN NOT (NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false)) THEN 'outside'
              WHEN false THEN 'unusable'
              WHEN (NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false)) AND e."parked" IS TRUE THEN 'held'
              WHEN NOT ((NOT coalesce(e."kind" = 'keep'::pg_catalog.text, false)) AND e."parked" IS NOT TRUE) THEN 'kept'  -- by a longer window, or it is another arm's
              WHEN e.owed THEN 'owed'
              WHEN o.got THEN 'due'
              WHEN o.ok IS NULL THEN 'orphan'
              WHEN NOT o.ok THEN 'held'
              ELSE 'locked' END AS class  -- its owner is terminal, but somebody holds it
    FROM seen e LEFT JOIN owners o ON o.k0 = e."tenant_id" AND o.k1 = e."run_id"
   WHERE e.n <= $3::int
), counted AS MATERIALIZED (  -- children of what is locked, counted up to what may go whole
  SELECT j.n AS n, 0::bigint AS kids
    FROM judged j WHERE j.class = 'due'  -- stepped over: nothing is locked
), fit AS MATERIALIZED (  -- what has room
  SELECT j.*, c.n IS NOT NULL AS got, c.kids AS kids
       , sum(1 + coalesce(c.kids, 0)) OVER (ORDER BY j.n) > $4::int
         AND NOT coalesce(c.n = (SELECT min(o.n) FROM counted o) AND 1 + c.kids <= $5::int, false) AS over
    FROM judged j LEFT JOIN counted c ON c.n = j.n
), cut AS MATERIALIZED (  -- the first row that is left
  SELECT coalesce(min(f.n), (SELECT count(*) FROM judged) + 1) AS n FROM fit f WHERE f.over
), done AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM fit f, cut WHERE f.n < cut.n
)
SELECT count(*) AS examined, count(*) FILTER (WHERE d.class = 'outside') AS outside, count(*) FILTER (WHERE d.class = 'unusable') AS unusable, count(*) FILTER (WHERE d.class = 'held') AS held, count(*) FILTER (WHERE d.class = 'owed') AS owed
     , count(*) FILTER (WHERE d.class = 'orphan') AS orphan, count(*) FILTER (WHERE d.class = 'locked' OR d.class = 'due' AND NOT d.got) AS locked
     , count(*) FILTER (WHERE d.raised) AS raised, count(*) FILTER (WHERE d.got) AS picked
     , (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.picked', coalesce(array_agg(d.tid) FILTER (WHERE d.got), '{}')::text, true)
     , (SELECT (extract(epoch FROM s.at) * 1000000)::bigint FROM seen s, cut WHERE s.n = cut.n) AS next  -- microseconds
     , (SELECT f.tid::text FROM fit f, cut WHERE f.n = cut.n AND f.got AND f.over AND 1 + f.kids > $5::int) AS wide  -- has more children than may go whole
     , (SELECT (extract(epoch FROM max(l.at)) * 1000000)::bigint FROM done l) AS at
     , (SELECT to_json(ARRAY[l."id"::text])::text FROM done l ORDER BY l.n DESC LIMIT 1) AS last
     , set_config('prunectl.passed', '{}', true)
  FROM done d
-- $1: cutoff
-- $2: after
-- $3: look
-- $4: limit
-- $5: whole
