package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Everything here is read from the catalog, which every role may read. Names and
// definitions are compared as text, so the settings below decide what is read.

// settings are what the server's texts depend on, for the transaction only; that it
// writes nothing; that rows which a policy hides are an error and not a few rows less;
// and that nobody waits long for a lock. A shorter wait of the session's own stays.
const settings = `
SELECT pg_catalog.set_config(name, value, true)
  FROM (VALUES ('transaction_read_only', 'on'),
               ('search_path', 'pg_catalog, pg_temp'), -- all names but the catalog's are printed with their schema
               ('quote_all_identifiers', 'off'),
               ('standard_conforming_strings', 'on'),
               ('datestyle', 'ISO, YMD'),
               ('intervalstyle', 'postgres'),
               ('timezone', 'UTC'),
               ('extra_float_digits', '1'),
               ('bytea_output', 'hex'),
               ('row_security', 'off'),
               ('jit', 'off'), -- which takes longer than these queries do
               ('lock_timeout', (SELECT CASE WHEN s.setting::int BETWEEN 1 AND 5000 THEN s.setting ELSE '5000' END
                                   FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout'))) AS t (name, value)`

// ours are the relations of the component: $1 is the schema, $2 their names.
const ours = `
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1 AND c.relname = ANY ($2::text[])`

const selectTables = `
SELECT c.relname::text,
       CASE c.relpersistence WHEN 'u' THEN 'unlogged ' WHEN 't' THEN 'temporary ' ELSE '' END ||
       CASE c.relkind WHEN 'r' THEN CASE c.relpersistence WHEN 'p' THEN 'ordinary table' ELSE 'table' END
                      WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                      WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' WHEN 'I' THEN 'partitioned index'
                      WHEN 'c' THEN 'composite type' ELSE 'relation of kind ' || c.relkind::text END,
       coalesce((SELECT pg_catalog.string_agg(pg_catalog.format('%s %s.%s', w.word, pn.nspname, p.relname), ', ' ORDER BY w.word, pn.nspname, p.relname)
                   FROM pg_catalog.pg_inherits h
                   CROSS JOIN LATERAL (SELECT 'child of', h.inhparent WHERE h.inhrelid = c.oid
                                       UNION ALL
                                       SELECT 'parent of', h.inhrelid WHERE h.inhparent = c.oid) AS w (word, oid)
                   JOIN pg_catalog.pg_class p ON p.oid = w.oid
                   JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace), 'none'),
       CASE WHEN c.relrowsecurity THEN 'on' ELSE 'off' END || CASE WHEN c.relforcerowsecurity THEN ', forced' ELSE '' END` + ours + `
 ORDER BY c.relname`

const selectColumns = `
SELECT c.relname::text,
       a.attname::text,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       coalesce((SELECT pg_catalog.format('%I.%I', ln.nspname, l.collname)
                   FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace ln ON ln.oid = l.collnamespace
                  WHERE l.oid = a.attcollation AND l.oid <> t.typcollation), ''),
       CASE WHEN NOT a.attnotnull THEN 'nullable'
            -- a constraint in PostgreSQL 18, which then may be one that was not validated
            WHEN EXISTS (SELECT FROM pg_catalog.pg_constraint k
                          WHERE k.conrelid = c.oid AND k.contype = 'n' AND NOT k.convalidated AND k.conkey = ARRAY[a.attnum])
            THEN 'not null, not validated'
            ELSE 'not null' END,
       CASE a.attgenerated WHEN '' THEN coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') ELSE '' END,
       CASE a.attidentity WHEN '' THEN '' WHEN 'a' THEN 'always' ELSE 'by default' END ||
       coalesce((SELECT pg_catalog.format(', from %s to %s by %s%s', s.seqmin, s.seqmax, s.seqincrement, CASE WHEN s.seqcycle THEN ', in a cycle' ELSE '' END)
                   FROM pg_catalog.pg_depend o JOIN pg_catalog.pg_sequence s ON s.seqrelid = o.objid
                  WHERE o.classid = 'pg_catalog.pg_class'::regclass AND o.refclassid = 'pg_catalog.pg_class'::regclass
                    AND o.refobjid = c.oid AND o.refobjsubid = a.attnum AND o.deptype = 'i'), ''),
       CASE a.attgenerated WHEN '' THEN '' WHEN 's' THEN 'stored ' ELSE 'virtual ' END ||
       CASE a.attgenerated WHEN '' THEN '' ELSE coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') END,
       t.typtype = 'd'` + ours + `
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid -- a dropped column has none
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 ORDER BY c.relname, a.attnum`

