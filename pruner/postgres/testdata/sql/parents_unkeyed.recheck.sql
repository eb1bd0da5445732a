SELECT count(*), set_config('prunectl.picked', coalesce(array_agg(p.ctid), '{}')::text, true)
  FROM ONLY "public"."pages" p WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])
   AND (SELECT true AS owed FROM ONLY "public"."pins" o WHERE o."page_id" = p."id" LIMIT 1) IS NULL  -- not owed, a probe each
