package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

// referencesSQL lists the foreign keys that point at a table, also as a partition of the one that the key is declared on.
// Of the keys of a partitioned table and of its partitions it has the first.
const referencesSQL = `
SELECT f.conname::text, n.nspname::text, c.relname::text, c.oid, f.confdeltype::text, c.relkind = 'p',
       (SELECT array_agg(a.attname::text ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY k(num, n) JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.num),
       (SELECT array_agg(a.attname::text ORDER BY k.n) FROM unnest(f.confkey) WITH ORDINALITY k(num, n) JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.num),
       EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
                WHERE i.indrelid = f.conrelid AND am.amname <> 'brin' AND i.indisvalid AND i.indnkeyatts >= cardinality(f.conkey)
                  AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) ~ '^\(+("[^"]+"|\w+) IS NOT NULL\)+$')
                  AND (SELECT array_agg(i.indkey[k.n]::int ORDER BY i.indkey[k.n]) FROM generate_series(0, cardinality(f.conkey) - 1) k(n))
                      = (SELECT array_agg(x::int ORDER BY x) FROM unnest(f.conkey) x)),
       has_schema_privilege(n.oid, 'USAGE'),
       (SELECT bool_and(has_column_privilege(f.conrelid, x, 'SELECT')) FROM unnest(f.conkey) x),
       CASE WHEN c.relkind IN ('r', 'p') THEN row_security_active(c.oid) ELSE false END,
       CASE WHEN c.relkind = 'p'
            THEN coalesce((SELECT sum(greatest(lc.reltuples, 0)) FROM pg_partition_tree(c.oid) l JOIN pg_class lc ON lc.oid = l.relid WHERE l.isleaf), 0)::float8
            ELSE c.reltuples::float8 END,
       CASE WHEN c.relkind = 'p' THEN 0 ELSE pg_relation_size(c.oid) END,
       EXISTS (SELECT FROM unnest(f.conkey, f.confkey) k(a, b) JOIN pg_attribute x ON x.attrelid = f.conrelid AND x.attnum = k.a JOIN pg_attribute y ON y.attrelid = f.confrelid AND y.attnum = k.b
                WHERE x.attcollation <> y.attcollation)
  FROM pg_constraint f
  JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE f.contype = 'f' AND f.confrelid = $1::oid
   AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = f.conparentid AND p.confrelid = f.confrelid)
 ORDER BY 2, 3, 1`

func readReferences(ctx context.Context, q query, t *table) ([]reference, error) {
	return all(ctx, q, referencesSQL, func(r pgx.CollectableRow) (k reference, err error) {
		var child, parent []string
		err = r.Scan(&k.name, &k.table.Schema, &k.table.Table, &k.oid, &k.onDelete, &k.partitioned, &child, &parent, &k.indexed, &k.canUse, &k.canSelect, &k.rlsActive, &k.rows, &k.bytes, &k.collations)
		for i := range child {
			k.pairs = append(k.pairs, policy.ChildKey{Parent: parent[i], Child: child[i]})
		}
		k.self = k.oid == t.oid
		return k, err
	}, t.oid)
}

// columns are those of the table that refers.
func (k reference) columns() (cols []string) {
	for _, p := range k.pairs {
		cols = append(cols, p.Child)
	}
	return cols
}

// action is what the key does when a row that is referred to goes; "" for none.
func (k reference) action() string {
	return map[string]string{"c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}[k.onDelete]
}

// checkPurgeKeys looks at every key that points at a table of the purge: the table that refers must be in the purge too,
// or be excluded and keep what it refers to.
func (i *PurgeInspection) checkPurgeKeys() {
	f := &i.findings
	excluded := func(n policy.Name) bool {
		return slices.ContainsFunc(i.Purge.Exclude, func(e policy.Exclusion) bool { return e.Table == n })
	}
	for n, s := range i.steps {
		i.checkForeignKeyOf(s, i.paths[n])
		for _, k := range s.refs {
			if k.self {
				s.spec.Self = k.name
			}
			if i.saidBefore(s) {
				continue
			}
			path, of := i.paths[n], s.table().name
			if k.collations {
				f.refuse("foreign key", path, "", "%s of %s compares two collations, which is planned, not in this version", k.name, k.table)
			}
			declared := slices.ContainsFunc(i.steps, func(o *removal) bool { return o.table().oid == k.oid })
			switch {
			case declared:
			case excluded(k.table) && k.action() != "":
				f.refuse("excluded", "exclude."+k.table.String(), "declare it among tables or as a child, or drop the key's action", "rows of %s are to stay, and %s would change them as rows of %s go (ON DELETE %s)", k.table, k.name, of, k.action())
			case excluded(k.table):
				f.warn("foreign key", path, "", "%s of %s, which is excluded: the rows of %s that it refers to stay, and are reported as stuck", k.name, k.table, of)
			default:
				f.refuse("foreign key", path, fmt.Sprintf("children: [{table: %s, key: {%s}}] of %s, or a table of its own before it, or %s", k.table, k.spell(), of, excludeFix(k.table)),
					"%s of %s refers to %s, and the purge does not name %s", k.name, k.table, of, k.table)
			}
			i.checkReferenceIndex(k, path, of)
		}
	}
}

// spell is a key as the policy file has it.
func (k reference) spell() string {
	var ps []string
	for _, p := range k.pairs {
		ps = append(ps, p.Parent+": "+p.Child)
	}
	return strings.Join(ps, ", ")
}

func excludeFix(n policy.Name) string { return fmt.Sprintf("exclude: {%s: \"why its rows stay\"}", n) }

// checkReferenceIndex refuses a key by which each row that goes would scan a large table.
func (i *PurgeInspection) checkReferenceIndex(k reference, path string, of policy.Name) {
	f := &i.findings
	if k.indexed {
		f.ok("foreign key", path, "%s of %s is asked before a row of %s goes", k.name, k.table, of)
		return
	}
	what := fmt.Sprintf("%s of %s (%s) has no index; each row removed from %s scans it", k.name, k.table, strings.Join(k.columns(), ", "), of)
	if small(k.rows, k.bytes) {
		f.warn("foreign key", path, createIndex(k.table, k.columns()), "%s, which is small now", what)
	} else {
		f.refuse("foreign key", path, createIndex(k.table, k.columns()), "%s", what)
	}
}

// checkForeignKeyOf warns of a child whose rows can be left without the row by which they are the tenant's.
func (i *PurgeInspection) checkForeignKeyOf(s *removal, path string) {
	if !s.child() {
		return
	}
	l, up := s.chain[len(s.chain)-1], s.chain[len(s.chain)-2].table
	for _, o := range i.steps {
		if o.table().oid != up.oid {
			continue
		}
		for _, k := range o.refs {
			if k.oid == l.table.oid && sameKey(k.pairs, l.key) {
				return
			}
		}
	}
	i.findings.warn("foreign key", path, "", "no foreign key leads from %s to %s by (%s): rows whose row of %s is gone already cannot be found", l.table.name, up.name, strings.Join(l.columns(), ", "), up.name)
}
