WITH seen AS MATERIALIZED (  -- the next parents, the oldest first, and one more: where the next batch begins
  SELECT e.*, w.owed AS owed
    FROM (SELECT e.ctid AS tid, e."recorded_at" AS at, e."recorded_at", e."id", row_number() OVER (ORDER BY e."recorded_at", e."id") AS n FROM ONLY "public"."events" e
           WHERE e."recorded_at" < $1::timestamptz  -- cutoff
             AND e."recorded_at" >= $2::timestamptz  -- cursor
           ORDER BY e."recorded_at", e."id" LIMIT $3::int + 1) e
    LEFT JOIN LATERAL (SELECT true AS owed FROM ONLY "public"."deliveries" o WHERE o."event_id" = e."id" AND o."status" NOT IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text)
                          AND e.n <= $3::int LIMIT 1) w ON true
), judged AS MATERIALIZED (  -- each parent is in one class
  SELECT e.*, false AS raised
       , CASE WHEN false THEN 'outside'
              WHEN false THEN 'unusable'
              WHEN false THEN 'held'
              WHEN NOT (true) THEN 'kept'  -- by a longer window, or it is another arm's
              WHEN e.owed THEN 'owed'
              ELSE 'due' END AS class
    FROM seen e
   WHERE e.n <= $3::int
), mine AS MATERIALIZED (  -- locked against a reopening and against new children, and as they are now
  SELECT d.ctid AS tid FROM ONLY "public"."events" d
   WHERE d.ctid = ANY (ARRAY(SELECT j.tid FROM judged j WHERE j.class = 'due'))
     AND (d."recorded_at" < $1::timestamptz  -- age, again
     AND d."recorded_at" >= $2::timestamptz
         ) IS TRUE
     FOR UPDATE SKIP LOCKED
), counted AS MATERIALIZED (  -- children of what is locked, counted up to what may go whole
  SELECT j.n AS n, (SELECT count(*) FROM (SELECT FROM (SELECT  FROM ONLY "public"."deliveries" c WHERE c."event_id" = j."id" OFFSET 0) c LIMIT $4::int) x) AS kids
    FROM mine m JOIN judged j ON j.tid = m.tid
), fit AS MATERIALIZED (  -- what has room
  SELECT j.*, c.n IS NOT NULL AS got, c.kids AS kids
       , sum(1 + coalesce(c.kids, 0)) OVER (ORDER BY j.n) > $5::int
         AND NOT coalesce(c.n = (SELECT min(o.n) FROM counted o) AND 1 + c.kids <= $4::int, false) AS over
    FROM judged j LEFT JOIN counted c ON c.n = j.n
), cut AS MATERIALIZED (  -- the first row that is left
  SELECT coalesce(min(f.n), (SELECT count(*) FROM judged) + 1) AS n FROM fit f WHERE f.over
), done AS MATERIALIZED (  -- what this batch examines
  SELECT f.* FROM fit f, cut WHERE f.n < cut.n
)
SELECT count(*) AS examined, count(*) FILTER (WHERE d.class = 'outside') AS outside, count(*) FILTER (WHERE d.class = 'unusable') AS unusable, count(*) FILTER (WHERE d.class = 'held') AS held, count(*) FILTER (WHERE d.class = 'owed') AS owed
     , count(*) FILTER (WHERE d.class = 'orphan') AS orphan, count(*) FILTER (WHERE d.class = 'locked' OR d.class = 'due' AND NOT d.got) AS locked
     , count(*) FILTER (WHERE d.raised) AS raised, count(*) FILTER (WHERE d.got) AS picked
     , true AS ok
     , set_config('prunectl.picked', coalesce(array_agg(d.tid) FILTER (WHERE d.got), '{}')::text, true)
     , (SELECT (extract(epoch FROM s.at) * 1000000)::bigint FROM seen s, cut WHERE s.n = cut.n) AS next  -- microseconds
     , (SELECT f.tid::text FROM fit f, cut WHERE f.n = cut.n AND f.got AND f.over AND 1 + f.kids > $4::int) AS wide  -- has more children than may go whole
     , (SELECT (extract(epoch FROM max(l.at)) * 1000000)::bigint FROM done l) AS at
     , (SELECT to_json(ARRAY[l."id"::text])::text FROM done l ORDER BY l.n DESC LIMIT 1) AS last
     , set_config('prunectl.passed', '{}', true)
  FROM done d
-- $1: cutoff
-- $2: after
-- $3: look
-- $4: whole
-- $5: limit
