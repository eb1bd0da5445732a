SELECT count(*) AS left, count(*) FILTER (WHERE x.owed) AS owed
     , pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now()) AS xid
     , (SELECT coalesce(array_agg(d.ctid)::text, '{}') FROM ONLY "public"."pages" d WHERE d.ctid = ANY (current_setting('prunectl.passed')::tid[])) AS passed
     , count(*) FILTER (WHERE x.owed IS NULL AND x.kids) AS kids
  FROM (SELECT NULL::boolean AS owed, CASE WHEN current_setting('prunectl.empty') = 'yes' THEN ((SELECT true FROM ONLY "public"."links" c WHERE c."page_id" = p."id" LIMIT 1) IS NOT NULL OR (SELECT true FROM ONLY "public"."pins" c WHERE c."page_id" = p."id" LIMIT 1) IS NOT NULL) ELSE true END AS kids
          FROM ONLY "public"."pages" p WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[]) OFFSET 0) x  -- each probe once
