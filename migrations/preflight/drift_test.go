package preflight

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// drift is a change of what was migrated into the schema odd, and all that is found of
// it. In both, @ is the schema as the server quotes it. All changes are rolled back.
type drift struct {
	name string
	sql  string
	want []string
	// since is the first major version that can do it.
	since int
}

func TestDriftOfRunEvents(t *testing.T) { holds(t, "run_events", driftsOfRunEvents) }

func TestDriftOfDomainEvents(t *testing.T) { holds(t, "domain_events", driftsOfDomainEvents) }

func holds(t *testing.T, component string, drifts []drift) {
	db := installed[component].New(t)
	db.Exec(t, "create schema aside")
	pgtest.Role(t, "preflight_other", "nologin")
	conn := db.Conn(t)
	major := pgtest.Major(t)
	for _, d := range drifts {
		if d.since <= major {
			t.Run(d.name, func(t *testing.T) { d.hold(t, conn, component) })
		}
	}
}

func (d drift) hold(t *testing.T, conn *pgx.Conn, component string) {
	ctx := bounded(t)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx) // the next one begins on a connection that is fit or fails
	in := func(s string) string { return strings.ReplaceAll(s, "@", quote(odd)) }
	if d.sql != "" {
		if _, err := tx.Exec(ctx, in(d.sql), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v\n%s", err, in(d.sql))
		}
	}
	r := check(t, tx, component, odd)

	var got []string
	refused := false
	for _, f := range r.Findings {
		got = append(got, string(f.Result)+": "+f.what())
		refused = refused || f.Result == Refused
		if f.Do == "" {
			t.Errorf("%s: nothing to do", f.what())
		}
	}
	var want []string
	for _, w := range d.want {
		want = append(want, printable(in(w)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	state := map[bool]State{false: UpToDate, true: Drift}[refused]
	if r.State != state || errors.Is(r.Err(), ErrDrift) != refused || (r.Err() != nil) != refused {
		t.Errorf("state %s, error %v with findings refused: %t", r.State, r.Err(), refused)
	}
}

var driftsOfRunEvents = []drift{
	{name: "none"},
	{name: "what is left to those who run it", sql: `
alter table @.runs owner to preflight_other; alter table @.run_events set (fillfactor = 70, autovacuum_enabled = false);
grant all on @.runs to public; alter index @.run_events_retention set (fillfactor = 60);
alter table @.runs alter tenant_id set statistics 1000, alter id set storage external; alter table @.run_events replica identity full;
comment on table @.runs is 'x'; create statistics @.both (dependencies) on tenant_id, id from @.runs;
create table @.unrelated (id bigint primary key); create view @.events as select * from @.run_events;
cluster @.run_events using run_events_retention; create function @.run_events() returns int language sql as 'select 1'`},

	// tables
	{name: "table dropped", sql: `drop table @.runs`, want: []string{"refused: table runs: expected ordinary table, found nothing of this name"}},
	{name: "table renamed", sql: `alter table @.runs rename to run`, want: []string{"refused: table runs: expected ordinary table, found nothing of this name"}},
	{name: "ledger changed", sql: `alter table @.prunectl_run_events_migrations alter name drop not null`,
		want: []string{"refused: column prunectl_run_events_migrations.name, nullability: expected not null, found nullable"}},
	{name: "view in its place", sql: `alter table @.runs rename to hidden; create view @.runs as select * from @.hidden`,
		want: []string{"refused: table runs, kind: expected ordinary table, found view"}},
	{name: "partitioned table in its place", sql: `drop table @.runs; create table @.runs (tenant_id text) partition by list (tenant_id)`,
		want: []string{"refused: table runs, kind: expected ordinary table, found partitioned table"}},
	{name: "unlogged", sql: `alter table @.run_events set unlogged`, want: []string{"refused: table run_events, kind: expected ordinary table, found unlogged table"}},
	{name: "child", sql: `create table aside.base (); alter table @.run_events inherit aside.base`,
		want: []string{"refused: table run_events, inheritance: expected none, found child of aside.base"}},
	{name: "parent", sql: `create table aside.more () inherits (@.run_events)`,
		want: []string{"refused: table run_events, inheritance: expected none, found parent of aside.more"}},
	{name: "row security", sql: `alter table @.runs enable row level security`, want: []string{"refused: table runs, row security: expected off, found on"}},
	{name: "row security forced", sql: `alter table @.runs enable row level security, force row level security`,
		want: []string{"refused: table runs, row security: expected off, found on, forced"}},

	// columns
	{name: "type", sql: `alter table @.run_events alter created_at type timestamp`,
		want: []string{
			"refused: column run_events.created_at, type: expected timestamp with time zone, found timestamp without time zone",
		}},
	{name: "length", sql: `alter table @.run_events alter type type varchar(10)`, want: []string{"refused: column run_events.type, type: expected text, found character varying(10)"}},
	{name: "collation", sql: `alter table @.run_events alter type type text collate "C"`,
		want: []string{`refused: column run_events.type, collation: expected the type's own, found pg_catalog."C"`}},
	{name: "not null lost", sql: `alter table @.run_events alter created_at drop not null`, want: []string{"refused: column run_events.created_at, nullability: expected not null, found nullable"}},
	{name: "not null not validated", since: 18, sql: `alter table @.run_events alter event drop not null; alter table @.run_events add constraint extra not null event not valid`,
		want: []string{"refused: column run_events.event, nullability: expected not null, found not null, not validated"}},
	{name: "not null under another name", since: 18, sql: `alter table @.run_events alter event drop not null; alter table @.run_events add constraint extra not null event`},
	{name: "default lost", sql: `alter table @.run_events alter created_at drop default`, want: []string{"refused: column run_events.created_at, default: expected now(), found none"}},
	{name: "default changed", sql: `alter table @.runs alter last_sequence set default 1`, want: []string{"refused: column runs.last_sequence, default: expected 0, found 1"}},
	{name: "default added", sql: `alter table @.runs alter status set default 'queued'`, want: []string{"refused: column runs.status, default: expected none, found 'queued'::text"}},
	{name: "identity added", sql: `alter table @.runs alter last_sequence drop default, alter last_sequence add generated by default as identity`,
		want: []string{
			"refused: column runs.last_sequence, default: expected 0, found none",
			"refused: column runs.last_sequence, identity: expected none, found by default, from 1 to 9223372036854775807 by 1",
		}},
	{name: "column renamed", sql: `alter table @.run_events rename event to body`,
		want: []string{
			"refused: column run_events.event: expected jsonb NOT NULL, found nothing of this name",
			"refused: column run_events.body: expected nothing, found jsonb NOT NULL",
		}},
	{name: "column dropped", sql: `alter table @.runs drop updated_at`,
		want: []string{"refused: column runs.updated_at: expected timestamp with time zone NOT NULL DEFAULT now(), found nothing of this name"}},
	{name: "columns in another order", sql: `alter table @.runs drop updated_at; alter table @.runs add updated_at timestamptz not null default now()`,
		want: []string{"warning: table runs, order of columns: expected tenant_id, id, status, created_at, updated_at, last_sequence, found tenant_id, id, status, created_at, last_sequence, updated_at"}},
	{name: "nullable column added", sql: `alter table @.runs add note text collate "C"`, want: []string{`warning: column runs.note: expected nothing, found text COLLATE pg_catalog."C"`}},
	{name: "column added that must be filled", sql: `alter table @.runs add note text not null`, want: []string{"refused: column runs.note: expected nothing, found text NOT NULL"}},
	{name: "column added that fills itself", sql: `alter table @.runs add note text default 'x'`, want: []string{"refused: column runs.note: expected nothing, found text DEFAULT 'x'::text"}},
	{name: "identity column added", sql: `alter table @.runs add n int generated always as identity`,
		want: []string{"refused: column runs.n: expected nothing, found integer NOT NULL GENERATED ALWAYS AS IDENTITY"}},
	{name: "generated column added", sql: `alter table @.runs add n int generated always as (length(id)) stored`,
		want: []string{"refused: column runs.n: expected nothing, found integer GENERATED ALWAYS AS (length(id)) STORED"}},
	{name: "virtual column added", since: 18, sql: `alter table @.runs add n int generated always as (length(id)) virtual`,
		want: []string{"refused: column runs.n: expected nothing, found integer GENERATED ALWAYS AS (length(id)) VIRTUAL"}},
	{name: "column of a domain added", sql: `create domain aside.extra as text not null; alter table @.runs add n aside.extra`, want: []string{"refused: column runs.n: expected nothing, found aside.extra"}},

	// constraints
	{name: "primary key dropped", sql: `alter table @.runs drop constraint runs_pkey`,
		want: []string{"refused: constraint runs.runs_pkey: expected PRIMARY KEY (tenant_id, id), found nothing of this name"}},
	{name: "primary key in another order", sql: `alter table @.runs drop constraint runs_pkey, add constraint runs_pkey primary key (id, tenant_id)`,
		want: []string{"refused: constraint runs.runs_pkey, definition: expected PRIMARY KEY (tenant_id, id), found PRIMARY KEY (id, tenant_id)"}},
	{name: "primary key deferrable", sql: `alter table @.runs drop constraint runs_pkey, add constraint runs_pkey primary key (tenant_id, id) deferrable`,
		want: []string{"refused: constraint runs.runs_pkey, definition: expected PRIMARY KEY (tenant_id, id), found PRIMARY KEY (tenant_id, id) DEFERRABLE"}},
	{name: "primary key on an invalid index", sql: `update pg_index set indisvalid = false where indexrelid = $q$@.runs_pkey$q$::regclass`,
		want: []string{"refused: constraint runs.runs_pkey, state: expected valid, found on an index that is not valid"}},
	{name: "check dropped", sql: `alter table @.run_events drop constraint run_events_sequence_check`,
		want: []string{"refused: constraint run_events.run_events_sequence_check: expected CHECK ((sequence > 0)), found nothing of this name"}},
	{name: "check changed", sql: `alter table @.run_events drop constraint run_events_sequence_check, add constraint run_events_sequence_check check (sequence >= 0)`,
		want: []string{"refused: constraint run_events.run_events_sequence_check, definition: expected CHECK ((sequence > 0)), found CHECK ((sequence >= 0))"}},
	{name: "check not validated", sql: `alter table @.run_events drop constraint run_events_sequence_check, add constraint run_events_sequence_check check (sequence > 0) not valid`,
		want: []string{"refused: constraint run_events.run_events_sequence_check, state: expected valid, found not validated"}},
	{name: "check not enforced", since: 18, sql: `alter table @.run_events drop constraint run_events_sequence_check, add constraint run_events_sequence_check check (sequence > 0) not enforced`,
		want: []string{"refused: constraint run_events.run_events_sequence_check, definition: expected CHECK ((sequence > 0)), found CHECK ((sequence > 0)) NOT ENFORCED"}},
	{name: "check renamed", sql: `alter table @.run_events rename constraint run_events_sequence_check to positive`,
		want: []string{"warning: constraint run_events.run_events_sequence_check, name: expected run_events_sequence_check, found positive"}},
	{name: "check renamed and not validated", sql: `alter table @.run_events drop constraint run_events_sequence_check, add constraint positive check (sequence > 0) not valid`,
		want: []string{
			"warning: constraint run_events.run_events_sequence_check, name: expected run_events_sequence_check, found positive",
			"refused: constraint run_events.run_events_sequence_check, state: expected valid, found not validated",
		}},
	{name: "check added", sql: `alter table @.runs add constraint short check (length(id) < 9)`, want: []string{"refused: constraint runs.short: expected nothing, found CHECK ((length(id) < 9))"}},
	{name: "unique added", sql: `alter table @.runs add constraint once unique (id)`, want: []string{"refused: constraint runs.once: expected nothing, found UNIQUE (id)"}},
	{name: "exclusion added", sql: `alter table @.runs add constraint once exclude (id with =)`, want: []string{"refused: constraint runs.once: expected nothing, found EXCLUDE USING btree (id WITH =)"}},
	{name: "foreign key added", sql: `alter table @.run_events add constraint owner foreign key (tenant_id, run_id) references @.runs`,
		want: []string{"refused: constraint run_events.owner: expected nothing, found FOREIGN KEY (tenant_id, run_id) REFERENCES @.runs(tenant_id, id)"}},
	{name: "foreign key of another table's", sql: `create table aside.notes (tenant_id text, id text, constraint about foreign key (tenant_id, id) references @.runs)`,
		want: []string{"refused: constraint runs.about of aside.notes: expected nothing, found FOREIGN KEY (tenant_id, id) REFERENCES @.runs(tenant_id, id)"}},

	// indexes
	{name: "index dropped", sql: `drop index @.run_events_retention`,
		want: []string{"refused: index run_events.run_events_retention: expected btree (created_at, tenant_id, run_id, sequence), found nothing of this name"}},
	{name: "index renamed", sql: `alter index @.run_events_retention rename to "Other"`},
	{name: "index built again with parameters", sql: `drop index @.run_events_retention; create index run_events_retention on @.run_events (created_at, tenant_id, run_id, sequence) with (fillfactor = 70)`},
	{name: "index not valid", sql: `update pg_index set indisvalid = false where indexrelid = $q$@.run_events_retention$q$::regclass`,
		want: []string{"refused: index run_events.run_events_retention, state: expected valid, found not valid"}},
	{name: "index not ready", sql: `update pg_index set indisready = false where indexrelid = $q$@.run_events_retention$q$::regclass`,
		want: []string{"refused: index run_events.run_events_retention, state: expected valid, found not valid"}},
	{name: "index not valid and another one in its place", sql: `
update pg_index set indisvalid = false where indexrelid = $q$@.run_events_retention$q$::regclass; create index a on @.run_events (created_at, tenant_id, run_id, sequence)`,
		want: []string{"warning: index run_events.run_events_retention: expected nothing, found btree (created_at, tenant_id, run_id, sequence)"}},
	{name: "index added", sql: `create index extra on @.run_events (type)`, want: []string{"warning: index run_events.extra: expected nothing, found btree (type)"}},
	{name: "index added twice", sql: `create index again on @.run_events (created_at, tenant_id, run_id, sequence)`,
		want: []string{"warning: index run_events.again: expected nothing, found btree (created_at, tenant_id, run_id, sequence)"}},
	{name: "index added and not valid", sql: `create unique index extra on @.runs (tenant_id, id); update pg_index set indisvalid = false where indexrelid = $q$@.extra$q$::regclass`,
		want: []string{"warning: index runs.extra: expected nothing, found unique btree (tenant_id, id)"}},
	{name: "unique index added", sql: `create unique index extra on @.runs (id)`, want: []string{"refused: index runs.extra: expected nothing, found unique btree (id)"}},
	{name: "unique index added, as the key is", sql: `create unique index extra on @.runs (tenant_id, id)`, want: []string{"warning: index runs.extra: expected nothing, found unique btree (tenant_id, id)"}},
	altered("(created_at, tenant_id, run_id)", "btree (created_at, tenant_id, run_id)"),
	altered("(tenant_id, created_at, run_id, sequence)", "btree (tenant_id, created_at, run_id, sequence)"),
	altered("(created_at desc, tenant_id, run_id, sequence)", "btree (created_at desc, tenant_id, run_id, sequence)"),
	altered("(created_at nulls first, tenant_id, run_id, sequence)", "btree (created_at nulls first, tenant_id, run_id, sequence)"),
	altered("(created_at desc nulls last, tenant_id, run_id, sequence)", "btree (created_at desc nulls last, tenant_id, run_id, sequence)"),
	altered(`(created_at, tenant_id collate "C", run_id, sequence)`, `btree (created_at, tenant_id collate pg_catalog."C", run_id, sequence)`),
	altered("(created_at, tenant_id text_pattern_ops, run_id, sequence)", "btree (created_at, tenant_id text_pattern_ops, run_id, sequence)"),
	altered("(created_at, tenant_id, run_id, (sequence + 1))", "btree (created_at, tenant_id, run_id, ((sequence + 1)))"),
	altered("(created_at, tenant_id, run_id) include (sequence)", "btree (created_at, tenant_id, run_id) include (sequence)"),
	altered("(created_at, tenant_id, run_id, sequence) where sequence > 1", "btree (created_at, tenant_id, run_id, sequence) where (sequence > 1)"),
	altered("using brin (created_at, tenant_id, run_id, sequence)", "brin (created_at, tenant_id, run_id, sequence)"),
	{name: "index unique", sql: `drop index @.run_events_retention; create unique index run_events_retention on @.run_events (created_at, tenant_id, run_id, sequence)`,
		want: []string{"refused: index run_events.run_events_retention, definition: expected btree (created_at, tenant_id, run_id, sequence), found unique btree (created_at, tenant_id, run_id, sequence)"}},
	{name: "index unique, nulls not distinct", since: 15, sql: `create unique index extra on @.run_events (type) nulls not distinct`,
		want: []string{"refused: index run_events.extra: expected nothing, found unique btree (type) nulls not distinct"}},

	// what acts by itself
	{name: "trigger added", sql: `create trigger "Mine" before update on @.runs for each row execute function suppress_redundant_updates_trigger()`,
		want: []string{`refused: trigger runs.Mine: expected nothing, found CREATE TRIGGER "Mine" BEFORE UPDATE ON @.runs FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`}},
	{name: "trigger added and disabled", sql: `
create trigger mine before update on @.runs for each row execute function suppress_redundant_updates_trigger(); alter table @.runs disable trigger mine`,
		want: []string{`refused: trigger runs.mine: expected nothing, found CREATE TRIGGER mine BEFORE UPDATE ON @.runs FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`}},
	{name: "constraint trigger added", sql: `create constraint trigger mine after update on @.runs for each row execute function suppress_redundant_updates_trigger()`,
		want: []string{`refused: trigger runs.mine: expected nothing, found CREATE CONSTRAINT TRIGGER mine AFTER UPDATE ON @.runs NOT DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`}},
	{name: "policy added", sql: `create policy few on @.runs as restrictive for delete to preflight_other using (id = 'x')`,
		want: []string{`refused: policy runs.few: expected nothing, found restrictive for delete to preflight_other using ((id = 'x'::text))`}},
	{name: "rule added", sql: `create rule keep as on delete to @.run_events do instead nothing`,
		want: []string{`refused: rule run_events.keep: expected nothing, found CREATE RULE keep AS     ON DELETE TO @.run_events DO INSTEAD NOTHING;`}},
}

// altered is the retention index with another definition under its name.
func altered(definition, found string) drift {
	return drift{
		name: "index " + definition,
		sql:  `drop index @.run_events_retention; create index run_events_retention on @.run_events ` + definition,
		want: []string{"refused: index run_events.run_events_retention, definition: expected btree (created_at, tenant_id, run_id, sequence), found " + found},
	}
}

const (
	park     = `CREATE TRIGGER domain_event_deliveries_park_new AFTER INSERT ON @.domain_event_deliveries FOR EACH ROW WHEN ((new.status = ANY (ARRAY['dead'::text, 'orphaned'::text]))) EXECUTE FUNCTION @.domain_events_park()`
	expires  = `stored (((recorded_at AT TIME ZONE 'UTC'::text) + ((retention_seconds)::double precision * '00:00:01'::interval)) AT TIME ZONE 'UTC'::text)`
	identity = `always, from 1 to 9223372036854775807 by 1`
	ofEvent  = `FOREIGN KEY (event_id) REFERENCES @.domain_events(id)`
)

var driftsOfDomainEvents = []drift{
	{name: "none"},
	{name: "what is left to those who run it", sql: `alter table @.domain_events owner to preflight_other; alter function @.domain_events_park() owner to preflight_other; alter sequence @.domain_events_id_seq cache 50 restart 1000;
create function @.domain_events_park(int) returns int language sql as 'select 1'`},

	// columns
	{name: "not null gained", sql: `alter table @.domain_events alter occurred_at drop not null, alter suppressed set not null`,
		want: []string{
			"refused: column domain_events.occurred_at, nullability: expected not null, found nullable",
			"refused: column domain_events.suppressed, nullability: expected nullable, found not null",
		}},
	{name: "identity by default", sql: `alter table @.domain_events alter id set generated by default`,
		want: []string{"refused: column domain_events.id, identity: expected " + identity + ", found by default, from 1 to 9223372036854775807 by 1"}},
	{name: "identity dropped", sql: `alter table @.domain_events alter id drop identity`, want: []string{"refused: column domain_events.id, identity: expected " + identity + ", found none"}},
	{name: "identity bounded", sql: `alter table @.domain_events alter id set maxvalue 100 set cycle`,
		want: []string{"refused: column domain_events.id, identity: expected " + identity + ", found always, from 1 to 100 by 1, in a cycle"}},
	{name: "identity in other steps", sql: `alter table @.domain_events alter id set increment 2`,
		want: []string{"refused: column domain_events.id, identity: expected " + identity + ", found always, from 1 to 9223372036854775807 by 2"}},
	{name: "expression dropped", sql: `alter table @.domain_events alter expires_at drop expression`, want: []string{"refused: column domain_events.expires_at, generated: expected " + expires + ", found none"}},

	// constraints
	{name: "foreign key dropped", sql: `alter table @.domain_event_deliveries drop constraint domain_event_deliveries_event_fkey`,
		want: []string{"refused: constraint domain_event_deliveries.domain_event_deliveries_event_fkey: expected " + ofEvent + ", found nothing of this name"}},
	{name: "foreign key cascades", sql: `alter table @.domain_event_deliveries drop constraint domain_event_deliveries_event_fkey,
  add constraint domain_event_deliveries_event_fkey foreign key (event_id) references @.domain_events on delete cascade`,
		want: []string{"refused: constraint domain_event_deliveries.domain_event_deliveries_event_fkey, definition: expected " + ofEvent + ", found " + ofEvent + " ON DELETE CASCADE"}},
	{name: "foreign key not enforced", sql: `update pg_trigger set tgenabled = 'D' where tgconstrrelid = $q$@.domain_event_deliveries$q$::regclass`,
		want: []string{"refused: constraint domain_event_deliveries.domain_event_deliveries_event_fkey, state: expected valid, found not enforced: its triggers are not enabled"}},
	{name: "foreign key not validated", sql: `alter table @.domain_event_deliveries drop constraint domain_event_deliveries_event_fkey,
  add constraint domain_event_deliveries_event_fkey foreign key (event_id) references @.domain_events not valid`,
		want: []string{"refused: constraint domain_event_deliveries.domain_event_deliveries_event_fkey, state: expected valid, found not validated"}},
	{name: "foreign key twice", sql: `alter table @.domain_event_deliveries add constraint again foreign key (event_id) references @.domain_events`,
		want: []string{"refused: constraint domain_event_deliveries.again: expected nothing, found " + ofEvent}},
	{name: "unique dropped", sql: `alter table @.domain_event_deliveries drop constraint domain_event_deliveries_key`,
		want: []string{"refused: constraint domain_event_deliveries.domain_event_deliveries_key: expected UNIQUE (event_id, receiver, target), found nothing of this name"}},
	{name: "unique as an index alone", sql: `alter table @.domain_event_deliveries drop constraint domain_event_deliveries_key;
create unique index domain_event_deliveries_key on @.domain_event_deliveries (event_id, receiver, target)`,
		want: []string{
			"refused: constraint domain_event_deliveries.domain_event_deliveries_key: expected UNIQUE (event_id, receiver, target), found nothing of this name",
			"warning: index domain_event_deliveries.domain_event_deliveries_key: expected nothing, found unique btree (event_id, receiver, target)",
		}},

	// indexes
	{name: "unique index dropped", sql: `drop index @.domain_events_dedupe`,
		want: []string{"refused: index domain_events.domain_events_dedupe: expected unique btree (dedupe_key) where (dedupe_key IS NOT NULL), found nothing of this name"}},
	{name: "unique index no more unique", sql: `drop index @.domain_events_dedupe; create index domain_events_dedupe on @.domain_events (dedupe_key) where dedupe_key is not null`,
		want: []string{"refused: index domain_events.domain_events_dedupe, definition: expected unique btree (dedupe_key) where (dedupe_key IS NOT NULL), found btree (dedupe_key) where (dedupe_key IS NOT NULL)"}},
	{name: "predicate lost", sql: `drop index @.domain_events_own; create index domain_events_own on @.domain_events (expires_at, id)`,
		want: []string{"refused: index domain_events.domain_events_own, definition: expected btree (expires_at, id) where (retention_seconds IS NOT NULL), found btree (expires_at, id)"}},

	// triggers and their functions
	{name: "trigger dropped", sql: `drop trigger domain_event_deliveries_park_new on @.domain_event_deliveries`,
		want: []string{"refused: trigger domain_event_deliveries.domain_event_deliveries_park_new: expected " + park + ", found nothing of this name"}},
	{name: "trigger disabled", sql: `alter table @.domain_event_deliveries disable trigger domain_event_deliveries_park_new`,
		want: []string{"refused: trigger domain_event_deliveries.domain_event_deliveries_park_new, state: expected enabled, found disabled"}},
	{name: "trigger for replicas", sql: `alter table @.domain_event_deliveries enable replica trigger domain_event_deliveries_park_new`,
		want: []string{"refused: trigger domain_event_deliveries.domain_event_deliveries_park_new, state: expected enabled, found enabled for replicas only"}},
	{name: "trigger always", sql: `alter table @.domain_event_deliveries enable always trigger domain_event_deliveries_park_new`,
		want: []string{"refused: trigger domain_event_deliveries.domain_event_deliveries_park_new, state: expected enabled, found enabled always"}},
	{name: "trigger changed", sql: `drop trigger domain_event_deliveries_park_new on @.domain_event_deliveries;
create trigger domain_event_deliveries_park_new after insert on @.domain_event_deliveries for each row when (new.status = 'dead') execute function @.domain_events_park()`,
		want: []string{"refused: trigger domain_event_deliveries.domain_event_deliveries_park_new, definition: expected " + park + ", found " +
			strings.Replace(park, `ANY (ARRAY['dead'::text, 'orphaned'::text])`, `'dead'::text`, 1)}},
	{name: "function dropped with its triggers", sql: `drop trigger domain_event_deliveries_remember_gone on @.domain_event_deliveries; drop function @.domain_events_remember_gone()`,
		want: []string{
			"refused: trigger domain_event_deliveries.domain_event_deliveries_remember_gone: expected CREATE TRIGGER domain_event_deliveries_remember_gone AFTER DELETE ON @.domain_event_deliveries REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.domain_events_remember_gone(), found nothing of this name",
			"refused: function domain_events_remember_gone(): expected a function that triggers call, found nothing of this name",
		}},
	{name: "function with another body", sql: `create or replace function @.domain_events_remember_gone() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
BEGIN
  RETURN NULL;
END $$; comment on function @.domain_events_remember_gone() is 'x'`,
		want: []string{`refused: function domain_events_remember_gone(), body: expected in line 3 "-- in the order of the key, so that two who delete at once can not deadlock here", found in line 3 "RETURN NULL;"`}},
	{name: "function as its caller", sql: `alter function @.domain_events_park() security invoker`, want: []string{"refused: function domain_events_park(), security: expected definer, found invoker"}},
	{name: "function with the caller's search path", sql: `alter function @.domain_events_park() reset search_path`,
		want: []string{"refused: function domain_events_park(), settings: expected search_path=pg_catalog, pg_temp, found none"}},
	{name: "function with another setting", sql: `alter function @.domain_events_park() set work_mem = '1MB'`,
		want: []string{"refused: function domain_events_park(), settings: expected search_path=pg_catalog, pg_temp, found search_path=pg_catalog, pg_temp; work_mem=1MB"}},
	{name: "function that anybody may call", sql: `grant execute on function @.domain_events_park() to public`, want: []string{"refused: function domain_events_park(), public: expected may not execute, found may execute"}},
	{name: "function with other attributes", sql: `alter function @.domain_events_park() stable strict leakproof parallel safe`,
		want: []string{"refused: function domain_events_park(), attributes: expected volatile, found stable, strict, leakproof, parallel safe"}},
	{name: "function in another language", sql: `update pg_proc set prolang = (select oid from pg_language where lanname = 'sql') where oid = $q$@.domain_events_park()$q$::regprocedure`,
		want: []string{"refused: function domain_events_park(), language: expected plpgsql, found sql"}},
	{name: "function with another result", sql: `update pg_proc set prorettype = 'event_trigger'::regtype where oid = $q$@.domain_events_park()$q$::regprocedure`,
		want: []string{"refused: function domain_events_park(), result: expected trigger, found event_trigger"}},
}
