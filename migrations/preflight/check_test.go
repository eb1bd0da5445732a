package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

// first is the SQL that makes version 1 of run_events.
func first(t *testing.T) string {
	t.Helper()
	text, err := migrations.SQL("run_events", "", migrations.DirectionUp)
	if err != nil {
		t.Fatal(err)
	}
	text, _, ok := strings.Cut(text, "-- version 2 ")
	if !ok {
		t.Fatalf("no version 2 in\n%s", text)
	}
	return text
}

func TestEachStateIsSaid(t *testing.T) {
	const gone = "; delete from prunectl_run_events_migrations"
	for _, c := range []struct {
		name, sql string // upon a database that was migrated, or an empty one
		empty     bool
		schema    string
		want      string // the report, without what to do about a finding
		is        []error
		installed int // 0 for none
		pending   int
	}{
		{name: "empty database", empty: true, is: []error{ErrNotInstalled}, pending: 2,
			want: "component run_events in schema public: not installed; run prunectl migrate up --component run_events"},
		{name: "no schema", schema: "it's\nnowhere", is: []error{ErrNotInstalled, ErrDrift}, pending: 2,
			want: "component run_events in schema it's nowhere: not installed; run prunectl migrate up --component run_events --schema 'it'\\''s nowhere'\n" +
				"refused: schema it's nowhere: expected a schema, found nothing of this name"},
		{name: "ledger empty", empty: true, is: []error{ErrNotInstalled}, pending: 2,
			sql:  "create table prunectl_run_events_migrations (version bigint not null primary key, name text not null, applied_at timestamptz not null default now())",
			want: "component run_events in schema public: not installed; run prunectl migrate up --component run_events"},
		{name: "something else of the ledger's name", empty: true, is: []error{ErrNotInstalled, ErrDrift}, pending: 2,
			sql: "create view prunectl_run_events_migrations as select 'one' as version",
			want: "component run_events in schema public: not installed; run prunectl migrate up --component run_events\n" +
				"refused: table prunectl_run_events_migrations, kind: expected ordinary table, found view"},
		{name: "tables without a ledger", is: []error{ErrNotInstalled, ErrDrift}, pending: 2,
			sql: "drop table prunectl_run_events_migrations; drop table run_events",
			want: "component run_events in schema public: not installed; run prunectl migrate up --component run_events\n" +
				"refused: table runs: expected nothing before version 1 is recorded in prunectl_run_events_migrations, found ordinary table"},
		{name: "tables and an empty ledger", is: []error{ErrNotInstalled, ErrDrift}, pending: 2, sql: "drop table run_events" + gone,
			want: "component run_events in schema public: not installed; run prunectl migrate up --component run_events\n" +
				"refused: table runs: expected nothing before version 1 is recorded in prunectl_run_events_migrations, found ordinary table"},
		{name: "version 1", empty: true, sql: first(t), is: []error{ErrPending}, installed: 1, pending: 1,
			want: "component run_events in schema public: at version 1 of 2, pending: 2 add_retention_index; run prunectl migrate up --component run_events"},
		{name: "version 1 by the ledger", sql: "delete from prunectl_run_events_migrations where version = 2", is: []error{ErrPending}, installed: 1, pending: 1,
			want: "component run_events in schema public: at version 1 of 2, pending: 2 add_retention_index; run prunectl migrate up --component run_events\n" +
				"warning: index run_events.run_events_retention: expected nothing, found btree (created_at, tenant_id, run_id, sequence)"},
		{name: "version 1, changed", empty: true, sql: first(t) + "alter table runs drop constraint runs_pkey", is: []error{ErrPending, ErrDrift}, installed: 1, pending: 1,
			want: "component run_events in schema public: at version 1 of 2, pending: 2 add_retention_index; run prunectl migrate up --component run_events\n" +
				"refused: constraint runs.runs_pkey: expected PRIMARY KEY (tenant_id, id), found nothing of this name"},
		{name: "version 1 not recorded", sql: "delete from prunectl_run_events_migrations where version = 1", is: []error{ErrPending}, installed: 2, pending: 1,
			want: "component run_events in schema public: at version 2 of 2, pending: 1 create_tables; run prunectl migrate up --component run_events"},
		{name: "version 2", installed: 2, want: "component run_events in schema public: up to date, version 2"},
		{name: "version 2 by the ledger alone", sql: "drop table runs, run_events", is: []error{ErrDrift}, installed: 2,
			want: "component run_events in schema public: at version 2 by its ledger, and not as the migrations made it\n" +
				"refused: table run_events: expected ordinary table, found nothing of this name\n" +
				"refused: table runs: expected ordinary table, found nothing of this name"},
		{name: "version 3", sql: "insert into prunectl_run_events_migrations values (3, 'later'); alter table runs drop updated_at", is: []error{ErrNewer}, installed: 3,
			want: "component run_events in schema public: at version 3, newer than this binary, which knows up to 2; use the newer one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var db *pgtest.DB
			if c.empty {
				db = pgtest.New(t)
			} else {
				db = installed["run_events"].New(t)
			}
			if c.sql != "" {
				db.Exec(t, c.sql)
			}
			r := check(t, db.Pool(t), "run_events", c.schema)

			lines := []string{r.headline()}
			for _, f := range r.Findings {
				lines = append(lines, string(f.Result)+": "+f.what())
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			err := r.Err()
			for _, e := range []error{ErrNotInstalled, ErrPending, ErrNewer, ErrDrift} {
				if is := slices.Contains(c.is, e); errors.Is(err, e) != is {
					t.Errorf("error %v is %v: %t", err, e, !is)
				}
			}
			if (err == nil) != (c.is == nil) || err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
			got := 0
			if r.Installed != nil {
				got = *r.Installed
			}
			if got != c.installed || len(r.Pending) != c.pending || r.Known != 2 {
				t.Errorf("installed %d, pending %v, known %d", got, r.Pending, r.Known)
			}
		})
	}
}

