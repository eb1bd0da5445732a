DELETE FROM ONLY "Odd.One"."Run ""Events""" d
 WHERE d.ctid = ANY (current_setting('prunectl.picked')::tid[])  -- locked by this transaction, so still what was picked
   AND (d."Org's Id" = $1::text::pg_catalog.uuid) IS TRUE  -- whose, again
   AND (SELECT true FROM ONLY "Odd.One"."Notes --x" c WHERE c."k0" = d."Org's Id" AND c."tid" = d."Order" LIMIT 1) IS NULL  -- "fk; DROP TABLE \"x\"; --\nnew line $1": nothing refers to it, or it would take that along
-- $1: tenant
