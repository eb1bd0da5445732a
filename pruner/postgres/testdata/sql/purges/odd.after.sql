SELECT count(*) AS left, pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now()) AS xid
     , NULL::text AS passed
     , to_json(ARRAY[count(*) FILTER (WHERE x.by = 1)])::text AS kept  -- by each key
  FROM (SELECT CASE
                 WHEN (SELECT true FROM ONLY "Odd.One"."Notes --x" c WHERE c."k0" = p."Org's Id" AND c."tid" = p."Order" LIMIT 1) IS NOT NULL THEN 1  -- "fk; DROP TABLE \"x\"; --\nnew line $1"
                 ELSE 0 END AS by FROM ONLY "Odd.One"."Run ""Events""" p
         WHERE p.ctid = ANY (current_setting('prunectl.picked')::tid[]) OFFSET 0) x  -- each probe once
