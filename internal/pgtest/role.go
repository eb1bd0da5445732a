package pgtest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Role makes a role where there is none of that name: Role(t, "sweeper",
// "login"). Roles belong to the server, not to a database, and stay: tests
// that need different attributes use different names.
func Role(t testing.TB, name, attrs string) {
	t.Helper()
	in := need(t)
	sql := "create role " + ident(name) + " " + attrs
	// The superuser's own password, if there is one, so that DSNAs works on a
	// server that does not trust us.
	if u, err := url.Parse(in.dsn); err == nil {
		if password, ok := u.User.Password(); ok {
			sql += " password '" + strings.ReplaceAll(password, "'", "''") + "'"
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := in.exec(ctx, sql)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42710" || pg.Code == "23505") {
		return // it exists; the second code is that of two who make it at once
	}
	if err != nil {
		t.Fatalf("pgtest: create role %s %s: %v", ident(name), attrs, err)
	}
}
