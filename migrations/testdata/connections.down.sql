-- component connections in schema "public", down

-- version 1 create_table
BEGIN;
SET LOCAL lock_timeout = '5s';
LOCK TABLE "public".connections IN ACCESS EXCLUSIVE MODE;
DO $prunectl$
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM "public".connections) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'P9001',
      MESSAGE = '"public".connections is not empty',
      HINT = 'nothing was dropped; where the data is truly not needed, empty the table yourself and run it again';
  END IF;
END
$prunectl$;
DROP TABLE "public".connections;
DELETE FROM "public"."prunectl_connections_migrations" WHERE version = 1;
COMMIT;
