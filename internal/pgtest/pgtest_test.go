package pgtest_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var built atomic.Int32

var rows = pgtest.NewTemplate("rows", func(ctx context.Context, dsn string) error {
	built.Add(1)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "create table rows as select g as id from generate_series(1, 1000) g")
	return err
})

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	var names []string
	t.Run("clones", func(t *testing.T) {
		for range 3 {
			db, empty := rows.New(t), pgtest.New(t)
			names = append(names, db.Name, empty.Name)
			t.Run("clone", func(t *testing.T) {
				t.Parallel()
				db.Exec(t, "delete from rows where id <= $1", 10)
				if n := db.Int(t, "select count(*) from rows"); n != 990 {
					t.Errorf("%d rows", n)
				}
				empty.Exec(t, "create table a (); create table b ()")
				if s := empty.Text(t, "select to_regclass('rows') is null and to_regclass('b') is not null"); s != "t" {
					t.Errorf("empty: %s", s)
				}
				db.Conn(t)
				db.Pool(t) // both open until the test's end
			})
		}
	})
	if built.Load() != 1 {
		t.Errorf("the template was built %d times", built.Load())
	}
	db := pgtest.New(t)
	if n := db.Int(t, "select count(*) from pg_database where datname = any ($1)", names); n != 0 {
		t.Errorf("%d of %q were not dropped", n, names)
	}
	if n := db.Int(t, "select count(*) from pg_database where datname = $1", db.Name); n != 1 {
		t.Errorf("%d databases of the name %s", n, db.Name)
	}
}

func TestDroppedThoughSomebodyIsConnected(t *testing.T) {
	var conn *pgx.Conn
	t.Run("owner", func(t *testing.T) {
		db := pgtest.New(t)
		db.Abandon()
		var err error
		if conn, err = pgx.Connect(t.Context(), db.DSN); err != nil {
			t.Fatal(err)
		}
	})
	if conn.Ping(context.Background()) == nil {
		t.Error("the database is still there")
	}
}

func TestConnections(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = "one" })
	pool := db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1; c.ConnConfig.RuntimeParams["application_name"] = "two" })
	var one, two string
	if err := conn.QueryRow(t.Context(), "show application_name").Scan(&one); err != nil {
		t.Fatal(err)
	}
	if err := pool.QueryRow(t.Context(), "show application_name").Scan(&two); err != nil {
		t.Fatal(err)
	}
	if one != "one" || two != "two" || pool.Config().MaxConns != 1 {
		t.Errorf("%q, %q", one, two)
	}
}

func TestText(t *testing.T) {
	db := pgtest.New(t)
	for sql, want := range map[string]string{
		"select 'a b'::text":                          "a b",
		"select 12.50::numeric":                       "12.50",
		"select '{1,2}'::int[]":                       "{1,2}",
		"select true":                                 "t",
		"select timestamptz '2020-01-02 03:04:05+02'": "2020-01-02 01:04:05+00",
		"select interval '1 day 2 hours'":             "1 day 02:00:00",
	} {
		if got := db.Text(t, sql); got != want {
			t.Errorf("%s: %q, not %q", sql, got, want)
		}
	}
	if got := db.Text(t, "select $1::int + 1", 1); got != "2" {
		t.Errorf("%q", got)
	}
	if got := db.Int(t, "select sum(g) from generate_series(1, $1::bigint) g", 10); got != 55 {
		t.Errorf("%d", got)
	}
}

func TestSettingsOfOurOwnServer(t *testing.T) {
	if os.Getenv(pgtest.EnvDSN) != "" {
		return // that server's settings are its owner's
	}
	db := pgtest.New(t)
	for name, want := range map[string]string{"autovacuum": "off", "fsync": "off", "jit": "on", "TimeZone": "UTC", "shared_buffers": "256MB", "max_connections": "200", "track_io_timing": "off"} {
		if got := db.Text(t, "show "+name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}

func TestRole(t *testing.T) {
	db := pgtest.New(t)
	for range 2 {
		pgtest.Role(t, "pgtest_reader", "login")
	}
	db.Exec(t, "create table t (); grant select on t to pgtest_reader")
	conn, err := pgx.Connect(t.Context(), db.DSNAs("pgtest_reader"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err = conn.Exec(t.Context(), "select from t"); err != nil {
		t.Error(err)
	}
	var pg *pgconn.PgError
	if _, err = conn.Exec(t.Context(), "delete from t"); !errors.As(err, &pg) || pg.Code != "42501" {
		t.Errorf("a right that was not given: %v", err)
	}
}

func TestHelpersLeaveNoGoroutine(t *testing.T) {
	db := rows.New(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db.Exec(t, "select 1; select 2")
	db.Int(t, "select 1")
	rows.New(t)
}

func TestOwn(t *testing.T) {
	p := pgtest.Own(t, pgserver.Options{})
	s := pgtest.Own(t, pgserver.Options{StandbyOf: p, Settings: []string{"work_mem=5MB"}})
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var got string
	if err := conn.QueryRow(t.Context(), "select pg_is_in_recovery() || current_setting('work_mem') || current_setting('autovacuum')").Scan(&got); err != nil || got != "true5MBoff" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPrograms(t *testing.T) {
	for _, name := range []string{"psql", "pgbench", "isolationtester"} {
		if out, err := exec.Command(pgtest.Program(t, name), "-V").CombinedOutput(); err != nil || !strings.Contains(string(out), "PostgreSQL") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if pgtest.Major(t) < 14 || pgtest.BinDir(t) == "" {
		t.Error(pgtest.Major(t), pgtest.BinDir(t))
	}
}

// again runs one test of this binary in another process.
func again(t *testing.T, test string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The server that PRUNECTL_TEST_DSN names goes first; it may want a password,
// and no database of ours stays on it.
func TestNamedServer(t *testing.T) {
	s := pgtest.Own(t, pgserver.Options{Password: "se/cr:et"})
	for _, test := range []string{"TestEachTestHasADatabaseOfItsOwn", "TestRole"} {
		out, err := again(t, test, pgtest.EnvDSN+"="+s.DSN("postgres"), pgserver.EnvBinDir+"=/none/such")
		if err != nil || !strings.Contains(out, "PASS") || !strings.Contains(out, pgtest.EnvDSN) {
			t.Errorf("%v: %s", err, out)
		}
	}
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var left []string
	if err := conn.QueryRow(t.Context(), "select array_agg(datname::text order by datname) from pg_database").Scan(&left); err != nil || strings.Join(left, " ") != "postgres template0 template1" {
		t.Errorf("%v, %v", left, err)
	}
}

func TestNoServerIsAFailureThatSaysWhatToDo(t *testing.T) {
	out, err := again(t, "TestRole", pgtest.EnvDSN+"=", pgserver.EnvBinDir+"=/none/such")
	if err == nil || strings.Contains(out, "SKIP") {
		t.Errorf("%v: %s", err, out)
	}
	for _, want := range []string{"/none/such", pgserver.EnvBinDir, pgtest.EnvDSN, "containers", "install PostgreSQL"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said: %s", want, out)
		}
	}
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword("u", "se/cr:et"), Host: "127.0.0.1:1", Path: "/postgres"}
	out, err = again(t, "TestRole", pgtest.EnvDSN+"="+dsn.String())
	if err == nil || !strings.Contains(out, pgtest.EnvDSN) {
		t.Errorf("%v: %s", err, out)
	}
	for _, secret := range []string{"se/cr:et", dsn.User.String(), "se%2Fcr"} {
		if strings.Contains(out, secret) {
			t.Errorf("the password is printed: %s", out)
		}
	}
}