// The report is for people and for programs.
func TestTheReportSaysWhatToDo(t *testing.T) {
	db := installed["run_events"].New(t)
	db.Exec(t, `drop index run_events_retention; alter table runs add note text; alter table runs alter status drop not null`)
	r := check(t, db.Conn(t), "run_events", "")
	want := `component run_events in schema public: at version 2 by its ledger, and not as the migrations made it
  refused: index run_events.run_events_retention: expected btree (created_at, tenant_id, run_id, sequence), found nothing of this name; CREATE INDEX CONCURRENTLY "run_events_retention" ON "public"."run_events" USING btree (created_at, tenant_id, run_id, sequence)
  refused: column runs.status, nullability: expected not null, found nullable; ALTER TABLE "public"."runs" ALTER COLUMN "status" SET NOT NULL, when no row has a null in it
  warning: column runs.note: expected nothing, found text; a later version may want the name; where nobody needs it, ALTER TABLE "public"."runs" DROP COLUMN "note"`
	if r.String() != want {
		t.Errorf("got\n%s\nwant\n%s", r, want)
	}
	wantErr := "component run_events in schema public: at version 2 by its ledger, and not as the migrations made it; " +
		"index run_events.run_events_retention: expected btree (created_at, tenant_id, run_id, sequence), found nothing of this name; " +
		"column runs.status, nullability: expected not null, found nullable"
	if err := r.Err(); err == nil || err.Error() != wantErr {
		t.Errorf("error %v, want %s", err, wantErr)
	}
	if r.Warnings() != 1 {
		t.Errorf("%d warnings", r.Warnings())
	}

	r.Findings = r.Findings[1:2]
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON := `{"component":"run_events","schema":"public","state":"drift","installed":2,"known":2,"pending":[],"findings":[` +
		`{"result":"refused","kind":"column","name":"runs.status","aspect":"nullability","expected":"not null","found":"nullable",` +
		`"do":"ALTER TABLE \"public\".\"runs\" ALTER COLUMN \"status\" SET NOT NULL, when no row has a null in it"}]}`
	if string(text) != wantJSON {
		t.Errorf("got  %s\nwant %s", text, wantJSON)
	}

	text, err = json.Marshal(check(t, pgtest.New(t).Conn(t), "run_events", ""))
	if err != nil || string(text) != `{"component":"run_events","schema":"public","state":"not installed","installed":null,"known":2,`+
		`"pending":[{"number":1,"name":"create_tables"},{"number":2,"name":"add_retention_index"}],"findings":[]}` {
		t.Errorf("got %s (%v)", text, err)
	}
}

// What a report says to do is done as it stands, where it is a statement.
func TestWhatTheReportSaysMendsIt(t *testing.T) {
	db := installed["domain_events"].New(t)
	in := quote(odd)
	conn := db.Conn(t)
	for _, change := range []string{
		`drop index %s.domain_events_dedupe`,
		`drop index %s.domain_event_deliveries_open`,
		`alter table %s.domain_events drop constraint domain_events_type_check`,
		`alter table %s.domain_event_deliveries alter status drop default`,
		`alter table %s.domain_event_deliveries alter status set default 'x'`,
		`alter table %s.domain_event_deliveries alter claimed_by set default 'x'`,
		`alter table %s.domain_event_deliveries alter claimed_by set not null`,
		`alter table %s.domain_event_deliveries alter last_error type text collate "C"`,
		`alter table %s.domain_event_deliveries rename constraint domain_event_deliveries_event_fkey to other`,
		`alter table %s.domain_event_deliveries drop constraint domain_event_deliveries_event_fkey, add constraint domain_event_deliveries_event_fkey foreign key (event_id) references %[1]s.domain_events on delete cascade`,
		`alter table %s.domain_event_deliveries disable trigger domain_event_deliveries_park`,
		`grant execute on function %s.domain_events_park() to public`,
		`alter table %s.domain_events enable row level security, force row level security`,
		`alter table %s.domain_events set unlogged`,
		`create policy "a b" on %s.domain_events`,
		`create rule "a b" as on delete to %s.domain_events do instead nothing`,
		`create unique index "a b" on %s.domain_events (type)`,
		`alter table %s.domain_events add constraint "a b" check (version < 9)`,
		`create trigger "a b" before update on %s.domain_events for each row execute function suppress_redundant_updates_trigger()`,
	} {
		change = strings.ReplaceAll(strings.ReplaceAll(change, "%[1]s", in), "%s", in)
		if strings.Contains(change, "unlogged") { // not while a table that is logged refers to it
			db.Exec(t, "alter table "+in+".domain_event_deliveries set unlogged")
		}
		db.Exec(t, change)
		r := check(t, conn, "domain_events", odd)
		if len(r.Findings) == 0 {
			t.Errorf("%s: nothing was found", change)
		}
		slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(b.Name, a.Name) })
		for _, f := range r.Findings {
			do := f.Do
			for _, end := range []string{", when no", "; indexes on it"} {
				do, _, _ = strings.Cut(do, end)
			}
			for _, verb := range []string{"ALTER ", "CREATE ", "DROP ", "REVOKE "} {
				if i := strings.Index(do, verb); i >= 0 {
					do = do[i:]
					break
				}
			}
			if _, err := conn.Exec(t.Context(), do); err != nil {
				t.Errorf("%s: %v\n%s", change, err, do)
			}
		}
		if r := check(t, conn, "domain_events", odd); len(r.Findings) != 0 {
			t.Fatalf("%s: %s", change, r)
		}
	}
}