const selectConstraints = `
SELECT c.relname::text,
       CASE WHEN k.conrelid = c.oid THEN k.conname::text ELSE pg_catalog.format('%s of %s.%s', k.conname, fn.nspname, f.relname) END,
       pg_catalog.regexp_replace(coalesce(pg_catalog.pg_get_constraintdef(k.oid), ''), ' NOT VALID$', ''),
       CASE WHEN NOT k.convalidated THEN 'not validated'
            WHEN NOT coalesce(i.indisvalid AND i.indisready AND i.indislive, true) THEN 'on an index that is not valid'
            WHEN EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgconstraint = k.oid AND g.tgenabled <> 'O') THEN 'not enforced: its triggers are not enabled'
            ELSE 'valid' END,
       k.conrelid <> c.oid` + ours + `
  JOIN pg_catalog.pg_constraint k ON k.conrelid = c.oid OR k.contype = 'f' AND k.confrelid = c.oid
  JOIN pg_catalog.pg_class f ON f.oid = k.conrelid
  JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace
  LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = k.conindid AND i.indrelid = c.oid AND k.contype IN ('p', 'u', 'x')
 WHERE k.contype IN ('p', 'u', 'f', 'c', 'x')
   AND (k.conrelid = c.oid OR NOT (f.relnamespace = c.relnamespace AND f.relname = ANY ($2::text[]))) -- once, and there with its own table
 ORDER BY c.relname, k.conname`

// An index is put together from its parts: pg_get_indexdef has names and storage
// parameters in between, and of one column only the expression.
const selectIndexes = `
SELECT c.relname::text,
       x.relname::text,
       CASE WHEN i.indisunique THEN 'unique ' ELSE '' END || m.amname || ' (' || k.keys || ')' || coalesce(' include (' || k.included || ')', '') ||
       CASE WHEN pg_catalog.to_jsonb(i) ->> 'indnullsnotdistinct' = 'true' THEN ' nulls not distinct' ELSE '' END || -- since PostgreSQL 15
       coalesce(' where ' || pg_catalog.pg_get_expr(i.indpred, i.indrelid), ''),
       i.indisunique,
       EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = c.oid AND k.contype IN ('p', 'u', 'x')),
       CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN 'valid' ELSE 'not valid' END` + ours + `
  JOIN pg_catalog.pg_index i ON i.indrelid = c.oid
  JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
  JOIN pg_catalog.pg_am m ON m.oid = x.relam
 CROSS JOIN LATERAL (
   SELECT pg_catalog.string_agg(e.text || e.how, ', ' ORDER BY a.attnum) FILTER (WHERE a.attnum <= i.indnkeyatts) AS keys,
          pg_catalog.string_agg(e.text, ', ' ORDER BY a.attnum) FILTER (WHERE a.attnum > i.indnkeyatts) AS included
     FROM pg_catalog.pg_attribute a
     JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    CROSS JOIN LATERAL (
      SELECT coalesce(pg_catalog.pg_get_indexdef(i.indexrelid, a.attnum, false), '') AS text,
             coalesce((SELECT pg_catalog.format(' collate %I.%I', ln.nspname, l.collname)
                         FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace ln ON ln.oid = l.collnamespace
                        WHERE l.oid = i.indcollation[a.attnum - 1] AND l.oid <> t.typcollation), '') ||
             coalesce((SELECT ' ' || o.opcname FROM pg_catalog.pg_opclass o WHERE o.oid = i.indclass[a.attnum - 1] AND NOT o.opcdefault), '') ||
             coalesce(' (' || pg_catalog.array_to_string(a.attoptions, ', ') || ')', '') ||
             coalesce((ARRAY['', ' desc nulls last', ' nulls first', ' desc'])[i.indoption[a.attnum - 1] + 1], '') AS how) AS e
    WHERE a.attrelid = i.indexrelid AND a.attnum > 0) AS k
 ORDER BY c.relname, x.relname`

const selectTriggers = `
SELECT c.relname::text,
       g.tgname::text,
       coalesce(pg_catalog.pg_get_triggerdef(g.oid), ''),
       CASE g.tgenabled WHEN 'O' THEN 'enabled' WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'enabled for replicas only' ELSE 'enabled always' END` + ours + `
  JOIN pg_catalog.pg_trigger g ON g.tgrelid = c.oid AND NOT g.tgisinternal
 ORDER BY c.relname, g.tgname`

const selectPolicies = `
SELECT c.relname::text,
       p.polname::text,
       pg_catalog.format('%s for %s to %s%s%s',
         CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
         CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN 'delete' ELSE 'all' END,
         (SELECT pg_catalog.string_agg(CASE r.oid WHEN 0 THEN 'public' ELSE coalesce(pg_catalog.quote_ident(u.rolname), '?') END, ', ' ORDER BY u.rolname)
            FROM pg_catalog.unnest(p.polroles) AS r (oid) LEFT JOIN pg_catalog.pg_roles u ON u.oid = r.oid),
         ' using (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')',
         ' with check (' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')')` + ours + `
  JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
 ORDER BY c.relname, p.polname`

const selectRules = `
SELECT c.relname::text,
       r.rulename::text,
       coalesce(pg_catalog.pg_get_ruledef(r.oid), '') || CASE r.ev_enabled WHEN 'O' THEN '' ELSE ' (not enabled as made)' END` + ours + `
  JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid AND c.relkind = 'r'
 ORDER BY c.relname, r.rulename`

