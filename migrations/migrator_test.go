package migrations

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestUpInstallsAndThenHasNothingToDo(t *testing.T) {
	db := pgtest.New(t)
	m := migrator(t, db.DSN)
	up(t, m, "1 create_tables", "2 add_retention_index")
	up(t, m)

	s := state(t, m, "up to date")
	if s.Component != "run_events" || s.Schema != "public" || *s.Installed != 2 || s.Known != 2 {
		t.Errorf("status %+v", s)
	}
	if s.Applied.IsZero() || s.Applied.Location().String() != "UTC" {
		t.Errorf("applied %s", s.Applied)
	}
	if got := db.Text(t, `select indexdef from pg_indexes where indexname = 'run_events_retention'`); got !=
		"CREATE INDEX run_events_retention ON public.run_events USING btree (created_at, tenant_id, run_id, sequence)" {
		t.Errorf("index %s", got)
	}
}

func TestTheTableTakesTheDeclaredStatesAndNoOther(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for _, s := range eventlog.States() {
		if _, err := conn.Exec(t.Context(), `insert into runs (tenant_id, id, status) values ('t', $1, $1)`, string(s)); err != nil {
			t.Errorf("state %s: %v", s, err)
		}
	}
	for _, s := range []string{"done", "Completed", "", "complete"} {
		if _, err := conn.Exec(t.Context(), `insert into runs (tenant_id, id, status) values ('t', 'x', $1)`, s); err == nil {
			t.Errorf("state %q was taken", s)
		}
	}
	if got, want := db.Int(t, `select count(*) from runs`), int64(len(eventlog.States())); got != want {
		t.Errorf("%d runs, want %d", got, want)
	}
}

func TestStatusOfAnEmptyDatabaseIsNotInstalledAndCreatesNothing(t *testing.T) {
	db := pgtest.New(t)
	before := db.Int(t, `select count(*) from pg_class`)
	for _, schema := range []string{"public", "nowhere"} {
		s := state(t, migrator(t, db.DSN, inSchema(schema)), "not installed")
		if s.Installed != nil || !s.Applied.IsZero() || len(s.Pending) != 2 {
			t.Errorf("status %+v", s)
		}
	}
	down(t, migrator(t, db.DSN), "")
	if after := db.Int(t, `select count(*) from pg_class`); after != before {
		t.Errorf("%d relations, %d before", after, before)
	}
}

func TestDownOfTheIndexKeepsTheTableAndItsRows(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, fill)
	m := migrator(t, db.DSN)
	down(t, m, "2 add_retention_index")

	if n := db.Int(t, validity); n != -1 {
		t.Errorf("the index is there (validity %d)", n)
	}
	if n := db.Int(t, `select count(*) from public.run_events`); n != 200 {
		t.Errorf("%d events left of 200", n)
	}
	if n := db.Int(t, `select count(*) from public.runs`); n != 10 {
		t.Errorf("%d runs left of 10", n)
	}
	state(t, m, "pending: 2 add_retention_index")
	up(t, m, "2 add_retention_index")
}

func TestDownDropsNoTableThatHoldsRows(t *testing.T) {
	for _, rows := range []string{
		`insert into runs (tenant_id, id, status) values ('t', 'r', 'queued')`,
		`insert into run_events (tenant_id, run_id, sequence, type, event) values ('t', 'gone', 1, 'x', '{}')`,
	} {
		db := installed.New(t)
		m := migrator(t, db.DSN)
		db.Exec(t, rows)
		down(t, m, "2 add_retention_index")
		_, err := m.Down(bounded(t))
		if !errors.Is(err, ErrHoldsRows) || !strings.Contains(err.Error(), "empty both tables") {
			t.Fatalf("down of a table with rows: %v", err)
		}
		if n := db.Int(t, `select (select count(*) from runs) + (select count(*) from run_events)`); n != 1 {
			t.Errorf("%d rows left of 1", n)
		}
		state(t, m, "pending: 2 add_retention_index")
	}
}

func TestDownOfEmptyTablesLeavesNothingInstalled(t *testing.T) {
	db := installed.New(t)
	m := migrator(t, db.DSN)
	down(t, m, "2 add_retention_index")
	down(t, m, "1 create_tables")
	state(t, m, "not installed")
	down(t, m, "")
	if n := db.Int(t, `select count(*) from pg_class where relname in ('runs', 'run_events')`); n != 0 {
		t.Errorf("%d tables left", n)
	}
	up(t, m, "1 create_tables", "2 add_retention_index")
}

func TestASchemaNewerThanTheBinaryIsRefused(t *testing.T) {
	db := installed.New(t)
	m := migrator(t, db.DSN)
	db.Exec(t, `insert into prunectl_run_events_migrations (version, name) values (3, 'from_the_future')`)

	_, errUp := m.Up(bounded(t))
	_, errDown := m.Down(bounded(t))
	for way, err := range map[string]error{"up": errUp, "down": errDown} {
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "is at version 3, this one knows up to 2") {
			t.Errorf("%s: %v", way, err)
		}
	}
	if s := state(t, m, "newer than this binary"); *s.Installed != 3 || s.Known != 2 {
		t.Errorf("status %+v", s)
	}
	if n := db.Int(t, `select count(*) from prunectl_run_events_migrations`); n != 3 {
		t.Errorf("%d records of 3", n)
	}
	// The refusal gave its lock back.
	db.Exec(t, `delete from prunectl_run_events_migrations where version = 3`)
	up(t, migrator(t, db.DSN))
}

