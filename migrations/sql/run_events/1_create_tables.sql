-- +goose Up
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.runs (
  tenant_id     text        NOT NULL,
  id            text        NOT NULL,
  status        text        NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now(),
  -- the sequence given last: the sweep removes events, and no number is given twice
  last_sequence bigint      NOT NULL DEFAULT 0,
  CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT runs_status_check CHECK (status IN ({{range $i, $s := .States}}{{if $i}}, {{end}}{{literal $s}}{{end}}))
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.run_events (
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
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
SET LOCAL lock_timeout = '5s';
-- +goose StatementEnd
-- +goose StatementBegin
LOCK TABLE {{.Schema}}.runs, {{.Schema}}.run_events IN ACCESS EXCLUSIVE MODE;
-- +goose StatementEnd
-- +goose StatementBegin
DO {{.Dollar}}
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM {{.Schema}}.run_events) OR EXISTS (SELECT FROM {{.Schema}}.runs) THEN
    RAISE EXCEPTION USING
      ERRCODE = {{literal .HoldsRows}},
      MESSAGE = {{literal (printf "%s.runs and %s.run_events are not both empty" .Schema .Schema)}},
      HINT = 'nothing was dropped; where the data is truly not needed, empty both tables yourself and run it again';
  END IF;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
DROP TABLE {{.Schema}}.run_events;
-- +goose StatementEnd
-- +goose StatementBegin
DROP TABLE {{.Schema}}.runs;
-- +goose StatementEnd
