-- component domain_events in schema "public", up

-- version 1 create_tables
BEGIN;
CREATE TABLE "public".domain_events (
  id                bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
  type              text        NOT NULL,
  version           integer     NOT NULL DEFAULT 1,
  payload           jsonb       NOT NULL,
  recorded_at       timestamptz NOT NULL DEFAULT now(),
  occurred_at       timestamptz NOT NULL DEFAULT now(),
  dedupe_key        text,
  suppressed        text,
  -- how long it is kept, copied from its declaration when it was recorded: a policy's
  -- word, a window of its own, or neither, which is the default window. A word that is
  -- not known goes by the default window too, so it is no constraint here
  retention_policy  text,
  retention_seconds integer,
  -- a dead letter keeps it; set and cleared by triggers, so that no sweep reads it in vain
  parked            boolean     NOT NULL DEFAULT false,
  -- in UTC, so that a day is a day and the expression immutable
  expires_at        timestamptz GENERATED ALWAYS AS
    (((recorded_at AT TIME ZONE 'UTC') + retention_seconds * interval '1 second') AT TIME ZONE 'UTC') STORED,
  CONSTRAINT domain_events_pkey PRIMARY KEY (id),
  CONSTRAINT domain_events_type_check CHECK (type <> ''),
  CONSTRAINT domain_events_version_check CHECK (version > 0),
  CONSTRAINT domain_events_window_check CHECK (retention_seconds > 0),
  CONSTRAINT domain_events_retention_check CHECK (retention_policy IS NULL OR retention_seconds IS NULL),
  -- an event that goes early forgets its key early, and a late repetition would be taken for new
  CONSTRAINT domain_events_dedupe_check CHECK (dedupe_key IS NULL OR retention_policy IS NULL OR retention_policy NOT IN ('SUCCEEDED', 'SETTLED')),
  CONSTRAINT domain_events_parked_check CHECK (NOT parked OR retention_policy IS NOT DISTINCT FROM 'SUCCEEDED')
);
CREATE UNIQUE INDEX domain_events_dedupe
  ON "public".domain_events (dedupe_key)
  WHERE dedupe_key IS NOT NULL;
CREATE TABLE "public".domain_event_deliveries (
  id            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
  event_id      bigint      NOT NULL,
  receiver      text        NOT NULL,
  target        text        NOT NULL DEFAULT '',
  status        text        NOT NULL DEFAULT 'pending',
  due_at        timestamptz NOT NULL DEFAULT now(),
  claimed_by    text,
  claimed_at    timestamptz,
  claimed_until timestamptz,
  attempts      integer     NOT NULL DEFAULT 0,
  last_error    text,
  finished_at   timestamptz,
  CONSTRAINT domain_event_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT domain_event_deliveries_key UNIQUE (event_id, receiver, target),
  CONSTRAINT domain_event_deliveries_event_fkey FOREIGN KEY (event_id) REFERENCES "public".domain_events (id),
  CONSTRAINT domain_event_deliveries_receiver_check CHECK (receiver <> ''),
  CONSTRAINT domain_event_deliveries_status_check CHECK (status IN ('pending', 'claimed', 'failed', 'succeeded', 'dead', 'orphaned', 'cancelled')),
  CONSTRAINT domain_event_deliveries_attempts_check CHECK (attempts >= 0),
  CONSTRAINT domain_event_deliveries_claim_check CHECK (
    num_nonnulls(claimed_by, claimed_at, claimed_until) = CASE status WHEN 'claimed' THEN 3 ELSE 0 END),
  CONSTRAINT domain_event_deliveries_finished_check CHECK ((finished_at IS NOT NULL) = (status IN ('succeeded', 'dead', 'orphaned', 'cancelled')))
);
CREATE TABLE "public".domain_event_receivers (
  receiver     text        NOT NULL,
  -- the newest success among deliveries that are gone, or no success any more
  last_success timestamptz NOT NULL,
  CONSTRAINT domain_event_receivers_pkey PRIMARY KEY (receiver)
);
CREATE FUNCTION "public".domain_events_park() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $prunectl$
BEGIN
  -- One at a time for each event. What others did to its deliveries before is seen
  -- by the next statement, which has a snapshot of its own. A dead letter that is
  -- deleted is not asked for: whoever sweeps deletes its event next.
  PERFORM FROM "public".domain_events e
    WHERE e.id = NEW.event_id AND e.retention_policy = 'SUCCEEDED'
      FOR NO KEY UPDATE;
  IF FOUND THEN
    UPDATE "public".domain_events e
       SET parked = NOT e.parked
     WHERE e.id = NEW.event_id
       AND e.retention_policy = 'SUCCEEDED'
       AND e.parked <> EXISTS (SELECT FROM "public".domain_event_deliveries d
                                WHERE d.event_id = NEW.event_id
                                  AND d.status IN ('dead', 'orphaned'));
  END IF;
  RETURN NULL;
