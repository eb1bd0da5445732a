DELETE FROM ONLY "public"."deliveries" d
 WHERE d.ctid = ANY (ARRAY(SELECT c.ctid
          FROM ONLY "public"."events" p CROSS JOIN LATERAL (SELECT c.ctid FROM (SELECT c.ctid FROM ONLY "public"."deliveries" c WHERE c."event_id" = p."id" AND c."status" IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) OFFSET 0) c) c
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])))  -- by address: a Tid Scan under every plan
   AND (d."status" IN ('succeeded'::pg_catalog.text, 'dead'::pg_catalog.text) AND (SELECT true FROM ONLY "public"."attempts" c WHERE c."delivery_id" = d."id" LIMIT 1) IS NULL) IS TRUE  -- state, again
