package postgres

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// mustExec runs a script, of several statements if there are no arguments.
func mustExec(t testing.TB, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if len(args) == 0 {
		if _, err := c.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := c.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// inline writes the values into the text, for a tool that takes no parameters.
func (s statement) inline(values map[string]string) string {
	sql := s.sql
	for i := len(s.args) - 1; i >= 0; i-- { // $12 before $1
		sql = strings.ReplaceAll(sql, "$"+strconv.Itoa(i+1)+"::", literal(values[s.args[i]])+"::")
	}
	return sql
}
