package migrations

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// withConnections is a database with all of connections.
var withConnections = pgtest.NewTemplate("connections", install("connections"))

func ofConnections(o *Options) { o.Component = "connections" }

func TestConnectionsAreInstalledAndGoDownEmptyOnly(t *testing.T) {
	db := pgtest.New(t)
	before := db.Int(t, relations)
	m := migrator(t, db.DSN, ofConnections)
	state(t, m, "not installed")
	down(t, m, "")
	up(t, m, "1 create_table")
	up(t, m)
	if s := state(t, m, "up to date"); s.Schema != "public" {
		t.Errorf("status %+v", s)
	}
	db.Exec(t, `insert into connections (tenant_id, id, kind, name) values ('t', 'c', 'k', 'n')`)
	if _, err := m.Down(bounded(t)); !errors.Is(err, ErrHoldsRows) || !strings.Contains(err.Error(), `"public".connections is not empty`) {
		t.Errorf("down over a row: %v", err)
	}
	if n := db.Int(t, `select count(*) from connections`); n != 1 {
		t.Errorf("%d rows are left", n)
	}
	state(t, m, "up to date")
	db.Exec(t, `delete from connections`)
	down(t, m, "1 create_table")
	state(t, m, "not installed")
	if n := db.Int(t, relations); n != before+2 { // the ledger and its key stay
		t.Errorf("%d things are left", n-before)
	}
	up(t, m, "1 create_table")
}

// Wherever the migration fails, there is nothing left of it, and it can be run again.
func TestAFailedMigrationOfConnectionsLeavesNothing(t *testing.T) {
	db := pgtest.New(t)
	before := db.Int(t, relations)
	for _, tag := range []string{"CREATE TABLE", "CREATE INDEX"} {
		db.Exec(t, `create function fail() returns event_trigger language plpgsql as $$ begin raise 'no further'; end $$;
create event trigger fail on ddl_command_end when tag in ('`+tag+`') execute function fail()`)
		m := migrator(t, db.DSN, ofConnections)
		if done, err := m.Up(bounded(t)); err == nil || !strings.Contains(err.Error(), "no further") || len(done) != 0 {
			t.Errorf("%s: applied %v, %v", tag, done, err)
		}
		if n := db.Int(t, relations); n != before {
			t.Errorf("%s: %d things are left", tag, n-before)
		}
		db.Exec(t, `drop event trigger fail; drop function fail`)
		state(t, m, "not installed")
	}
	up(t, migrator(t, db.DSN, ofConnections), "1 create_table")
}

// A table of this name that is somebody else's stops the migration, and stays as it is.
func TestConnectionsTakeOverNoTable(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `create table connections (tenant_id text, created_at timestamptz, id text, revoked_at timestamptz)`)
	before := db.Int(t, relations)
	if _, err := migrator(t, db.DSN, ofConnections).Up(bounded(t)); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("up: %v", err)
	}
	if n := db.Int(t, relations); n != before {
		t.Errorf("%d things came or went", n-before)
	}
}

func TestALostIndexOfConnectionsIsBuiltAgain(t *testing.T) {
	for how, c := range map[string]struct{ lose, fault string }{
		"dropped":   {`drop index connections_listed`, "is missing"},
		"not valid": {`update pg_index set indisvalid = false where indexrelid = 'connections_listed'::regclass`, "is not valid"},
	} {
		t.Run(how, func(t *testing.T) {
			db := withConnections.New(t)
			m := migrator(t, db.DSN, ofConnections)
			db.Exec(t, c.lose)
			state(t, m, "damaged: index connections_listed "+c.fault)
			if done := up(t, m, "1 create_table"); !done[0].Rebuilt {
				t.Error("not said to be rebuilt")
			}
			state(t, m, "up to date")
		})
	}
}

