DELETE FROM ONLY "public"."runs" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (d."tenant_id" = $1::text) IS TRUE  -- whose, again
-- $1: tenant
