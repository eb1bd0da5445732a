package migrations

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// withInbox is a database with all of inbox_outbox, in the schema that it makes.
var withInbox = pgtest.NewTemplate("inbox_outbox", install("inbox_outbox"))

func ofInbox(o *Options) { o.Component = "inbox_outbox" }

// relations counts what there is besides the server's own: schemas, relations and functions.
const relations = `
select (select count(*) from pg_namespace where nspname not like 'pg\_%' and nspname not in ('information_schema', 'test'))
     + (select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname not like 'pg\_%' and n.nspname not in ('information_schema', 'test'))`

func TestEachComponentHasItsDefaultSchema(t *testing.T) {
	for component, want := range map[string]string{
		"run_events": "public", "domain_events": "public", "inbox_outbox": inboxoutbox.DefaultSchema, "connections": "public", "unknown": "",
	} {
		if got := DefaultSchema(component); got != want {
			t.Errorf("%s goes to %q, want %q", component, got, want)
		}
	}
}

func TestInboxOutboxMakesItsSchemaAndGoesDownEmptyOnly(t *testing.T) {
	for table, fill := range map[string]string{
		"inbox":    `insert into inbox_outbox.inbox (handler, event_id) values ('h', 'e')`,
		"outbox":   `insert into inbox_outbox.outbox (event_id, topic, body) values ('e', 't', '{}')`,
		"leases":   `insert into inbox_outbox.leases values ('h', '', 'w', gen_random_uuid(), now())`,
		"settings": `insert into inbox_outbox.settings (fingerprint, settings, recorded_by) values (repeat('a', 64), '{}', 'x')`,
	} {
		t.Run(table, func(t *testing.T) {
			db := pgtest.New(t)
			m := migrator(t, db.DSN, ofInbox)
			state(t, m, "not installed")
			down(t, m, "")
			up(t, m, "1 create_tables")
			up(t, m)
			if s := state(t, m, "up to date"); s.Schema != "inbox_outbox" {
				t.Errorf("status %+v", s)
			}
			db.Exec(t, fill)
			if _, err := m.Down(bounded(t)); !errors.Is(err, ErrHoldsRows) || !strings.Contains(err.Error(), "empty the four tables") {
				t.Errorf("down over rows: %v", err)
			}
			if n := db.Int(t, `select count(*) from inbox_outbox.`+table); n != 1 {
				t.Errorf("%d rows are left", n)
			}
			state(t, m, "up to date")
			db.Exec(t, `delete from inbox_outbox.`+table)
			down(t, m, "1 create_tables")
			state(t, m, "not installed")
			if got := db.Text(t, `select string_agg(relname, ' ' order by relname) from pg_class where relnamespace = 'inbox_outbox'::regnamespace`); got !=
				"prunectl_inbox_outbox_migrations prunectl_inbox_outbox_migrations_pkey" {
				t.Errorf("there is left: %s", got)
			}
			up(t, m, "1 create_tables")
		})
	}
}

func TestInboxOutboxGoesIntoASchemaOfAnyName(t *testing.T) {
	db := pgtest.New(t)
	for _, name := range []string{`In & "Out"; --x`, `it's a \schema`, `a.b`, `select`, `$1 %s {{.}}`, "there"} {
		quoted := pgx.Identifier{name}.Sanitize()
		if name == "there" {
			db.Exec(t, `create schema there`)
		}
		m := migrator(t, db.DSN, ofInbox, inSchema(name))
		up(t, m, "1 create_tables")
		up(t, m)
		state(t, m, "up to date")
		db.Exec(t, `insert into `+quoted+`.leases values ('h', '', 'w', gen_random_uuid(), now())`)
		if _, err := m.Down(bounded(t)); !errors.Is(err, ErrHoldsRows) || !strings.Contains(err.Error(), quoted+".leases") {
			t.Errorf("schema %q: %v", name, err)
		}
		db.Exec(t, `delete from `+quoted+`.leases`)
		down(t, m, "1 create_tables")
	}
	if n := db.Int(t, `select count(*) from pg_namespace where nspname = 'inbox_outbox'`); n != 0 {
		t.Error("the default schema was made too")
	}
}

