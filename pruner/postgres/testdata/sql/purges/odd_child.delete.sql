DELETE FROM ONLY "Odd.One"."Notes --x" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (SELECT true FROM ONLY "Odd.One"."Run ""Events""" u1 WHERE u1."Org's Id" = d."k0" AND u1."Order" = d."tid" AND (u1."Org's Id" = $1::text::pg_catalog.uuid) IS TRUE LIMIT 1) IS TRUE  -- whose, again
-- $1: tenant
