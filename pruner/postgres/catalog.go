package postgres

import (
	"context"
	"errors"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

// table is what the catalog says of one relation.
type table struct {
	name       policy.Name
	oid        uint32
	kind       string // pg_class.relkind
	method     string // access method
	parent     bool   // other tables inherit from it
	rows       float64
	bytes      int64
	rlsActive  bool // row security would filter what this role sees
	identity   string
	hasKey     bool // a primary key, for the replica identity
	published  []string
	columns    []column
	indexes    []index
	owner      string
	columnsBy  map[string]int
	canUpdate  bool // UPDATE on some column: what FOR UPDATE and FOR SHARE need
	canSelect  bool // SELECT on the whole table: what reading ctid needs
	canDelete  bool
	canUse     bool // USAGE on the schema
	statistics bool // track_counts
}

// column is a column and its type as it is written in a cast, schema and all.
type column struct {
	name      string
	num       int
	typ       string
	typname   string // for messages: format_type
	base      uint32 // the type's oid, a domain's base type
	notNull   bool
	collation uint32
	enum      []string // the labels, for an enum
	generated string   // the expression of a stored generated column, "" for any other
	canSelect bool
}

// index is one index of a table.
type index struct {
	name       string
	oid        uint32
	method     string
	columns    []string // key columns in order, "" for an expression
	desc       []bool
	collations []uint32
	valid      bool // valid, ready and live
	unique     bool
	immediate  bool
	predicate  string // "" for none
}

func (t *table) column(name string) (column, bool) {
	i, ok := t.columnsBy[name]
	if !ok {
		return column{}, false
	}
	return t.columns[i], true
}

var quotedText = regexp.MustCompile(`'(?:[^']|'')*'`)

// shape is what the choice of arms needs to know of the index. The columns of a predicate are found by their names in its
// text: that a name stands in a string would do no harm, since the planner has the last word.
func (x index) shape(t *table) policy.Index {
	out := policy.Index{Name: x.name, Columns: x.columns}
	text := quotedText.ReplaceAllString(x.predicate, "")
	for _, c := range t.columns {
		if regexp.MustCompile(`(^|[^\w"$])(` + regexp.QuoteMeta(c.name) + `|` + regexp.QuoteMeta(ident(c.name)) + `)([^\w"$]|$)`).MatchString(text) {
			out.Where = append(out.Where, c.name)
		}
	}
	return out
}

// Each catalog query takes the relation by its exact name or its oid, and never needs a right on the relation itself.
const (
	tableSQL = `
SELECT c.oid, c.relkind::text, coalesce(a.amname, ''),
       EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid),
       c.reltuples::float8,
       CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) ELSE 0 END,
       CASE WHEN c.relkind = 'r' THEN row_security_active(c.oid) ELSE false END,
       c.relreplident::text,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident)),
       coalesce((SELECT array_agg(p.pubname::text ORDER BY p.pubname) FROM pg_publication p WHERE p.pubdelete
                  AND EXISTS (SELECT FROM pg_publication_tables pt WHERE pt.pubname = p.pubname AND pt.schemaname = n.nspname AND pt.tablename = c.relname)), '{}'),
       pg_get_userbyid(c.relowner)::text,
       has_any_column_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'DELETE'),
       has_schema_privilege(n.oid, 'USAGE'),
       current_setting('track_counts')::bool
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am a ON a.oid = c.relam
 WHERE n.nspname = $1::text AND c.relname = $2::text`

	columnsSQL = `
SELECT a.attname::text, a.attnum::int, quote_ident(bn.nspname) || '.' || quote_ident(b.typname), format_type(a.atttypid, a.atttypmod), b.oid,
       a.attnotnull, a.attcollation,
       coalesce((SELECT array_agg(l.enumlabel::text ORDER BY l.enumsortorder) FROM pg_enum l WHERE l.enumtypid = b.oid), '{}'),
       CASE WHEN a.attgenerated = 's' THEN coalesce((SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum), '') ELSE '' END,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT')
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
  JOIN pg_namespace bn ON bn.oid = b.typnamespace
 WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum`

	indexesSQL = `
SELECT ic.relname::text, i.indexrelid, am.amname::text, i.indisvalid AND i.indisready AND i.indislive, i.indisunique, i.indimmediate,
       coalesce(pg_get_expr(i.indpred, i.indrelid), ''),
       (SELECT array_agg(coalesce(a.attname::text, '') ORDER BY k.n)
          FROM generate_series(0, i.indnkeyatts - 1) k(n)
          LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n] AND i.indkey[k.n] > 0),
       (SELECT array_agg(i.indoption[k.n] & 1 = 1 ORDER BY k.n) FROM generate_series(0, i.indnkeyatts - 1) k(n)),
       (SELECT array_agg(i.indcollation[k.n] ORDER BY k.n) FROM generate_series(0, i.indnkeyatts - 1) k(n))
  FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
 WHERE i.indrelid = $1::oid
 ORDER BY ic.relname`
)

// readTable returns nil for a relation that does not exist.
func readTable(ctx context.Context, q query, n policy.Name) (*table, error) {
	t := &table{name: n, columnsBy: map[string]int{}}
	err := q.row(ctx, tableSQL, n.Schema, n.Table).Scan(&t.oid, &t.kind, &t.method, &t.parent, &t.rows, &t.bytes, &t.rlsActive, &t.identity, &t.hasKey,
		&t.published, &t.owner, &t.canUpdate, &t.canSelect, &t.canDelete, &t.canUse, &t.statistics)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.columns, err = all(ctx, q, columnsSQL, func(r pgx.CollectableRow) (c column, err error) {
		err = r.Scan(&c.name, &c.num, &c.typ, &c.typname, &c.base, &c.notNull, &c.collation, &c.enum, &c.generated, &c.canSelect)
		return c, err
	}, t.oid)
	if err != nil {
		return nil, err
	}
	for i, c := range t.columns {
		t.columnsBy[c.name] = i
	}
	t.indexes, err = all(ctx, q, indexesSQL, func(r pgx.CollectableRow) (x index, err error) {
		err = r.Scan(&x.name, &x.oid, &x.method, &x.valid, &x.unique, &x.immediate, &x.predicate, &x.columns, &x.desc, &x.collations)
		return x, err
	}, t.oid)
	return t, err
}

// foreignKey is a key of another table that points at the target, or at a table that a cascade from it reaches.
type foreignKey struct {
	name, table  string
	references   uint32
	oid          uint32 // of the referencing table
	columns      []string
	onDelete     string // pg_constraint.confdeltype: a, r, c, n, d
	deferrable   bool
	rows         float64
	bytes        int64
	indexed      bool
	referencedBy string // the referenced table's name
}

// small reports whether a table costs little to scan: by its statistics, or by its size where it was never analysed.
func small(rows float64, bytes int64) bool {
	return rows >= 0 && rows < smallRows || rows < 0 && bytes < smallBytes
}

// The thresholds of a table that is small.
const (
	smallRows  = 10_000
	smallBytes = 8 << 20
)

// keysSQL walks from the target along ON DELETE CASCADE over any number of tables, and lists the keys that point at each
// table it reaches. A key is served by a valid index that leads with its columns in any order, a partial one only where it
// leaves out nothing but nulls.
const keysSQL = `
WITH RECURSIVE reach (oid) AS (
  SELECT $1::oid
  UNION
  SELECT f.conrelid FROM pg_constraint f JOIN reach r ON f.confrelid = r.oid WHERE f.contype = 'f' AND f.confdeltype = 'c')
SELECT f.conname::text, n.nspname || '.' || c.relname, f.confrelid, f.conrelid,
       (SELECT array_agg(a.attname::text ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY k(num, n) JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.num),
       f.confdeltype::text, f.condeferrable,
       CASE WHEN c.relkind = 'p'
            THEN coalesce((SELECT sum(greatest(lc.reltuples, 0)) FROM pg_partition_tree(c.oid) l JOIN pg_class lc ON lc.oid = l.relid WHERE l.isleaf), 0)::float8
            ELSE c.reltuples::float8 END,
       CASE WHEN c.relkind = 'p' THEN 0 ELSE pg_relation_size(c.oid) END,
       EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
                WHERE i.indrelid = f.conrelid AND am.amname <> 'brin' AND i.indisvalid AND i.indnkeyatts >= cardinality(f.conkey)
                  AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) ~ '^\(+("[^"]+"|\w+) IS NOT NULL\)+$')
                  AND (SELECT array_agg(i.indkey[k.n]::int ORDER BY i.indkey[k.n]) FROM generate_series(0, cardinality(f.conkey) - 1) k(n))
                      = (SELECT array_agg(x::int ORDER BY x) FROM unnest(f.conkey) x)),
       rn.nspname || '.' || rc.relname
  FROM pg_constraint f
  JOIN reach r ON r.oid = f.confrelid
  JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class rc ON rc.oid = f.confrelid JOIN pg_namespace rn ON rn.oid = rc.relnamespace
 WHERE f.contype = 'f' AND f.conparentid = 0
 ORDER BY f.confrelid <> $1::oid, 2, 1`

func readKeys(ctx context.Context, q query, oid uint32) ([]foreignKey, error) {
	return all(ctx, q, keysSQL, func(r pgx.CollectableRow) (k foreignKey, err error) {
		err = r.Scan(&k.name, &k.table, &k.references, &k.oid, &k.columns, &k.onDelete, &k.deferrable, &k.rows, &k.bytes, &k.indexed, &k.referencedBy)
		return k, err
	}, oid)
}

// trigger is a user's trigger that fires when a row of the target is deleted.
type trigger struct {
	name      string
	before    bool
	row       bool
	condition string
}

const triggersSQL = `
SELECT tgname::text, tgtype & 2 = 2, tgtype & 1 = 1, coalesce(pg_get_triggerdef(oid), '')
  FROM pg_trigger WHERE tgrelid = $1::oid AND NOT tgisinternal AND tgtype & 8 = 8 AND tgenabled IN ('O', 'A') ORDER BY 1`

const rulesSQL = `SELECT rulename::text FROM pg_rewrite WHERE ev_class = $1::oid AND ev_type = '4' AND ev_enabled IN ('O', 'A') ORDER BY 1`

func readTriggers(ctx context.Context, q query, oid uint32) ([]trigger, error) {
	return all(ctx, q, triggersSQL, func(r pgx.CollectableRow) (t trigger, err error) {
		err = r.Scan(&t.name, &t.before, &t.row, &t.condition)
		return t, err
	}, oid)
}