func TestAnyNameOfASchemaWorks(t *testing.T) {
	db := pgtest.New(t)
	for _, name := range []string{`Runs of "Bob"; --x`, `it's a \schema`, `a.b`, `select`, `$1 %s {{.}}`, `a USING btree (b) WHERE c`} {
		quoted := pgx.Identifier{name}.Sanitize()
		db.Exec(t, `create schema `+quoted)
		m := migrator(t, db.DSN, inSchema(name))
		state(t, m, "not installed")
		up(t, m, "1 create_tables", "2 add_retention_index")
		state(t, m, "up to date")
		down(t, m, "2 add_retention_index")
		db.Exec(t, `insert into `+quoted+`.runs (tenant_id, id, status) values ('t', 'r', 'queued')`)
		if _, err := m.Down(bounded(t)); !errors.Is(err, ErrHoldsRows) || !strings.Contains(err.Error(), quoted+".runs") {
			t.Errorf("schema %q: %v", name, err)
		}
		db.Exec(t, `delete from `+quoted+`.runs`)
		down(t, m, "1 create_tables")
		if n := db.Int(t, `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and relkind = 'r'`, name); n != 1 {
			t.Errorf("schema %q: %d tables, want the ledger alone", name, n)
		}
	}
	if n := db.Int(t, `select count(*) from pg_class where relnamespace = 'public'::regnamespace`); n != 0 {
		t.Errorf("%d objects in public", n)
	}
	for _, name := range []string{"a\nb", "a\x00b", "a$prunectl$b"} {
		if _, err := New(&pgx.ConnConfig{}, Options{Component: "run_events", Schema: name}); !errors.Is(err, ErrSchema) {
			t.Errorf("schema %q: %v", name, err)
		}
	}
}

func TestSchemasAreApart(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `create schema other`)
	m := migrator(t, db.DSN, inSchema("other"))
	state(t, m, "not installed")
	up(t, m, "1 create_tables", "2 add_retention_index")
	down(t, m, "2 add_retention_index")
	state(t, migrator(t, db.DSN), "up to date")
}

func TestUpSaysWhatStandsInItsWay(t *testing.T) {
	pgtest.Role(t, "migrations_nobody", "login")
	db := pgtest.New(t)
	db.Exec(t, `create schema closed`)

	readOnly, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	readOnly.RuntimeParams["default_transaction_read_only"] = "on"
	m, err := New(readOnly, Options{Component: "run_events"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()

	for _, c := range []struct {
		m    *Migrator
		want error
		text string
	}{
		{migrator(t, db.DSN, inSchema("nowhere")), ErrSchema, `CREATE SCHEMA "nowhere"`},
		{migrator(t, db.DSNAs("migrations_nobody"), inSchema("closed")), ErrSchema, `GRANT CREATE ON SCHEMA "closed" TO "migrations_nobody"`},
		{m, ErrReadOnly, "primary"},
	} {
		for way, f := range map[string]func(context.Context) error{
			"up":   func(ctx context.Context) error { _, err := c.m.Up(ctx); return err },
			"down": func(ctx context.Context) error { _, err := c.m.Down(ctx); return err },
		} {
			if err := f(bounded(t)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v, want %q with %q", way, err, c.want, c.text)
			}
		}
	}

	db.Exec(t, `create table public.runs (id int)`)
	if _, err := migrator(t, db.DSN).Up(bounded(t)); err == nil || !strings.Contains(err.Error(), "not recorded as ours") {
		t.Errorf("a table of somebody else's: %v", err)
	}
	if n := db.Int(t, `select count(*) from pg_attribute where attrelid = 'public.runs'::regclass and attnum > 0`); n != 1 {
		t.Errorf("their table has %d columns", n)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	if _, err := New(&pgx.ConnConfig{}, Options{Component: "runevents"}); !errors.Is(err, ErrUnknownComponent) || !strings.Contains(err.Error(), "run_events") {
		t.Errorf("unknown component: %v", err)
	}
	if _, err := New(&pgx.ConnConfig{}, Options{Component: "run_events", LockWait: -1}); err == nil {
		t.Error("a negative wait was taken")
	}
}

// A role's timeouts are made for queries, and would end a long build.
func TestTheSessionHasNoTimeouts(t *testing.T) {
	db := pgtest.New(t)
	config, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[name] = "60s"
	}
	m, err := New(config, Options{Component: "run_events"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name := range config.RuntimeParams {
		if !strings.HasSuffix(name, "_timeout") {
			continue
		}
		var value string
		if err := m.db.QueryRow(`select current_setting($1)`, name).Scan(&value); err != nil || value != "0" {
			t.Errorf("%s is %s, %v", name, value, err)
		}
	}
}
