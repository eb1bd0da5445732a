-- component connections in schema "public", up

-- version 1 create_table
BEGIN;
CREATE TABLE "public".connections (
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
  CONSTRAINT connections_tenant_id_check CHECK (btrim(tenant_id) <> '' AND octet_length(tenant_id) <= 255),
  CONSTRAINT connections_id_check CHECK (btrim(id) <> '' AND octet_length(id) <= 255),
  CONSTRAINT connections_kind_check CHECK (btrim(kind) <> '' AND octet_length(kind) <= 255),
  CONSTRAINT connections_name_check CHECK (btrim(name) <> '' AND octet_length(name) <= 255),
  CONSTRAINT connections_settings_check CHECK (jsonb_typeof(settings) = 'object'),
  CONSTRAINT connections_secret_check CHECK (octet_length(secret) BETWEEN 1 AND 65536),
  CONSTRAINT connections_times_check CHECK (isfinite(created_at) AND isfinite(updated_at) AND isfinite(revoked_at)),
  CONSTRAINT connections_updated_check CHECK (updated_at >= created_at),
  -- what is revoked is not updated any more, and has no secret
  CONSTRAINT connections_revoked_check CHECK (revoked_at >= updated_at),
  CONSTRAINT connections_revoked_secret_check CHECK (revoked_at IS NULL OR secret IS NULL)
);
CREATE INDEX connections_listed
  ON "public".connections (tenant_id, created_at, id)
  WHERE (revoked_at IS NULL);
CREATE TABLE IF NOT EXISTS "public"."prunectl_connections_migrations" (
  version    bigint      NOT NULL PRIMARY KEY,
  name       text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO "public"."prunectl_connections_migrations" (version, name)
SELECT 1, 'create_table'
 WHERE EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass('"public"."connections_listed"'));
COMMIT;
