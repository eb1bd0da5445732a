SELECT count(*) FROM (
  SELECT FROM (SELECT e."id" AS r0 FROM ONLY "public"."orders" e WHERE e."tenant_id" = $1::text) p
   CROSS JOIN LATERAL (SELECT x."id" AS r0 FROM ONLY "public"."lines" x WHERE x."order_id" = p.r0 OFFSET 0) c1
   CROSS JOIN LATERAL (SELECT true FROM ONLY "public"."parts" x WHERE x."line_id" = c1.r0 OFFSET 0) c2
   LIMIT $2::int) x
-- $1: tenant
-- $2: limit
