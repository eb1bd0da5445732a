-- component domain_events in schema "public", down

-- version 2 add_indexes, each statement by itself and not in a transaction
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_events_default;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_events_own;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_events_policy;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_events_parked;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_event_deliveries_open;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_event_deliveries_due;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_event_deliveries_claimed;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_event_deliveries_dead;
DROP INDEX CONCURRENTLY IF EXISTS "public".domain_event_deliveries_succeeded;
DELETE FROM "public"."prunectl_domain_events_migrations" WHERE version = 2;

-- version 1 create_tables
BEGIN;
SET LOCAL lock_timeout = '5s';
LOCK TABLE "public".domain_events, "public".domain_event_deliveries, "public".domain_event_receivers IN ACCESS EXCLUSIVE MODE;
DO $prunectl$
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM "public".domain_events)
     OR EXISTS (SELECT FROM "public".domain_event_deliveries)
     OR EXISTS (SELECT FROM "public".domain_event_receivers) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'P9001',
      MESSAGE = '"public".domain_events, "public".domain_event_deliveries and "public".domain_event_receivers are not all empty',
      HINT = 'nothing was dropped; where the data is truly not needed, empty the three tables yourself and run it again';
  END IF;
END
$prunectl$;
DROP TABLE "public".domain_event_receivers, "public".domain_event_deliveries, "public".domain_events;
DROP FUNCTION "public".domain_events_park(), "public".domain_events_remember_gone(), "public".domain_events_remember_reopened();
DELETE FROM "public"."prunectl_domain_events_migrations" WHERE version = 1;
COMMIT;