// Each constraint refuses what it is for, by its name, and nothing beside it.
func TestTheTableOfConnectionsRefusesWhatCannotBe(t *testing.T) {
	db := withConnections.New(t)
	conn := db.Conn(t)
	with := func(columns, values string) string {
		return fmt.Sprintf(`insert into connections (tenant_id, id, kind, name, %s) values ('t', gen_random_uuid()::text, 'k', 'n', %s)`, columns, values)
	}
	text := func(column string, value string) string {
		row := map[string]string{"tenant_id": "'t'", "id": "gen_random_uuid()::text", "kind": "'k'", "name": "'n'"}
		row[column] = value
		return fmt.Sprintf(`insert into connections (tenant_id, id, kind, name) values (%s, %s, %s, %s)`, row["tenant_id"], row["id"], row["kind"], row["name"])
	}
	type refusal struct{ sql, constraint string }
	all := []refusal{
		{`insert into connections (tenant_id, id, kind, name) values ('t', 'c', 'k', 'n')`, ""},
		{`insert into connections (tenant_id, id, kind, name) values ('t', 'c', 'k', 'n')`, "connections_pkey"},
		{`insert into connections (tenant_id, id, kind, name) values ('T', 'c', 'k', 'n')`, ""},
		{`insert into connections (tenant_id, id, kind, name) values ('t ', 'c', 'k', 'n')`, ""},
		{`insert into connections (tenant_id, id, kind, name) values ('t', 'C', 'k', 'n')`, ""},
		{with("settings", `'[]'`), "connections_settings_check"},
		{with("settings", `'null'`), "connections_settings_check"},
		{with("settings", `'{"a": [1]}'`), ""},
		{with("secret", `''`), "connections_secret_check"},
		{with("secret", `'x'`), ""},
		{with("secret", fmt.Sprintf(`repeat('x', %d)::bytea`, connections.MaxSecret)), ""},
		{with("secret", fmt.Sprintf(`repeat('x', %d)::bytea`, connections.MaxSecret+1)), "connections_secret_check"},
		{with("created_at", `now() + interval '1 microsecond'`), "connections_updated_check"},
		{with("updated_at", `now() - interval '1 microsecond'`), "connections_updated_check"},
		{with("created_at", `now() - interval '1 day'`), ""},
		{with("created_at", `'-infinity'`), "connections_times_check"},
		{with("updated_at", `'infinity'`), "connections_times_check"},
		{with("revoked_at", `'infinity'`), "connections_times_check"},
		{with("revoked_at", `now()`), ""},
		{with("revoked_at", `now() - interval '1 microsecond'`), "connections_revoked_check"},
		{with("revoked_at, secret", `now(), 'x'`), "connections_revoked_secret_check"},
		{`update connections set secret = 'x' where revoked_at is not null`, "connections_revoked_secret_check"},
		{`update connections set name = 'm', updated_at = clock_timestamp() where revoked_at is not null`, "connections_revoked_check"},
		{`update connections set revoked_at = now() where secret is not null`, "connections_revoked_secret_check"},
	}
	for _, column := range []string{"tenant_id", "id", "kind", "name"} {
		name := "connections_" + column + "_check"
		all = append(all, refusal{text(column, "''"), name}, refusal{text(column, "'  '"), name}, refusal{text(column, "' x '"), ""},
			refusal{text(column, fmt.Sprintf("repeat('é', %d) || 'x'", connections.MaxText/2)), ""}, refusal{text(column, fmt.Sprintf("repeat('é', %d)", connections.MaxText/2+1)), name})
	}
	for _, c := range all {
		_, err := conn.Exec(t.Context(), c.sql)
		var pg *pgconn.PgError
		switch {
		case c.constraint == "" && err != nil:
			t.Errorf("%s: %v", c.sql, err)
		case c.constraint != "" && (!errors.As(err, &pg) || pg.ConstraintName != c.constraint):
			t.Errorf("%s: %v, want %s", c.sql, err, c.constraint)
		}
	}
	// The other constraints of the table than those are not null.
	if n := db.Int(t, `select count(*) from pg_constraint where conrelid = 'connections'::regclass and contype <> 'n'`); n != 11 {
		t.Errorf("there are %d constraints, and each is to be tried", n)
	}
}
