package pgxplan

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
)

// catalogSQL reads tables and indexes by their names. Parents are read from pg_inherits, which has those of partitions, of
// inheritance and of indexes; temporary tables are in the schema that EXPLAIN calls pg_temp.
const catalogSQL = `
WITH RECURSIVE wanted AS (
  SELECT w->>'Schema' AS schema, w->>'Name' AS name FROM json_array_elements($1::json) w
), found AS (
  SELECT c.oid, c.relkind, w.schema, c.relname, c.relam, c.reltuples, c.relpages
    FROM wanted w
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema OR w.schema = 'pg_temp' AND n.oid = pg_catalog.pg_my_temp_schema()
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
), parents AS (
  SELECT f.oid, i.inhparent FROM found f JOIN pg_catalog.pg_inherits i ON i.inhrelid = f.oid
  UNION
  SELECT p.oid, i.inhparent FROM parents p JOIN pg_catalog.pg_inherits i ON i.inhrelid = p.inhparent
)
SELECT json_build_object(
  'Name', json_build_object('Schema', f.schema, 'Name', f.relname),
  'Parents', (SELECT json_agg(json_build_object('Schema', n.nspname, 'Name', c.relname))
                FROM parents p JOIN pg_catalog.pg_class c ON c.oid = p.inhparent JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE p.oid = f.oid),
  'Analyzed', f.reltuples >= 0, 'Rows', greatest(f.reltuples, 0)::bigint, 'Pages', greatest(f.relpages, 0),
  'Method', (SELECT a.amname FROM pg_catalog.pg_am a WHERE a.oid = f.relam),
  'Columns', (SELECT json_agg(pg_catalog.pg_get_indexdef(f.oid, k, false) ORDER BY k)
                FROM pg_catalog.pg_index x, generate_series(1, x.indnkeyatts) k WHERE x.indexrelid = f.oid)), f.relkind
FROM found f`

// catalog reads what the plan's text does not say of its tables and indexes.
func catalog(ctx context.Context, conn *pgx.Conn, p *explaintest.Plan) (c explaintest.Catalog, err error) {
	names := map[explaintest.Name]bool{}
	p.Walk(func(n *explaintest.Node, above []*explaintest.Node) {
		schema := n.Schema
		for i := len(above) - 1; schema == "" && i >= 0; i-- {
			schema = above[i].Schema // of a bitmap index scan, the heap's above it
		}
		for _, name := range []string{n.Relation, n.Index} {
			if name != "" {
				names[explaintest.Name{Schema: schema, Name: name}] = true
			}
		}
	})
	wanted := []explaintest.Name{}
	for n := range names {
		wanted = append(wanted, n)
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return c, err
	}
	rows, err := run(ctx, conn, catalogSQL, string(text))
	if err != nil {
		return c, err
	}
	for _, row := range rows {
		switch kind := string(row[1]); kind {
		case "i", "I":
			var x explaintest.Index
			if err := json.Unmarshal(row[0], &x); err != nil {
				return c, err
			}
			c.Indexes = append(c.Indexes, x)
		default:
			var t explaintest.Table
			if err := json.Unmarshal(row[0], &t); err != nil {
				return c, err
			}
			c.Tables = append(c.Tables, t)
		}
	}
	return c, nil
}
