-- +goose Up
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.connections (
  -- by their bytes: two texts that differ in anything are two, whatever the locale of the database, and
  -- an upgrade of the system's collations leaves the indexes as they should be
  tenant_id  text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL,
  kind       text        NOT NULL,
  name       text        NOT NULL,
  settings   jsonb       NOT NULL DEFAULT '{}',
  -- sealed by whoever gives it; null is none
  secret     bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  CONSTRAINT connections_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT connections_tenant_id_check CHECK (btrim(tenant_id) <> '' AND octet_length(tenant_id) <= {{.MaxText}}),
  CONSTRAINT connections_id_check CHECK (btrim(id) <> '' AND octet_length(id) <= {{.MaxText}}),
  CONSTRAINT connections_kind_check CHECK (btrim(kind) <> '' AND octet_length(kind) <= {{.MaxText}}),
  CONSTRAINT connections_name_check CHECK (btrim(name) <> '' AND octet_length(name) <= {{.MaxText}}),
  CONSTRAINT connections_settings_check CHECK (jsonb_typeof(settings) = 'object'),
  CONSTRAINT connections_secret_check CHECK (octet_length(secret) BETWEEN 1 AND {{.MaxSecret}}),
  CONSTRAINT connections_times_check CHECK (isfinite(created_at) AND isfinite(updated_at) AND isfinite(revoked_at)),
  CONSTRAINT connections_updated_check CHECK (updated_at >= created_at),
  -- what is revoked is not updated any more, and has no secret
  CONSTRAINT connections_revoked_check CHECK (revoked_at >= updated_at),
  CONSTRAINT connections_revoked_secret_check CHECK (revoked_at IS NULL OR secret IS NULL)
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
LOCK TABLE {{.Schema}}.connections IN ACCESS EXCLUSIVE MODE;
-- +goose StatementEnd
-- +goose StatementBegin
DO {{.Dollar}}
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM {{.Schema}}.connections) THEN
    RAISE EXCEPTION USING
      ERRCODE = {{literal .HoldsRows}},
      MESSAGE = {{literal (printf "%s.connections is not empty" .Schema)}},
      HINT = 'nothing was dropped; where the data is truly not needed, empty the table yourself and run it again';
  END IF;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
DROP TABLE {{.Schema}}.connections;
-- +goose StatementEnd
