DELETE FROM ONLY "public"."parts" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (SELECT true FROM ONLY "public"."lines" u2 WHERE u2."id" = d."line_id" AND (SELECT true FROM ONLY "public"."orders" u1 WHERE u1."id" = u2."order_id" AND (u1."tenant_id" = $1::text) IS TRUE LIMIT 1) IS TRUE LIMIT 1) IS TRUE  -- whose, again
-- $1: tenant
