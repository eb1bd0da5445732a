DELETE FROM ONLY "public"."events" d
 WHERE current_setting('prunectl.empty') = 'yes'
   AND d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (SELECT true AS owed FROM ONLY "public"."deliveries" o WHERE o."event_id" = d."id" AND o."status" NOT IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) LIMIT 1) IS NULL  -- nothing is owed
