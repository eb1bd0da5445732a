//go:build unix

package pgserver

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(deadline(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(deadline(t), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func text(t *testing.T, conn *pgx.Conn, sql string) (s string) {
	t.Helper()
	if err := conn.QueryRow(deadline(t), sql).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func do(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(deadline(t), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left behind: %v", path, err)
	}
}

// tempFolder makes a folder for temporary files that the server's user can
// reach, and at the end asserts that it is empty.
func tempFolder(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	if got := tempParent(); got != dir {
		t.Fatalf("servers' folders go to %s, not to %s", got, dir)
	}
	t.Cleanup(func() {
		left, _ := os.ReadDir(dir)
		for _, e := range left {
			t.Errorf("left behind: %s", e.Name())
		}
		_ = os.RemoveAll(dir)
	})
}

func TestStart(t *testing.T) {
	tempFolder(t)
	s := start(t, Options{Superuser: "demo", Settings: []string{"work_mem=5MB", "listen_addresses=*"}})
	for _, dsn := range []string{s.DSN("postgres"), s.SocketDSN("postgres")} {
		conn := connect(t, dsn)
		for sql, want := range map[string]string{
			"select current_user::text": "demo",
			"show work_mem":             "5MB",
			"show listen_addresses":     "127.0.0.1", // whatever the settings say
			"show fsync":                "off",
			"show server_encoding":      "UTF8",
			"show data_directory":       s.Data,
			"select (select count(*) from pg_stat_replication)::text": "0",
		} {
			if got := text(t, conn, sql); got != want {
				t.Errorf("%s: %q, not %q", sql, got, want)
			}
		}
		if v := text(t, conn, "show server_version"); v != s.Version && !strings.HasPrefix(v, s.Version+" ") {
			t.Errorf("version %q, the server says %q", s.Version, v)
		}
		if v := text(t, conn, "show server_version_num"); !strings.HasPrefix(v, strconv.Itoa(s.Major)) || s.Major < oldest {
			t.Errorf("major %d, the server says %q", s.Major, v)
		}
	}
	if !strings.Contains(s.How, s.BinDir) {
		t.Errorf("%q does not say where the programs are", s.How)
	}
	pid := s.cmd.Process.Pid
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	gone(t, s.dir)
	if alive(pid) {
		t.Error("the server still runs")
	}
	if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))); err == nil {
		_ = c.Close()
		t.Error("the port still answers")
	}
}

func TestPasswordIsAskedOfEveryone(t *testing.T) {
	s := start(t, Options{Password: `a/b'c d\e`, Durable: true})
	for _, dsn := range []string{s.DSN("postgres"), s.SocketDSN("postgres")} {
		if got := text(t, connect(t, dsn), "show fsync"); got != "on" {
			t.Errorf("durable: fsync is %s", got)
		}
		u := strings.Replace(dsn, s.user().String(), "postgres", 1)
		var pg *pgconn.PgError
		if _, err := pgx.Connect(deadline(t), u); err == nil || errors.As(err, &pg) && !strings.HasPrefix(pg.Code, "28") {
			t.Errorf("without the password: %v", err)
		}
	}
}

func TestKillAndRestart(t *testing.T) {
	s := start(t, Options{})
	conn := connect(t, s.DSN("postgres"))
	do(t, conn, "create table kept (n int)")
	for n, kill := range []func(){
		func() { s.Kill(true) },
		func() { s.Kill(false) },
		func() {}, // Restart alone shuts it down first
	} {
		do(t, conn, "insert into kept values (1)")
		kill()
		before := s.DSN("postgres")
		if err := s.Restart(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if s.DSN("postgres") != before {
			t.Error("the connection string has changed")
		}
		if conn.Ping(deadline(t)) == nil {
			t.Error("a connection outlived the server")
		}
		if recovered := strings.Contains(s.Log(), "not properly shut down"); recovered != (n == 0) {
			t.Errorf("restart %d: recovered: %v", n, recovered)
		}
		conn = connect(t, s.DSN("postgres"))
		if got := text(t, conn, "select count(*)::text from kept"); got != strconv.Itoa(n+1) {
			t.Errorf("restart %d: %s rows", n, got)
		}
	}
}

func TestStandby(t *testing.T) {
	o := Options{Superuser: "demo", Password: `a/b'c d\e`}
	data, remove, err := NewTemplate(deadline(t), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Template = data
	p := start(t, o)
	o.StandbyOf = p
	s := start(t, o)
	if err := remove(); err != nil {
		t.Error(err)
	}
	gone(t, data)
	pc := connect(t, p.DSN("postgres"))
	do(t, pc, "create table t as select g from generate_series(1, 1000) g")
	lsn := text(t, pc, "select pg_current_wal_lsn()::text")
	sc, ctx := connect(t, s.DSN("postgres")), deadline(t)
	for text(t, sc, "select (coalesce(pg_last_wal_replay_lsn(), '0/0') >= '"+lsn+"')::text") != "true" {
		if ctx.Err() != nil {
			t.Fatal(s.Log())
		}
		time.Sleep(5 * time.Millisecond) // between looks
	}
	if got := text(t, sc, "select count(*)::text || pg_is_in_recovery() from t"); got != "1000true" {
		t.Error(got)
	}
}

func TestStartFailsCleanly(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		o    Options
		want string
	}{
		"ended context":      {ended, Options{}, "context canceled"},
		"argument of initdb": {deadline(t), Options{InitArgs: []string{"--none-such"}}, "none-such"},
		"setting":            {deadline(t), Options{Settings: []string{"none_such=1"}}, "none_such"},
		"folder":             {deadline(t), Options{BinDir: "/none/such"}, "/none/such"},
		"template":           {deadline(t), Options{Template: "/none/such"}, "/none/such"},
	} {
		t.Run(name, func(t *testing.T) {
			tempFolder(t)
			s, err := Start(c.ctx, c.o)
			if err == nil {
				_ = s.Stop()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v does not say %q", err, c.want)
			}
		})
	}
}

// A start that is cancelled at any moment leaves nothing behind.
func TestStartCancelled(t *testing.T) {
	tempFolder(t)
	for _, after := range []int{20, 100, 300, 500, 700} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(after)*time.Millisecond)
		if s, err := Start(ctx, Options{}); err == nil {
			_ = s.Stop()
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d ms: %v", after, err)
		}
		cancel()
	}
}
