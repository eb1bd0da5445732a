DELETE FROM ONLY "public"."nodes" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (d."tenant_id" = $1::text) IS TRUE  -- whose, again
   AND (SELECT true FROM ONLY "public"."nodes" c WHERE c."up" = d."id" AND c.ctid <> d.ctid LIMIT 1) IS NULL  -- "nodes_up_fkey": nothing refers to it, or it would take that along
-- $1: tenant