// A schema that is there is enough: no right to make one is asked for.
func TestInboxOutboxNeedsNoMoreThanItsSchema(t *testing.T) {
	pgtest.Role(t, "migrations_owner", "login")
	db := pgtest.New(t)
	as := func() *Migrator { return migrator(t, db.DSNAs("migrations_owner"), ofInbox) }
	_, err := as().Up(bounded(t))
	if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), `GRANT CREATE ON DATABASE`) ||
		!strings.Contains(err.Error(), `CREATE SCHEMA "inbox_outbox" AUTHORIZATION "migrations_owner"`) {
		t.Errorf("without a right: %v", err)
	}
	db.Exec(t, `create schema inbox_outbox authorization migrations_owner`)
	up(t, as(), "1 create_tables")
	state(t, as(), "up to date")
}

// Wherever the migration fails, there is nothing left of it, and it can be run again.
func TestAFailedMigrationLeavesNothing(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `
create schema test;
create sequence test.steps;
create table test.fails (at bigint);
insert into test.fails values (0);
create function test.fail() returns event_trigger language plpgsql as $$
begin
  if nextval('test.steps') = (select at from test.fails) then raise exception 'no further'; end if;
end $$;
create event trigger fail on ddl_command_end when tag in ('CREATE SCHEMA', 'CREATE TABLE', 'CREATE INDEX') execute function test.fail()`)
	before := db.Int(t, relations)
	m := migrator(t, db.DSN, ofInbox)
	step := 1
	for ; step < 100; step++ {
		db.Exec(t, fmt.Sprintf(`alter sequence test.steps restart; update test.fails set at = %d`, step))
		done, err := m.Up(bounded(t))
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "no further") || !strings.Contains(err.Error(), "version 1 create_tables") || len(done) != 0 {
			t.Fatalf("step %d: applied %v, %v", step, done, err)
		}
		if n := db.Int(t, relations); n != before {
			t.Errorf("step %d: %d things are left", step, n-before)
		}
		state(t, m, "not installed")
	}
	if step != 12 { // a schema, four tables and their five indexes, and the ledger
		t.Errorf("it took %d steps", step-1)
	}
	state(t, m, "up to date")
}

// Held half-way by somebody who makes a table of the same name, and killed there.
func TestAMigratorOfInboxOutboxKilledHalfWayLeavesNothing(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `create schema inbox_outbox`)
	before := db.Int(t, relations)
	tx, err := db.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `create table inbox_outbox.settings ()`); err != nil {
		t.Fatal(err)
	}
	m := migrator(t, db.DSN, ofInbox)
	dying := goUp(bounded(t), m)
	pid := until(t, db.Conn(t), "it waits for the last table", `
select coalesce((select max(pid) from pg_stat_activity where datname = current_database()
                  and wait_event_type = 'Lock' and query ilike 'create table%settings%'), 0)`)
	terminate(t, db, pid)
	if o := <-dying; o.err == nil || len(o.applied) != 0 {
		t.Fatalf("the killed one applied %v, %v", o.applied, o.err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := db.Int(t, relations); n != before {
		t.Errorf("%d things are left", n-before)
	}
	state(t, m, "not installed")
	up(t, m, "1 create_tables")
}

// The second one comes while the first is half-way: it waits for the lock, and has nothing to do.
func TestOfTwoMigratorsOfInboxOutboxOneHasNothingToDo(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `create schema inbox_outbox`)
	tx, err := db.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `create table inbox_outbox.settings ()`); err != nil {
		t.Fatal(err)
	}
	watch := db.Conn(t)
	first := goUp(bounded(t), migrator(t, db.DSN, ofInbox))
	until(t, watch, "the first is half-way", `
select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ilike 'create table%settings%'`)
	second := goUp(bounded(t), migrator(t, db.DSN, ofInbox))
	until(t, watch, "the second tries for the lock", trying)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	one, two := <-first, <-second
	if one.err != nil || len(one.applied) != 1 || one.applied[0].Rebuilt {
		t.Errorf("the first applied %v, %v", one.applied, one.err)
	}
	if two.err != nil || len(two.applied) != 0 {
		t.Errorf("the second applied %v, %v", two.applied, two.err)
	}
}

