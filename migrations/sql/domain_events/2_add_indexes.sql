-- +goose NO TRANSACTION

-- +goose Up
{{- range .Indexes}}
-- +goose StatementBegin
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{.Name}}
  ON {{$.Schema}}.{{.Table}} ({{join .Columns ", "}})
  WHERE {{.Where}};
-- +goose StatementEnd
{{- end}}

-- +goose Down
{{- range .Indexes}}
-- +goose StatementBegin
DROP INDEX CONCURRENTLY IF EXISTS {{$.Schema}}.{{.Name}};
-- +goose StatementEnd
{{- end}}
