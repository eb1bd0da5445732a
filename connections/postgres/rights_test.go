package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/internal/pgtest"
	engine "github.com/prunectl/prunectl/pruner/postgres"
)

// as connects as a role with these rights and no others.
func as(t *testing.T, db *pgtest.DB, role, rights string) *pgx.Conn {
	t.Helper()
	pgtest.Role(t, role, "login")
	db.Exec(t, `grant `+rights+` on connections to `+role)
	conn, err := pgx.Connect(t.Context(), db.DSNAs(role))
	must(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// denied holds that a right is missing, and that the error says which are needed.
func denied(t *testing.T, what string, err error) {
	t.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42501" || !strings.Contains(err.Error(), "needs USAGE on the schema, and SELECT, INSERT and UPDATE on the table connections; a purge needs DELETE too") {
		t.Errorf("%s: %v", what, err)
	}
}

// Who works with connections needs no right to delete one.
func TestEachDoesHisPartWithTheLeastRights(t *testing.T) {
	db := installed.New(t)
	app := as(t, db, "connections_app", "select, insert, update")
	s, name := store(app), "m"
	create(t, app, "t", "c")
	create(t, app, "t", "d")
	_, err := s.Create(bounded(t), draft("t", "c"))
	if !errors.Is(err, connections.ErrExists) {
		t.Error(err)
	}
	_, err = s.Update(bounded(t), "t", "c", connections.Change{Name: &name})
	must(t, err)
	_, err = s.Get(bounded(t), "t", "c")
	must(t, err)
	_, err = s.List(bounded(t), "t", connections.Page{})
	must(t, err)
	_, err = s.Revoke(bounded(t), "t", "c")
	must(t, err)
	n, err := s.Purge(bounded(t), "t")
	var refused *engine.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "missing: DELETE on public.connections") {
		t.Errorf("purge: %v", err)
	}
	if left := count(t, db, "t"); n != 0 || left != 2 {
		t.Errorf("%d removed, %d left", n, left)
	}

	reader := as(t, db, "connections_reader", "select")
	_, err = store(reader).Get(bounded(t), "t", "d")
	must(t, err)
	_, err = store(reader).Create(bounded(t), draft("t", "e"))
	denied(t, "create", err)
	_, err = store(reader).Revoke(bounded(t), "t", "d")
	denied(t, "revoke", err)

	if n, err := s.Purge(bounded(t), "nobody"); n != 0 || err != nil {
		t.Errorf("purge nobody: %d, %v", n, err)
	}
	purger := as(t, db, "connections_purger", "select, update, delete")
	if n, err := store(purger).Purge(bounded(t), "t"); n != 2 || err != nil {
		t.Errorf("purge: %d, %v", n, err)
	}
}

// Rows that a policy hides are not taken for none.
func TestAPurgeDoesNotPassForDoneWhereAPolicyHidesRows(t *testing.T) {
	db := installed.New(t)
	create(t, db.Conn(t), "t", "c")
	db.Exec(t, `alter table connections enable row level security`)
	purger := as(t, db, "connections_hidden", "select, update, delete")
	if n, err := store(purger).Purge(bounded(t), "t"); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	} else {
		denied(t, "purge", err)
	}
}
