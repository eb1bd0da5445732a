-- Five tables that hold rows of tenants: two whose key leads with the tenant, one with no index on that column, which has
-- another name there, one whose index on it settles no order, and one without the column, whose rows are the tenant's by
-- the order that they are of.
CREATE TABLE runs (tenant text NOT NULL, id bigint NOT NULL, PRIMARY KEY (tenant, id));
CREATE TABLE run_events (tenant text NOT NULL, run_id bigint NOT NULL, seq int NOT NULL, PRIMARY KEY (tenant, run_id, seq));
CREATE TABLE messages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, org text NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, tenant text NOT NULL);
CREATE TABLE order_lines (order_id bigint NOT NULL, nr int NOT NULL, PRIMARY KEY (order_id, nr));
-- How many rows each statement removed from which table, in which transaction.
CREATE TABLE removals (of text NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id(), n int NOT NULL);
CREATE FUNCTION note_removal() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO removals (of, n) SELECT TG_TABLE_NAME, count(*) FROM gone; RETURN NULL; END';
CREATE TRIGGER note AFTER DELETE ON runs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
CREATE TRIGGER note AFTER DELETE ON run_events REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
CREATE TRIGGER note AFTER DELETE ON messages REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
CREATE TRIGGER note AFTER DELETE ON orders REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
CREATE TRIGGER note AFTER DELETE ON order_lines REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
