SELECT count(*) FROM (
  SELECT FROM ONLY "public"."logs" e
   WHERE e."org" = $1::text  -- whose
   LIMIT $2::int) x
-- $1: tenant
-- $2: limit
