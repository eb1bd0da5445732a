DELETE FROM ONLY "public"."lines" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (SELECT true FROM ONLY "public"."orders" u1 WHERE u1."id" = d."order_id" AND (u1."tenant_id" = $1::text) IS TRUE LIMIT 1) IS TRUE  -- whose, again
   AND (SELECT true FROM ONLY "public"."parts" c WHERE c."line_id" = d."id" LIMIT 1) IS NULL  -- "parts_line_id_fkey": nothing refers to it, or it would take that along
-- $1: tenant
