package preflight

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/migrations"
)

// mutations are the changes of everything that the catalog says is there: the name of
// what is changed, and the statement, one a line. $1 is the schema. Nothing here knows
// a component.
const mutations = `
with tables as (
  select c.oid, c.relname, c.oid::regclass::text as t from pg_class c
   where c.relnamespace = (select oid from pg_namespace where nspname = $1) and c.relkind = 'r'
), columns as (
  select t.*, a.*, format('%s.%s', t.relname, a.attname) as name,
         exists (select from pg_index i where i.indrelid = t.oid and i.indisprimary and a.attnum = any (i.indkey)) as key
    from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
), functions as (
  select p.oid, p.oid::regprocedure::text as f, p.proname from pg_proc p where p.pronamespace = (select oid from pg_namespace where nspname = $1)
)
select relname::text, format('drop table %s cascade', t) from tables
union all select relname, format('alter table %s rename to else_where', t) from tables
union all select relname, format('create table aside.child () inherits (%s)', t) from tables
union all select relname, format('alter table %s enable row level security', t) from tables
union all select relname, format('update pg_class set relpersistence = %L where oid = %s', 'u', oid) from tables
union all select relname || '.mine', format('create policy mine on %s', t) from tables
union all select relname || '.mine', format('create rule mine as on update to %s do also notify mine', t) from tables
union all select relname || '.mine', format('create trigger mine after insert on %s execute function aside.nothing()', t) from tables
union all select relname || '.mine', format('alter table %s add constraint mine check (true)', t) from tables
union all select relname || '.mine', format('alter table %s add mine int not null default 0', t) from tables
union all select name, format('alter table %s drop %I cascade', t, attname) from columns
union all select name, format('alter table %s rename %I to else_where', t, attname) from columns
union all select name, format('alter table %s alter %I %s not null', t, attname, case when attnotnull then 'drop' else 'set' end) from columns
           where attidentity = '' and not key
union all select name, case when atthasdef then format('alter table %s alter %I drop default', t, attname)
                            else format('alter table %s alter %I set default %s', t, attname,
                                        case atttypid when 'timestamptz'::regtype then 'now()' when 'jsonb'::regtype then '''{}'''
                                                       when 'uuid'::regtype then 'gen_random_uuid()' else '''1''' end) end
            from columns where attidentity = '' and attgenerated = ''
union all select name, format('alter table %s alter %I drop identity', t, attname) from columns where attidentity <> ''
union all select name, format('alter table %s alter %I drop expression', t, attname) from columns where attgenerated <> ''
union all select name, format('update pg_attribute set atttypid = %s, atttypmod = 7 where attrelid = %s and attnum = %s', 'varchar'::regtype::oid, oid, attnum) from columns
union all select name, format('update pg_attribute set attcollation = %s where attrelid = %s and attnum = %s',
                                          case attcollation when '"C"'::regcollation then '"POSIX"'::regcollation else '"C"'::regcollation end::oid, oid, attnum) from columns
           where attcollation <> 0
union all select format('%s.%s', t.relname, k.conname), format('alter table %s drop constraint %I cascade', t, conname)
            from tables t join pg_constraint k on k.conrelid = t.oid and k.contype <> 'n'
union all select format('%s.%s', t.relname, k.conname), format('update pg_constraint set convalidated = false where oid = %s', k.oid)
            from tables t join pg_constraint k on k.conrelid = t.oid and k.contype in ('c', 'f')
union all select format('%s.mine of aside.referring', t.relname),
                 format('create table aside.referring as select from generate_series(1, 0); alter table aside.referring %s, add constraint mine foreign key (%s) references %s',
                        (select string_agg(format('add %I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ') from pg_attribute a where a.attrelid = t.oid and a.attnum = any (k.conkey)),
                        (select string_agg(format('%I', a.attname), ', ') from pg_attribute a where a.attrelid = t.oid and a.attnum = any (k.conkey)), t)
            from tables t join pg_constraint k on k.conrelid = t.oid and k.contype = 'p'
union all select format('%s.%s', t.relname, x.relname), format('drop index %s', x.oid::regclass)
            from tables t join pg_index i on i.indrelid = t.oid join pg_class x on x.oid = i.indexrelid
           where not exists (select from pg_constraint k where k.conindid = x.oid)
union all select format('%s.%s', t.relname, x.relname), format('update pg_index set %s where indexrelid = %s', change, x.oid)
            from tables t join pg_index i on i.indrelid = t.oid join pg_class x on x.oid = i.indexrelid,
                 unnest(array['indisvalid = false', 'indisready = false', 'indislive = false']) as change
union all select format('%s.%s', t.relname, x.relname), format('update pg_index set %s where indexrelid = %s', change, x.oid)
            from tables t join pg_index i on i.indrelid = t.oid join pg_class x on x.oid = i.indexrelid,
                 unnest(array['indisunique = not indisunique', 'indpred = null',
                              'indoption = (select string_agg((o # 3)::text, '' '')::int2vector from unnest(indoption::int2[]) o)']) as change
           where not exists (select from pg_constraint k where k.conindid = x.oid) and (change not like 'indpred%' or i.indpred is not null)
union all select format('%s.%s', t.relname, g.tgname), format(change, t, g.tgname)
            from tables t join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal,
                 unnest(array['drop trigger %2$I on %1$s', 'alter table %s disable trigger %I', 'alter table %s enable always trigger %I',
                              'alter trigger %2$I on %1$s rename to else_where']) as change
union all select f.f, format(change, f.f) from functions f,
                 unnest(array['drop function %s cascade', 'alter function %s security invoker', 'alter function %s reset all', 'alter function %s strict',
                              'grant execute on function %s to public', 'alter function %s rename to else_where']) as change
union all select f.f, format('update pg_proc set prosrc = prosrc || %L where oid = %s', 'x', f.oid) from functions f`

