SELECT count(*) FROM (
  SELECT FROM ONLY "public"."runs" e
   WHERE e."tenant_id" = $1::text  -- whose
   LIMIT $2::int) x
-- $1: tenant
-- $2: limit
