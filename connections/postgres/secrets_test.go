package postgres_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/tracelog"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/connectionstest"
	"github.com/prunectl/prunectl/connections/postgres"
)

// sealed is short enough to be in a DETAIL as a whole.
var sealed = []byte("sk_live_4eC39HqLyjWDarjt")

// chain is an error with all that it wraps, each printed in every form.
func chain(err error) string {
	var b strings.Builder
	for ; err != nil; err = errors.Unwrap(err) {
		b.WriteString(connectionstest.Printed(err))
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				b.WriteString(chain(e))
			}
		}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		b.WriteString(connectionstest.Printed(*pg))
	}
	return b.String()
}

// Whatever a server says that has a secret in it, by a constraint, an index, a cast or a trigger of somebody's, on the way in or
// of a row that is there: nothing of it is in an error, in no exec mode, also not for errors.As.
func TestNoErrorOfTheServerShowsASecret(t *testing.T) {
	trigger := func(when, raise string) string {
		return `create function say() returns trigger language plpgsql as $$ begin ` + raise + `; return null; end $$; create trigger say before ` + when + ` on connections for each row execute function say()`
	}
	const secretOf = `convert_from(%s.secret, 'UTF8')`
	create := func(s *postgres.Store) error {
		d := draft("t", "new")
		d.Secret = connections.NewSecret(sealed)
		_, err := s.Create(context.Background(), d)
		return err
	}
	name, secret := "m", connections.NewSecret(sealed)
	rename := func(s *postgres.Store) error {
		_, err := s.Update(context.Background(), "t", "c", connections.Change{Name: &name})
		return err
	}
	update := func(s *postgres.Store) error {
		_, err := s.Update(context.Background(), "t", "c", connections.Change{Secret: &secret})
		return err
	}
	revoke := func(s *postgres.Store) error { _, err := s.Revoke(context.Background(), "t", "c"); return err }
	purge := func(s *postgres.Store) error { _, err := s.Purge(context.Background(), "t"); return err }
	get := func(s *postgres.Store) error { _, err := s.Get(context.Background(), "t", "c"); return err }
	for what, c := range map[string]struct {
		sql  string
		call func(*postgres.Store) error
		code string
		raw  string // a statement by which the server does say it
	}{
		"a check, creating":         {`alter table connections add constraint mine check (id <> 'new')`, create, "23514", `insert into connections (tenant_id, id, kind, name, secret) values ('u', 'new', 'k', 'n', $1)`},
		"a check, renaming":         {`alter table connections add constraint mine check (name <> 'm')`, rename, "23514", `update connections set name = 'm' where secret = $1`},
		"a column that is not null": {`alter table connections add more text not null default 'x'; alter table connections alter more drop default`, create, "23502", `insert into connections (tenant_id, id, kind, name, secret) values ('u', 'new', 'k', 'n', $1)`},
		"a unique index":            {`create unique index mine on connections (secret)`, create, "23505", `insert into connections (tenant_id, id, kind, name, secret) values ('u', 'new', 'k', 'n', $1)`},
		"a cast":                    {`alter table connections add constraint mine check (length(name) > 1 or (convert_from(secret, 'UTF8'))::int > 0) not valid`, update, "22P02", `update connections set secret = $1`},
		"a trigger's message":       {trigger("insert", fmt.Sprintf(`raise 'no %%', `+secretOf, "new")), create, "P0001", `insert into connections (tenant_id, id, kind, name, secret) values ('u', 'new', 'k', 'n', $1)`},
		"a trigger's detail":        {trigger("update", fmt.Sprintf(`raise 'no' using detail = `+secretOf+`, hint = `+secretOf, "old", "old")), rename, "P0001", `update connections set name = 'm' where secret = $1`},
		"a trigger's other fields":  {trigger("update", fmt.Sprintf(`raise check_violation using message = `+secretOf+`, column = `+secretOf+`, datatype = `+secretOf, "new", "new", "new")), update, "23514", `update connections set secret = $1`},
		"a trigger's code":          {trigger("update", fmt.Sprintf(`raise insufficient_privilege using message = `+secretOf, "new")), update, "42501", `update connections set secret = $1`},
		"a trigger's constraint":    {trigger("update", fmt.Sprintf(`raise check_violation using message = `+secretOf+`, constraint = 'mine'`, "new")), update, "23514", `update connections set secret = $1`},
		"a trigger, revoking":       {trigger("update", fmt.Sprintf(`raise 'no %%', `+secretOf, "old")), revoke, "P0001", `update connections set revoked_at = now() where secret = $1`},
		"a trigger, purging":        {trigger("delete", fmt.Sprintf(`raise 'no %%', `+secretOf, "old")), purge, "P0001", `delete from connections where secret = $1`},
		"a policy, getting": {`create function said(b bytea) returns bool language plpgsql as $$ begin raise 'no %', convert_from(b, 'UTF8'); end $$; alter table connections rename to kept;
create view connections as select * from kept where said(secret)`, get, "P0001", `select from connections where secret = $1`},
	} {
		t.Run(what, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, `insert into connections (tenant_id, id, kind, name, secret) values ('t', 'c', 'k', 'n', $1)`, sealed)
			db.Exec(t, c.sql)
			var said *pgconn.PgError
			_, err := db.Conn(t).Exec(t.Context(), c.raw, sealed)
			if !errors.As(err, &said) || said.Code != c.code || !connectionstest.Shows(connectionstest.Printed(*said), sealed) {
				t.Fatalf("the server itself does not say it: %v", err)
			}
			for _, mode := range modes {
				err := c.call(store(db.Pool(t, in(mode))))
				var pg *pgconn.PgError
				if !errors.As(err, &pg) || pg.Code != c.code {
					t.Errorf("%s: %v, want %s", mode, err, c.code)
					continue
				}
				if text := chain(err); connectionstest.Shows(text, sealed) {
					t.Errorf("%s: the secret is in %s", mode, text)
				}
				if pg.Detail+pg.Hint+pg.Where+pg.InternalQuery+pg.ColumnName+pg.DataTypeName != "" {
					t.Errorf("%s: there is more in it than is ours: %+v", mode, *pg)
				}
			}
		})
	}
}

