-- +goose Up
-- +goose StatementBegin
DO {{.Dollar}}
BEGIN
  -- asked first, because IF NOT EXISTS wants the right to create schemas also where there is nothing to create
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = {{literal .Name}}) THEN
    CREATE SCHEMA {{.Schema}};
  END IF;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.inbox (
  handler      text        NOT NULL,
  event_id     text        NOT NULL,
  state        text        NOT NULL DEFAULT {{literal .Pending}},
  lock_token   uuid,
  locked_until timestamptz,
  attempts     integer     NOT NULL DEFAULT 0,
  received_at  timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  CONSTRAINT inbox_pkey PRIMARY KEY (handler, event_id),
  CONSTRAINT inbox_handler_check CHECK (handler <> ''),
  CONSTRAINT inbox_event_id_check CHECK (event_id <> ''),
  CONSTRAINT inbox_state_check CHECK (state IN ({{.States}})),
  CONSTRAINT inbox_attempts_check CHECK (attempts >= 0),
  CONSTRAINT inbox_completed_check CHECK ((state = {{literal .Completed}}) = (completed_at IS NOT NULL)),
  CONSTRAINT inbox_lock_check CHECK ((lock_token IS NULL) = (locked_until IS NULL)),
  CONSTRAINT inbox_unlocked_check CHECK (state <> {{literal .Completed}} OR lock_token IS NULL)
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.outbox (
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
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.leases (
  handler    text        NOT NULL,
  partition  text        NOT NULL,
  holder     text        NOT NULL,
  token      uuid        NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT leases_pkey PRIMARY KEY (handler, partition),
  CONSTRAINT leases_handler_check CHECK (handler <> ''),
  CONSTRAINT leases_holder_check CHECK (holder <> '')
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.settings (
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
-- +goose StatementEnd
{{- range .Indexes}}
-- +goose StatementBegin
{{create . "CREATE INDEX" $.Schema}};
-- +goose StatementEnd
{{- end}}

-- +goose Down
-- +goose StatementBegin
SET LOCAL lock_timeout = '5s';
-- +goose StatementEnd
-- +goose StatementBegin
LOCK TABLE {{.Schema}}.inbox, {{.Schema}}.outbox, {{.Schema}}.leases, {{.Schema}}.settings IN ACCESS EXCLUSIVE MODE;
-- +goose StatementEnd
-- +goose StatementBegin
DO {{.Dollar}}
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM {{.Schema}}.inbox)
     OR EXISTS (SELECT FROM {{.Schema}}.outbox)
     OR EXISTS (SELECT FROM {{.Schema}}.leases)
     OR EXISTS (SELECT FROM {{.Schema}}.settings) THEN
    RAISE EXCEPTION USING
      ERRCODE = {{literal .HoldsRows}},
      MESSAGE = {{literal (printf "%s.inbox, %s.outbox, %s.leases and %s.settings are not all empty" .Schema .Schema .Schema .Schema)}},
      HINT = 'nothing was dropped; where the data is truly not needed, empty the four tables yourself and run it again';
  END IF;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
DROP TABLE {{.Schema}}.settings, {{.Schema}}.leases, {{.Schema}}.outbox, {{.Schema}}.inbox;
-- +goose StatementEnd
