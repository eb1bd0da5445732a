SELECT count(*), set_config('prunectl.picked', coalesce(array_agg(p.ctid), '{}')::text, true)
  FROM ONLY "public"."events" p WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])
   AND (SELECT true AS owed FROM ONLY "public"."deliveries" o WHERE o."event_id" = p."id" AND o."status" NOT IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) LIMIT 1) IS NULL  -- not owed, a probe each
