-- component inbox_outbox in schema "inbox_outbox", up

-- version 1 create_tables
BEGIN;
DO $prunectl$
BEGIN
  -- asked first, because IF NOT EXISTS wants the right to create schemas also where there is nothing to create
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = 'inbox_outbox') THEN
    CREATE SCHEMA "inbox_outbox";
  END IF;
END
$prunectl$;
CREATE TABLE "inbox_outbox".inbox (
  handler      text        NOT NULL,
  event_id     text        NOT NULL,
  state        text        NOT NULL DEFAULT 'pending',
  lock_token   uuid,
  locked_until timestamptz,
  attempts     integer     NOT NULL DEFAULT 0,
  received_at  timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  CONSTRAINT inbox_pkey PRIMARY KEY (handler, event_id),
  CONSTRAINT inbox_handler_check CHECK (handler <> ''),
  CONSTRAINT inbox_event_id_check CHECK (event_id <> ''),
  CONSTRAINT inbox_state_check CHECK (state IN ('pending', 'completed')),
  CONSTRAINT inbox_attempts_check CHECK (attempts >= 0),
  CONSTRAINT inbox_completed_check CHECK ((state = 'completed') = (completed_at IS NOT NULL)),
  CONSTRAINT inbox_lock_check CHECK ((lock_token IS NULL) = (locked_until IS NULL)),
  CONSTRAINT inbox_unlocked_check CHECK (state <> 'completed' OR lock_token IS NULL)
);
CREATE TABLE "inbox_outbox".outbox (
  record_id     bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
  event_id      text        NOT NULL,
  topic         text        NOT NULL,
  key           text,
  headers       jsonb       NOT NULL DEFAULT '{}',
  body          jsonb       NOT NULL,
  -- when it may be claimed: under a claim, when that lapses. So what is ready is one range of
  -- one index, and what others have claimed is not read on the way to it
  available_at  timestamptz NOT NULL DEFAULT now(),
  claim_token   uuid,
  claimed_until timestamptz,
  attempts      integer     NOT NULL DEFAULT 0,
  created_at    timestamptz NOT NULL DEFAULT now(),
  delivered_at  timestamptz,
  CONSTRAINT outbox_pkey PRIMARY KEY (record_id),
  CONSTRAINT outbox_event_id_key UNIQUE (event_id),
  CONSTRAINT outbox_event_id_check CHECK (event_id <> ''),
  CONSTRAINT outbox_topic_check CHECK (topic <> ''),
  CONSTRAINT outbox_headers_check CHECK (jsonb_typeof(headers) = 'object'),
  CONSTRAINT outbox_attempts_check CHECK (attempts >= 0),
  CONSTRAINT outbox_claim_check CHECK ((claim_token IS NULL) = (claimed_until IS NULL)),
  CONSTRAINT outbox_available_check CHECK (available_at = claimed_until),
  CONSTRAINT outbox_delivered_check CHECK (delivered_at IS NULL OR claim_token IS NULL)
);
CREATE TABLE "inbox_outbox".leases (
  handler    text        NOT NULL,
  partition  text        NOT NULL,
  holder     text        NOT NULL,
  token      uuid        NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT leases_pkey PRIMARY KEY (handler, partition),
  CONSTRAINT leases_handler_check CHECK (handler <> ''),
  CONSTRAINT leases_holder_check CHECK (holder <> '')
);
CREATE TABLE "inbox_outbox".settings (
  -- there is one row, and it is true
  single      boolean     NOT NULL DEFAULT true,
  fingerprint text        NOT NULL,
  settings    jsonb       NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  recorded_by text        NOT NULL,
  CONSTRAINT settings_pkey PRIMARY KEY (single),
  CONSTRAINT settings_single_check CHECK (single),
  CONSTRAINT settings_fingerprint_check CHECK (fingerprint ~ '^[0-9a-f]{64}$')
);
CREATE INDEX inbox_ready
  ON "inbox_outbox".inbox (received_at, handler, event_id)
  WHERE (state = 'pending'::text);
CREATE INDEX outbox_ready
  ON "inbox_outbox".outbox (available_at, record_id)
  WHERE (delivered_at IS NULL);
CREATE INDEX inbox_retention
  ON "inbox_outbox".inbox (completed_at, handler, event_id)
  WHERE (state = 'completed'::text);
CREATE INDEX outbox_retention
  ON "inbox_outbox".outbox (delivered_at, record_id)
  WHERE (delivered_at IS NOT NULL);
CREATE INDEX leases_expiry
  ON "inbox_outbox".leases (expires_at, handler, partition);
CREATE TABLE IF NOT EXISTS "inbox_outbox"."prunectl_inbox_outbox_migrations" (
  version    bigint      NOT NULL PRIMARY KEY,
  name       text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO "inbox_outbox"."prunectl_inbox_outbox_migrations" (version, name)
SELECT 1, 'create_tables'
 WHERE EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"inbox_outbox"."inbox_ready"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"inbox_outbox"."outbox_ready"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"inbox_outbox"."inbox_retention"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"inbox_outbox"."outbox_retention"'))
   AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"inbox_outbox"."leases_expiry"'));
COMMIT;