// $2 are the names of the contract's functions, without arguments.
const selectFunctions = `
SELECT p.proname || '(' || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')',
       coalesce(pg_catalog.pg_get_function_result(p.oid), ''),
       l.lanname::text,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END ||
       CASE WHEN p.proisstrict THEN ', strict' ELSE '' END ||
       CASE WHEN p.proleakproof THEN ', leakproof' ELSE '' END ||
       CASE p.proparallel WHEN 's' THEN ', parallel safe' WHEN 'r' THEN ', parallel restricted' ELSE '' END,
       CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END,
       coalesce((SELECT pg_catalog.string_agg(s, '; ' ORDER BY s COLLATE pg_catalog."C") FROM pg_catalog.unnest(p.proconfig) AS s), 'none'),
       CASE WHEN EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) AS a
                          WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE')
            THEN 'may execute' ELSE 'may not execute' END,
       p.prosrc
  FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace AND n.nspname = $1
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.proname = ANY ($2::text[])
 ORDER BY p.proname`

// asker asks in one transaction, and leaves no prepared statement behind, for
// poolers.
type asker struct {
	tx   pgx.Tx
	mode pgx.QueryExecMode
}

func ask(tx pgx.Tx) asker {
	if tx.Conn().Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return asker{tx, pgx.QueryExecModeSimpleProtocol}
	}
	return asker{tx, pgx.QueryExecModeExec}
}

func (a asker) row(ctx context.Context, sql string, args ...any) pgx.Row {
	return a.tx.QueryRow(ctx, sql, append([]any{a.mode}, args...)...)
}

// each calls scan for each row.
func (a asker) each(ctx context.Context, sql string, scan func(pgx.CollectableRow) error, args ...any) error {
	rows, err := a.tx.Query(ctx, sql, append([]any{a.mode}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// read returns what the schema has under these names of relations and functions, also
// functions of such a name that take other arguments.
func (a asker) read(ctx context.Context, schema string, tables, functions []string) (contract, error) {
	var c contract
	err := a.each(ctx, selectTables, func(row pgx.CollectableRow) error {
		var t table
		err := row.Scan(&t.Name, &t.Kind, &t.Inheritance, &t.RowSecurity)
		c.Tables = append(c.Tables, t)
		return err
	}, schema, tables)
	if err != nil {
		return c, err
	}
	for _, q := range []struct {
		sql  string
		scan func(row pgx.CollectableRow, name *string) (add func(*table), err error)
	}{
		{selectColumns, func(row pgx.CollectableRow, name *string) (func(*table), error) {
			var x column
			err := row.Scan(name, &x.Name, &x.Type, &x.Collation, &x.Nullability, &x.Default, &x.Identity, &x.Generated, &x.Domain)
			return func(t *table) { t.Columns = append(t.Columns, x) }, err
		}},
		{selectConstraints, func(row pgx.CollectableRow, name *string) (func(*table), error) {
			var x constraint
			err := row.Scan(name, &x.Name, &x.Definition, &x.State, &x.Outside)
			return func(t *table) { t.Constraints = append(t.Constraints, x) }, err
		}},
		{selectIndexes, func(row pgx.CollectableRow, name *string) (func(*table), error) {
			var x index
			err := row.Scan(name, &x.Name, &x.Definition, &x.Unique, &x.Constraint, &x.State)
			return func(t *table) { t.Indexes = append(t.Indexes, x) }, err
		}},
		{selectTriggers, func(row pgx.CollectableRow, name *string) (func(*table), error) {
			var x trigger
			err := row.Scan(name, &x.Name, &x.Definition, &x.State)
			return func(t *table) { t.Triggers = append(t.Triggers, x) }, err
		}},
		{selectPolicies, func(row pgx.CollectableRow, name *string) (func(*table), error) {
			var x definition
			err := row.Scan(name, &x.Name, &x.Definition)
			return func(t *table) { t.Policies = append(t.Policies, x) }, err
		}},
		{selectRules, func(row pgx.CollectableRow, name *string) (func(*table), error) {
			var x definition
			err := row.Scan(name, &x.Name, &x.Definition)
			return func(t *table) { t.Rules = append(t.Rules, x) }, err
		}},
	} {
		err := a.each(ctx, q.sql, func(row pgx.CollectableRow) error {
			var name string
			add, err := q.scan(row, &name)
			if i := slices.IndexFunc(c.Tables, func(t table) bool { return t.Name == name }); i >= 0 {
				add(&c.Tables[i])
			}
			return err
		}, schema, tables)
		if err != nil {
			return c, err
		}
	}
	names := []string{}
	for _, f := range functions {
		name, _, _ := strings.Cut(f, "(")
		names = append(names, name)
	}
	err = a.each(ctx, selectFunctions, func(row pgx.CollectableRow) error {
		var f function
		err := row.Scan(&f.Name, &f.Returns, &f.Language, &f.Attributes, &f.Security, &f.Settings, &f.Public, &f.Body)
		c.Functions = append(c.Functions, f)
		return err
	}, schema, names)
	return c, err
}
