-- component run_events in schema "public", down

-- version 2 add_retention_index, each statement by itself and not in a transaction
DROP INDEX CONCURRENTLY IF EXISTS "public".run_events_retention;
DELETE FROM "public"."prunectl_run_events_migrations" WHERE version = 2;

-- version 1 create_tables
BEGIN;
SET LOCAL lock_timeout = '5s';
LOCK TABLE "public".runs, "public".run_events IN ACCESS EXCLUSIVE MODE;
DO $prunectl$
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM "public".run_events) OR EXISTS (SELECT FROM "public".runs) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'P9001',
      MESSAGE = '"public".runs and "public".run_events are not both empty',
      HINT = 'nothing was dropped; where the data is truly not needed, empty both tables yourself and run it again';
  END IF;
END
$prunectl$;
DROP TABLE "public".run_events;
DROP TABLE "public".runs;
DELETE FROM "public"."prunectl_run_events_migrations" WHERE version = 1;
COMMIT;
