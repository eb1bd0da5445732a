SELECT count(*) AS left, pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now()) AS xid
     , (SELECT coalesce(array_agg(d.ctid)::text, '{}') FROM ONLY "public"."marks" d WHERE d.ctid = ANY (current_setting('prunectl.passed')::tid[])) AS passed
     , '[]'::text AS kept
  FROM (SELECT FROM ONLY "public"."marks" p
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[]) OFFSET 0) x  -- each probe once
