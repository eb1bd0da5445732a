DELETE FROM ONLY "public"."events" d
 WHERE current_setting('prunectl.empty') = 'yes'
   AND d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (SELECT true FROM ONLY "public"."deliveries" c WHERE c."event_id" = d."id" LIMIT 1) IS NULL  -- no child is left
