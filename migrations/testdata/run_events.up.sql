-- component run_events in schema "public", up

-- version 1 create_tables
BEGIN;
CREATE TABLE "public".runs (
  tenant_id     text        NOT NULL,
  id            text        NOT NULL,
  status        text        NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now(),
  -- the sequence given last: the sweep removes events, and no number is given twice
  last_sequence bigint      NOT NULL DEFAULT 0,
  CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT runs_status_check CHECK (status IN ('queued', 'running', 'waiting-for-question', 'waiting-for-approval', 'retry-pending', 'completed', 'failed', 'cancelled'))
);
CREATE TABLE "public".run_events (
  tenant_id  text        NOT NULL,
  run_id     text        NOT NULL,
  sequence   bigint      NOT NULL,
  type       text        NOT NULL,
  event      jsonb       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- no foreign key to runs: events whose run is gone are kept, and the sweep counts them
  CONSTRAINT run_events_pkey PRIMARY KEY (tenant_id, run_id, sequence),
  CONSTRAINT run_events_sequence_check CHECK (sequence > 0)
);
CREATE TABLE IF NOT EXISTS "public"."prunectl_run_events_migrations" (
  version    bigint      NOT NULL PRIMARY KEY,
  name       text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO "public"."prunectl_run_events_migrations" (version, name)
SELECT 1, 'create_tables';
COMMIT;

-- version 2 add_retention_index, each statement by itself and not in a transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS run_events_retention
  ON "public".run_events (created_at, tenant_id, run_id, sequence);
INSERT INTO "public"."prunectl_run_events_migrations" (version, name)
SELECT 2, 'add_retention_index'
 WHERE EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."run_events_retention"'));
