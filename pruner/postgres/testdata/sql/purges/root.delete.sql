DELETE FROM ONLY "public"."tenants" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (d."id" = $1::text) IS TRUE  -- whose, again
   AND (SELECT true FROM ONLY "public"."labels" c WHERE c."tenant" = d."id" LIMIT 1) IS NULL  -- "labels_tenant_fkey": nothing refers to it, or it would take that along
   AND (SELECT true FROM ONLY "public"."seats" c WHERE c."tenant_id" = d."id" LIMIT 1) IS NULL  -- "seats_tenant_id_fkey": nothing refers to it, or it would take that along
-- $1: tenant
