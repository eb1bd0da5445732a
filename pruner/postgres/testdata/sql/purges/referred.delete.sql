DELETE FROM ONLY "public"."orders" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (d."tenant_id" = $1::text) IS TRUE  -- whose, again
   AND (SELECT true FROM ONLY "public"."lines" c WHERE c."order_id" = d."id" LIMIT 1) IS NULL  -- "lines_order_id_fkey": nothing refers to it, or it would take that along
-- $1: tenant