END
$prunectl$;
CREATE FUNCTION "public".domain_events_remember_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $prunectl$
BEGIN
  -- in the order of the key, so that two who delete at once can not deadlock here
  INSERT INTO "public".domain_event_receivers AS r (receiver, last_success)
  SELECT g.receiver, max(g.finished_at)
    FROM gone g
   WHERE g.status = 'succeeded'
   GROUP BY g.receiver
   ORDER BY g.receiver
  ON CONFLICT (receiver) DO UPDATE SET last_success = excluded.last_success
   WHERE r.last_success < excluded.last_success;
  RETURN NULL;
END
$prunectl$;
CREATE FUNCTION "public".domain_events_remember_reopened() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $prunectl$
BEGIN
  INSERT INTO "public".domain_event_receivers AS r (receiver, last_success)
  VALUES (OLD.receiver, OLD.finished_at)
  ON CONFLICT (receiver) DO UPDATE SET last_success = excluded.last_success
   WHERE r.last_success < excluded.last_success;
  RETURN NULL;
END
$prunectl$;
-- they run as their owner, and a table of somebody else's could call them too
REVOKE ALL ON FUNCTION "public".domain_events_park(), "public".domain_events_remember_gone(), "public".domain_events_remember_reopened() FROM PUBLIC;
CREATE TRIGGER domain_event_deliveries_park_new
  AFTER INSERT ON "public".domain_event_deliveries
  FOR EACH ROW WHEN (NEW.status IN ('dead', 'orphaned'))
  EXECUTE FUNCTION "public".domain_events_park();
CREATE TRIGGER domain_event_deliveries_park
  AFTER UPDATE OF status ON "public".domain_event_deliveries
  FOR EACH ROW WHEN ((OLD.status IN ('dead', 'orphaned')) <> (NEW.status IN ('dead', 'orphaned')))
  EXECUTE FUNCTION "public".domain_events_park();
CREATE TRIGGER domain_event_deliveries_remember_gone
  AFTER DELETE ON "public".domain_event_deliveries
  REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT
  EXECUTE FUNCTION "public".domain_events_remember_gone();
CREATE TRIGGER domain_event_deliveries_remember_reopened
  AFTER UPDATE OF status ON "public".domain_event_deliveries
  FOR EACH ROW WHEN (OLD.status = 'succeeded' AND NEW.status <> 'succeeded')
  EXECUTE FUNCTION "public".domain_events_remember_reopened();
CREATE TABLE IF NOT EXISTS "public"."prunectl_domain_events_migrations" (
  version    bigint      NOT NULL PRIMARY KEY,
  name       text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO "public"."prunectl_domain_events_migrations" (version, name)
SELECT 1, 'create_tables';
COMMIT;

-- version 2 add_indexes, each statement by itself and not in a transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_events_default
  ON "public".domain_events (recorded_at, id)
  WHERE (retention_seconds IS NULL);
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_events_own
  ON "public".domain_events (expires_at, id)
  WHERE (retention_seconds IS NOT NULL);
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_events_policy
  ON "public".domain_events (retention_policy, recorded_at, id)
  WHERE ((retention_policy IS NOT NULL) AND (NOT parked));
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_events_parked
  ON "public".domain_events (recorded_at, id)
  WHERE parked;
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_event_deliveries_open
  ON "public".domain_event_deliveries (event_id, status)
  WHERE (status <> ALL (ARRAY['succeeded'::text, 'cancelled'::text]));
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_event_deliveries_due
  ON "public".domain_event_deliveries (due_at, id)
  WHERE (status = ANY (ARRAY['pending'::text, 'failed'::text]));
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_event_deliveries_claimed
  ON "public".domain_event_deliveries (claimed_until, id)
  WHERE (status = 'claimed'::text);
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_event_deliveries_dead
  ON "public".domain_event_deliveries (event_id, receiver)
  WHERE (status = ANY (ARRAY['dead'::text, 'orphaned'::text]));
CREATE INDEX CONCURRENTLY IF NOT EXISTS domain_event_deliveries_succeeded
  ON "public".domain_event_deliveries (receiver, finished_at)
  WHERE (status = 'succeeded'::text);
INSERT INTO "public"."prunectl_domain_events_migrations" (version, name)
SELECT 2, 'add_indexes'
 WHERE EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_events_default"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_events_own"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_events_policy"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_events_parked"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_event_deliveries_open"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_event_deliveries_due"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_event_deliveries_claimed"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_event_deliveries_dead"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."domain_event_deliveries_succeeded"'));