// Each thing of each component in public, dropped or altered or added to, is found,
// refused and named. What exactly is found is in the tables of drifts.
func TestEachChangeOfEachThingIsFound(t *testing.T) {
	for _, component := range migrations.Components() {
		t.Run(component, func(t *testing.T) {
			db := installed[component].New(t)
			db.Exec(t, `create schema aside; create function aside.nothing() returns trigger language plpgsql as 'begin return null; end'`)
			conn := db.Conn(t)
			ctx := bounded(t)
			type mutation struct{ name, sql string }
			var all []mutation
			rows, err := conn.Query(ctx, mutations, "public")
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var m mutation
				if err := rows.Scan(&m.name, &m.sql); err != nil {
					t.Fatal(err)
				}
				all = append(all, m)
			}
			if rows.Err() != nil {
				t.Fatal(rows.Err())
			}
			if len(all) < 100 {
				t.Errorf("only %d changes", len(all))
			}
			for _, m := range all {
				found(ctx, t, conn, component, m.name, m.sql)
			}
		})
	}
}

func found(ctx context.Context, t *testing.T, conn *pgx.Conn, component, name, sql string) {
	t.Helper()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx) // the next one begins on a connection that is fit or fails
	if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Errorf("%v\n%s", err, sql)
		return
	}
	r, err := Check(ctx, tx, component, "public")
	if err != nil {
		t.Errorf("%v\n%s", err, sql)
		return
	}
	for _, f := range r.Findings {
		if f.Result == Refused && (f.Name == name || strings.HasPrefix(f.Name, name+".")) {
			return
		}
	}
	// Without its ledger the component is not installed, and its tables are in the way.
	if strings.HasPrefix(name, ledger(component)) && r.State == NotInstalled && r.Err() != nil && len(r.Findings) > 0 {
		return
	}
	t.Errorf("not found: %s\n%s\n%s", name, sql, r)
}
