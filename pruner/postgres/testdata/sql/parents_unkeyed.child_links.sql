DELETE FROM ONLY "public"."links" d
 WHERE d.ctid = ANY (ARRAY(SELECT c.ctid
          FROM ONLY "public"."pages" p CROSS JOIN LATERAL (SELECT c.ctid FROM (SELECT c.ctid FROM ONLY "public"."links" c WHERE c."page_id" = p."id" OFFSET 0) c) c
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[])))  -- by address: a Tid Scan under every plan
