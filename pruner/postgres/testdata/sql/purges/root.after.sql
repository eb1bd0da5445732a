SELECT count(*) AS left, pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now()) AS xid
     , NULL::text AS passed
     , to_json(ARRAY[count(*) FILTER (WHERE x.by = 1), count(*) FILTER (WHERE x.by = 2)])::text AS kept  -- by each key
  FROM (SELECT CASE
                 WHEN (SELECT true FROM ONLY "public"."labels" c WHERE c."tenant" = p."id" LIMIT 1) IS NOT NULL THEN 1  -- "labels_tenant_fkey"
                 WHEN (SELECT true FROM ONLY "public"."seats" c WHERE c."tenant_id" = p."id" LIMIT 1) IS NOT NULL THEN 2  -- "seats_tenant_id_fkey"
                 ELSE 0 END AS by FROM ONLY "public"."tenants" p
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[]) OFFSET 0) x  -- each probe once
