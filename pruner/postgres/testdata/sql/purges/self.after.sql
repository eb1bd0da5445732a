SELECT count(*) AS left, pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now()) AS xid
     , NULL::text AS passed
     , to_json(ARRAY[count(*) FILTER (WHERE x.by = 1)])::text AS kept  -- by each key
  FROM (SELECT CASE
                 WHEN (SELECT true FROM ONLY "public"."nodes" c WHERE c."up" = p."id" AND c.ctid <> p.ctid LIMIT 1) IS NOT NULL THEN 1  -- "nodes_up_fkey"
                 ELSE 0 END AS by FROM ONLY "public"."nodes" p
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[]) OFFSET 0) x  -- each probe once