func TestInboxOutboxNewerThanTheBinaryIsRefused(t *testing.T) {
	db := withInbox.New(t)
	m := migrator(t, db.DSN, ofInbox)
	db.Exec(t, `insert into inbox_outbox.prunectl_inbox_outbox_migrations (version, name) values (2, 'from_the_future')`)
	_, errUp := m.Up(bounded(t))
	_, errDown := m.Down(bounded(t))
	for way, err := range map[string]error{"up": errUp, "down": errDown} {
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "is at version 2, this one knows up to 1") {
			t.Errorf("%s: %v", way, err)
		}
	}
	state(t, m, "newer than this binary")
}

// The version that built an index is not run again for it: its tables are there, with rows.
func TestALostIndexOfInboxOutboxIsBuiltAgain(t *testing.T) {
	for _, x := range Indexes("inbox_outbox") {
		for how, c := range map[string]struct{ lose, fault string }{
			"dropped":   {`drop index inbox_outbox.` + x.Name, "is missing"},
			"not valid": {`update pg_index set indisvalid = false where indexrelid = 'inbox_outbox.` + x.Name + `'::regclass`, "is not valid"},
		} {
			t.Run(x.Name+" "+how, func(t *testing.T) {
				db := withInbox.New(t)
				m := migrator(t, db.DSN, ofInbox)
				db.Exec(t, `insert into inbox_outbox.inbox (handler, event_id) values ('h', 'e')`)
				db.Exec(t, c.lose)
				state(t, m, "damaged: index "+x.Name+" "+c.fault)
				if done := up(t, m, "1 create_tables"); !done[0].Rebuilt {
					t.Error("not said to be rebuilt")
				}
				state(t, m, "up to date")
				up(t, m)
				if n := db.Int(t, `select count(*) from inbox_outbox.inbox`); n != 1 {
					t.Errorf("%d rows are left", n)
				}
			})
		}
	}
}

func TestAnotherIndexOfADeclaredNameIsLeftAlone(t *testing.T) {
	db := withInbox.New(t)
	m := migrator(t, db.DSN, ofInbox)
	db.Exec(t, `drop index inbox_outbox.outbox_ready; create index outbox_ready on inbox_outbox.outbox (available_at)`)
	if _, err := m.Up(bounded(t)); !errors.Is(err, ErrIndexDiffers) {
		t.Errorf("up: %v", err)
	}
	if n := db.Int(t, `select count(*) from pg_class where relname = 'outbox_ready'`); n != 1 {
		t.Error("the index is gone")
	}
}

// Tables of these names that are somebody else's stop the migration, and stay as they are.
func TestInboxOutboxTakesOverNoTable(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `create schema inbox_outbox; create table inbox_outbox.outbox (available_at timestamptz, record_id int, delivered_at int);
create index outbox_ready on inbox_outbox.outbox (record_id)`)
	before := db.Int(t, relations)
	if _, err := migrator(t, db.DSN, ofInbox).Up(bounded(t)); err == nil || !strings.Contains(err.Error(), "not recorded as ours") {
		t.Errorf("up: %v", err)
	}
	if n := db.Int(t, relations); n != before {
		t.Errorf("%d things came or went", n-before)
	}
}

