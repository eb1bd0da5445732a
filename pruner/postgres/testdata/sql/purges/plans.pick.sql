WITH gate AS MATERIALIZED (  -- one purge of a tenant at a time; the loser reads nothing
  SELECT pg_try_advisory_xact_lock($1::bigint) AS ok
), seen AS MATERIALIZED (  -- the next rows of the tenant
  SELECT e.ctid AS tid FROM ONLY "public"."plans" e
   WHERE e.ctid > $2::tid AND e.ctid < $3::tid  -- some pages of the table, in their order
     AND (e."plan" = $4::text::public.plan) IS TRUE  -- whose; a filter, since an index would give another order
     AND (SELECT g.ok FROM gate g)
   LIMIT $5::int
), mine AS MATERIALIZED (  -- those that nobody has locked, against changes and new references
  SELECT d.ctid AS tid FROM ONLY "public"."plans" d
   WHERE d.ctid = ANY (ARRAY(SELECT s.tid FROM seen s))
     AND (d."plan" = $4::text::public.plan) IS TRUE  -- whose, again
     FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM mine m) AS picked, (SELECT g.ok FROM gate g) AS ok
     , set_config('prunectl.picked', (SELECT coalesce(array_agg(m.tid), '{}')::text FROM mine m), true)
     , (SELECT max(s.tid)::text FROM seen s) AS last
     , pg_relation_size('"public"."plans"'::regclass) / current_setting('block_size')::bigint AS ends  -- its pages
-- $1: gate
-- $2: from
-- $3: until
-- $4: tenant
-- $5: limit