// What the driver says of a value that it can not read has the value in it, and is not handed on.
func TestNoErrorOfTheDriverShowsASecret(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `insert into connections (tenant_id, id, kind, name, secret) values ('t', 'c', 'k', 'n', $1)`, sealed)
	db.Exec(t, `alter table connections rename to kept;
create view connections as select tenant_id, id, kind, name, settings, secret, convert_from(secret, 'UTF8') as created_at, updated_at, revoked_at from kept`)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		_, err := store(db.Pool(t, in(mode))).Get(t.Context(), "t", "c")
		if err == nil || connectionstest.Shows(chain(err), sealed) || !strings.Contains(err.Error(), "column created_at is not as the migrations make it") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// A tracer that prints the arguments of each statement prints no secret.
func TestNoTracerOfPgxSeesASecret(t *testing.T) {
	db := installed.New(t)
	for _, mode := range modes {
		var mu sync.Mutex
		var log strings.Builder
		logger := tracelog.LoggerFunc(func(_ context.Context, _ tracelog.LogLevel, msg string, data map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			j, _ := json.Marshal(data) // what can not be encoded shows nothing
			fmt.Fprintf(&log, "%s %v %+v %#v %s\n", msg, data, data, data, j)
		})
		pool := db.Pool(t, in(mode), func(c *pgxpool.Config) {
			c.ConnConfig.Tracer = &tracelog.TraceLog{Logger: logger, LogLevel: tracelog.LogLevelTrace}
		})
		s, secret := store(pool), connections.NewSecret(sealed)
		d := draft("t", mode.String())
		d.Secret = secret
		_, err := s.Create(t.Context(), d)
		must(t, err)
		_, err = s.Update(t.Context(), "t", mode.String(), connections.Change{Secret: &secret})
		must(t, err)
		got, err := s.Get(t.Context(), "t", mode.String())
		must(t, err)
		if !got.Secret.Equal(secret) {
			t.Errorf("%s: another secret was kept", mode)
		}
		mu.Lock()
		if !strings.Contains(log.String(), "INSERT INTO") || !strings.Contains(log.String(), mode.String()) || connectionstest.Shows(log.String(), sealed) {
			t.Errorf("%s: the log has the secret, or not the statement:\n%s", mode, log.String())
		}
		mu.Unlock()
	}
}

// What the package's documentation says of the server's own log, which can be asked to speak to the client too.
func TestTheServersLogHasParametersUnlessItIsToldNotTo(t *testing.T) {
	db := installed.New(t)
	for name, c := range map[string]struct {
		mode pgx.QueryExecMode
		set  map[string]string
		want bool
	}{
		"logged":            {pgx.QueryExecModeExec, map[string]string{"log_statement": "mod"}, true},
		"slow ones":         {pgx.QueryExecModeExec, map[string]string{"log_min_duration_statement": "0"}, true},
		"without values":    {pgx.QueryExecModeExec, map[string]string{"log_statement": "all", "log_min_duration_statement": "0", "log_parameter_max_length": "0"}, false},
		"in the text":       {pgx.QueryExecModeSimpleProtocol, map[string]string{"log_statement": "all", "log_parameter_max_length": "0"}, true},
		"without being set": {pgx.QueryExecModeExec, nil, false},
	} {
		var log strings.Builder
		conn := db.Conn(t, func(config *pgx.ConnConfig) {
			config.DefaultQueryExecMode = c.mode
			config.RuntimeParams["client_min_messages"] = "log"
			for k, v := range c.set {
				config.RuntimeParams[k] = v
			}
			config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { fmt.Fprintln(&log, n.Message, n.Detail) }
		})
		d := draft("t", name)
		d.Secret = connections.NewSecret(sealed)
		_, err := store(conn).Create(t.Context(), d)
		must(t, err)
		if got := strings.Contains(log.String(), hex.EncodeToString(sealed)); got != c.want {
			t.Errorf("%s: it is in the log: %t\n%s", name, got, log.String())
		}
	}
	// Of a row that is refused there are 64 characters of each column.
	db.Exec(t, `alter table connections add constraint mine check (id <> 'new')`)
	_, err := db.Conn(t).Exec(t.Context(), `insert into connections (tenant_id, id, kind, name, secret) values ('t', 'new', 'k', 'n', $1)`, append(sealed, sealed...))
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !strings.Contains(pg.Detail, (`\x` + hex.EncodeToString(append(sealed, sealed...)))[:64]+"...") {
		t.Errorf("%+v", pg)
	}
}