// Each constraint refuses what it is for, by its name, and nothing beside it.
func TestTheTablesOfInboxOutboxRefuseWhatCannotBe(t *testing.T) {
	db := withInbox.New(t)
	db.Exec(t, `alter database `+pgx.Identifier{db.Text(t, `select current_database()`)}.Sanitize()+` set search_path = inbox_outbox`)
	conn := db.Conn(t)
	inbox := func(columns, values string) string {
		return fmt.Sprintf(`insert into inbox (handler, event_id, %s) values ('h', gen_random_uuid()::text, %s)`, columns, values)
	}
	outbox := func(columns, values string) string {
		return fmt.Sprintf(`insert into outbox (event_id, topic, body, %s) values (gen_random_uuid()::text, 't', '{}', %s)`, columns, values)
	}
	const lock, claim = "lock_token, locked_until", "claim_token, claimed_until, available_at"
	for _, c := range []struct{ sql, constraint string }{
		{`insert into inbox (handler, event_id) values ('', 'e')`, "inbox_handler_check"},
		{`insert into inbox (handler, event_id) values ('h', '')`, "inbox_event_id_check"},
		{`insert into inbox (handler, event_id) values ('h', 'e')`, ""},
		{`insert into inbox (handler, event_id) values ('g', 'e')`, ""},
		{`insert into inbox (handler, event_id) values ('h', 'e')`, "inbox_pkey"},
		{inbox("attempts", "-1"), "inbox_attempts_check"},
		{inbox("state", "'done'"), "inbox_state_check"},
		{inbox("state", "'Completed'"), "inbox_state_check"},
		{inbox("state", "'pending'"), ""},
		{inbox("completed_at", "now()"), "inbox_completed_check"},
		{inbox("state", "'completed'"), "inbox_completed_check"},
		{inbox("state, completed_at", "'completed', now()"), ""},
		{`update inbox set state = 'pending' where state = 'completed'`, "inbox_completed_check"},
		{`update inbox set completed_at = null where state = 'completed'`, "inbox_completed_check"},
		{`update inbox set completed_at = now() where state = 'pending'`, "inbox_completed_check"},
		{`update inbox set state = 'completed' where state = 'pending'`, "inbox_completed_check"},
		{inbox(lock, "gen_random_uuid(), now()"), ""},
		{inbox(lock, "gen_random_uuid(), null"), "inbox_lock_check"},
		{inbox(lock, "null, now()"), "inbox_lock_check"},
		{inbox("state, completed_at, "+lock, "'completed', now(), gen_random_uuid(), now()"), "inbox_unlocked_check"},
		{`insert into outbox (event_id, topic, body) values ('', 't', '{}')`, "outbox_event_id_check"},
		{`insert into outbox (event_id, topic, body) values ('e', '', '{}')`, "outbox_topic_check"},
		{`insert into outbox (event_id, topic, body) values ('e', 't', '{}')`, ""},
		{`insert into outbox (event_id, topic, body) values ('e', 'u', '{}')`, "outbox_event_id_key"},
		{outbox("attempts", "-1"), "outbox_attempts_check"},
		{outbox("headers", "'[]'"), "outbox_headers_check"},
		{outbox("headers", `'{"a": "b"}'`), ""},
		{outbox(claim, "gen_random_uuid(), now(), now()"), ""},
		{outbox(claim, "gen_random_uuid(), null, now()"), "outbox_claim_check"},
		{outbox(claim, "null, now(), now()"), "outbox_claim_check"},
		{outbox(claim, "gen_random_uuid(), now(), now() - interval '1 second'"), "outbox_available_check"},
		{outbox("delivered_at", "now()"), ""},
		{outbox("delivered_at, "+claim, "now(), gen_random_uuid(), now(), now()"), "outbox_delivered_check"},
		{`insert into leases values ('', 'p', 'w', gen_random_uuid(), now())`, "leases_handler_check"},
		{`insert into leases values ('h', 'p', '', gen_random_uuid(), now())`, "leases_holder_check"},
		{`insert into leases values ('h', '', 'w', gen_random_uuid(), now())`, ""},
		{`insert into leases values ('h', '', 'v', gen_random_uuid(), now())`, "leases_pkey"},
		{`insert into settings (fingerprint, settings, recorded_by) values (repeat('A', 64), '{}', 'x')`, "settings_fingerprint_check"},
		{`insert into settings (fingerprint, settings, recorded_by) values (repeat('a', 63), '{}', 'x')`, "settings_fingerprint_check"},
		{`insert into settings (single, fingerprint, settings, recorded_by) values (false, repeat('a', 64), '{}', 'x')`, "settings_single_check"},
		{`insert into settings (fingerprint, settings, recorded_by) values (repeat('a', 64), '{}', 'x')`, ""},
		{`insert into settings (fingerprint, settings, recorded_by) values (repeat('b', 64), '{}', 'x')`, "settings_pkey"},
	} {
		_, err := conn.Exec(t.Context(), c.sql)
		var pg *pgconn.PgError
		switch {
		case c.constraint == "" && err != nil:
			t.Errorf("%s: %v", c.sql, err)
		case c.constraint != "" && (!errors.As(err, &pg) || pg.ConstraintName != c.constraint):
			t.Errorf("%s: %v, want %s", c.sql, err, c.constraint)
		}
	}
	for _, s := range inboxoutbox.States() {
		for completed, right := range map[string]bool{"now()": s == inboxoutbox.Completed, "null": s == inboxoutbox.Pending} {
			if _, err := conn.Exec(t.Context(), inbox("state, completed_at", "'"+string(s)+"', "+completed)); (err == nil) != right {
				t.Errorf("%s completed at %s: %v", s, completed, err)
			}
		}
	}
}
