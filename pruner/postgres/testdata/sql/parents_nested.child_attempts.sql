DELETE FROM ONLY "public"."attempts" d
 WHERE d.ctid = ANY (ARRAY(SELECT c.ctid
          FROM ONLY "public"."events" p CROSS JOIN LATERAL (SELECT c.ctid FROM (SELECT c1."id" FROM ONLY "public"."deliveries" c1 WHERE c1."event_id" = p."id" OFFSET 0) c1 CROSS JOIN LATERAL (SELECT c.ctid FROM ONLY "public"."attempts" c WHERE c."delivery_id" = c1."id" OFFSET 0) c) c
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])))  -- by address: a Tid Scan under every plan