// No setting of a session, a role or a database decides what is found.
func TestNoSettingOfTheSessionIsADrift(t *testing.T) {
	for component, template := range installed {
		db := template.New(t)
		db.Exec(t, fmt.Sprintf(`alter database %s set search_path = %s, public; alter database %[1]s set quote_all_identifiers = on;
alter database %[1]s set intervalstyle = iso_8601; alter database %[1]s set datestyle = 'German'; alter database %[1]s set timezone = 'Asia/Kathmandu';
alter database %[1]s set default_transaction_read_only = on; alter database %[1]s set default_transaction_isolation = 'serializable'`, quote(db.Name), quote(odd)))
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			conn := db.Conn(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
			if _, err := conn.Exec(t.Context(), `begin read write; create temp table runs (id int); create temp table domain_events (id int); commit`, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			for _, schema := range []string{"public", odd} {
				if r := check(t, conn, component, schema); len(r.Findings) > 0 || r.State != UpToDate {
					t.Errorf("%s: %s", mode, r)
				}
			}
			if mode != pgx.QueryExecModeSimpleProtocol {
				var n int
				if err := conn.QueryRow(t.Context(), `select count(*) from pg_prepared_statements where statement like '%pg_catalog.%'`, pgx.QueryExecModeExec).Scan(&n); err != nil || n != 0 {
					t.Errorf("%s: %d prepared statements are left (%v)", mode, n, err)
				}
			}
		}
	}
}

func TestOnlyTheLedgerNeedsARight(t *testing.T) {
	db := installed["run_events"].New(t)
	pgtest.Role(t, "preflight_checker", "login")
	conn := db.Conn(t)
	as := func() (Report, error) {
		ctx := bounded(t)
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx) // nothing was written
		if _, err := tx.Exec(ctx, `set local role preflight_checker`); err != nil {
			t.Fatal(err)
		}
		return Check(ctx, tx, "run_events", odd)
	}
	refused := func(want string) {
		t.Helper()
		if r, err := as(); !errors.Is(err, ErrRights) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got error %v, report %s", want, err, r)
		}
	}
	in := quote(odd)
	refused(`role preflight_checker may not use the schema; GRANT USAGE ON SCHEMA ` + in + ` TO "preflight_checker"`)
	db.Exec(t, `grant usage on schema `+in+` to preflight_checker`)
	refused(`role preflight_checker may not read the ledger; GRANT SELECT ON ` + in + `."prunectl_run_events_migrations" TO "preflight_checker"`)
	db.Exec(t, `grant select (version) on `+in+`.prunectl_run_events_migrations to preflight_checker`)
	if r, err := as(); err != nil || r.State != UpToDate || len(r.Findings) > 0 {
		t.Errorf("error %v, report %s", err, r)
	}
	// A policy that hides records is not a component that is not installed.
	db.Exec(t, `alter table `+in+`.prunectl_run_events_migrations enable row level security`)
	refused("row security would hide records of the ledger from this role")
	db.Exec(t, `alter table `+in+`.prunectl_run_events_migrations disable row level security; revoke select on pg_catalog.pg_constraint from public`)
	refused("permission denied for table pg_constraint")
}

func TestATableThatSomebodyHoldsIsSaid(t *testing.T) {
	db := installed["domain_events"].New(t)
	holder, conn := db.Conn(t), db.Conn(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table public.domain_events in access exclusive mode`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `set lock_timeout = 20`); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(bounded(t), conn, "domain_events", ""); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "check again") {
		t.Errorf("held: %v", err)
	}
}

func TestAnUnknownComponentIsNamed(t *testing.T) {
	_, err := Check(t.Context(), nil, "run_event", "")
	if !errors.Is(err, ErrUnknownComponent) {
		t.Fatal(err)
	}
	for _, name := range migrations.Components() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
