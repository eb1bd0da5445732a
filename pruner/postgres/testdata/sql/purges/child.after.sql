SELECT count(*) AS left, pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now()) AS xid
     , NULL::text AS passed
     , to_json(ARRAY[count(*) FILTER (WHERE x.by = 1)])::text AS kept  -- by each key
  FROM (SELECT CASE
                 WHEN (SELECT true FROM ONLY "public"."parts" c WHERE c."line_id" = p."id" LIMIT 1) IS NOT NULL THEN 1  -- "parts_line_id_fkey"
                 ELSE 0 END AS by FROM ONLY "public"."lines" p
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[]) OFFSET 0) x  -- each probe once
