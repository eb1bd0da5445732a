DELETE FROM ONLY "public"."pages" d
 WHERE current_setting('prunectl.empty') = 'yes'
   AND d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (SELECT true FROM ONLY "public"."links" c WHERE c."page_id" = d."id" LIMIT 1) IS NULL  -- no child is left
   AND (SELECT true FROM ONLY "public"."pins" c WHERE c."page_id" = d."id" LIMIT 1) IS NULL  -- no child is left
