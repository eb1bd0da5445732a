-- component inbox_outbox in schema "inbox_outbox", down

-- version 1 create_tables
BEGIN;
SET LOCAL lock_timeout = '5s';
LOCK TABLE "inbox_outbox".inbox, "inbox_outbox".outbox, "inbox_outbox".leases, "inbox_outbox".settings IN ACCESS EXCLUSIVE MODE;
DO $prunectl$
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM "inbox_outbox".inbox)
     OR EXISTS (SELECT FROM "inbox_outbox".outbox)
     OR EXISTS (SELECT FROM "inbox_outbox".leases)
     OR EXISTS (SELECT FROM "inbox_outbox".settings) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'P9001',
      MESSAGE = '"inbox_outbox".inbox, "inbox_outbox".outbox, "inbox_outbox".leases and "inbox_outbox".settings are not all empty',
      HINT = 'nothing was dropped; where the data is truly not needed, empty the four tables yourself and run it again';
  END IF;
END
$prunectl$;
DROP TABLE "inbox_outbox".settings, "inbox_outbox".leases, "inbox_outbox".outbox, "inbox_outbox".inbox;
DELETE FROM "inbox_outbox"."prunectl_inbox_outbox_migrations" WHERE version = 1;
COMMIT;
