package postgres

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/pruner"
)

// TestRoundTrips counts, in every exec mode, what a batch sends and how often it waits for the server: once, and where the
// simple protocol is asked for once more for COMMIT.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for _, m := range execModes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			p := newProxy(t, r.admin)
			s := r.sweeper(t, Options{OneSweeper: true}, p.through, mode(m))
			var sent, named, commits, ready int
			kinds := map[byte]int{}
			var mu sync.Mutex
			p.on(func(m message) verdict {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case m.fromServer && m.kind == 'Z':
					ready++
				case !m.fromServer:
					sent++
					kinds[m.kind]++
					if m.kind == 'P' && !strings.HasPrefix(m.body, "\x00") {
						named++
					}
					if m.sql() == "COMMIT" {
						commits++
					}
				}
				return pass
			})
			res := s.prune(t.Context()).must(t)
			p.on(nil)
			same(t, "the batch", counts(res), undisturbed)
			simple := m == pgx.QueryExecModeSimpleProtocol
			trips := map[bool]int{false: 1, true: 2}[simple]
			same(t, "round trips", ready, trips)
			same(t, "commits", commits, 1)
			same(t, "named statements", named, 0)
			if simple {
				same(t, "queries and other messages", []int{kinds['Q'], sent - kinds['Q']}, []int{2, 0})
			} else {
				// BEGIN, SET CONSTRAINTS, settings, batch, after and COMMIT; a flush before COMMIT and a sync behind it.
				same(t, "parses, executes, flushes, syncs and queries", []int{kinds['P'], kinds['E'], kinds['H'], kinds['S'], kinds['Q']}, []int{6, 6, 1, 1, 0})
			}
			var prepared int
			if err := s.conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeSimpleProtocol).Scan(&prepared); err != nil {
				t.Fatal(err)
			}
			same(t, "prepared statements", prepared, 0)
			same(t, "left", r.leftNow(t), sweptClean)
		})
	}
}

// TestPooler drains through a pgbouncer that lends its one server connection for a transaction at a time, in every exec
// mode, two drains beside each other and a session that is in nobody's way. It runs where there is a pgbouncer.
func TestPooler(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	through, log := pooled(t, r.admin.Config(), 1)
	before := r.poolerState(t, through)
	for _, m := range execModes {
		t.Run(m.String(), func(t *testing.T) {
			r.Exec(t, events(800))
			due, kept := int(r.Int(t, dueEvents)), r.Int(t, keptEvents)
			one, two := r.sweeper(t, Options{}, through, mode(m)), r.sweeper(t, Options{}, through, mode(m)).counted()
			d1, d2 := one.drain(t.Context(), drain.Bounds{Limit: 50}), two.drain(t.Context(), drain.Bounds{Limit: 50})
			r1, r2 := d1.must(t), d2.must(t)
			same(t, "removed by both", r1.Removed+r2.Removed, due)
			same(t, "stops", []drain.Stop{r1.Stop, r2.Stop}, []drain.Stop{drain.StopDrained, drain.StopDrained})
			same(t, "left due", r.Int(t, dueEvents), int64(0))
			same(t, "kept", r.Int(t, keptEvents), kept)
			r.Exec(t, r.rows)
			gated := r.sweeper(t, Options{OneSweeper: true}, through, mode(m))
			same(t, "one sweeper", counts(gated.prune(t.Context()).must(t)), undisturbed)
			same(t, "one sweeper again", gated.prune(t.Context()).must(t).Busy, false)
		})
	}
	t.Run("canceled", func(t *testing.T) {
		r.Exec(t, r.rows)
		s, holder := r.sweeper(t, Options{}, through), r.Conn(t)
		mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
		ctx, cancel := context.WithCancel(t.Context())
		batch := s.prune(ctx)
		r.until(t, "the batch waits", "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
		cancel()
		res, err := batch.end(t)
		if err == nil || as[*pruner.UnknownCommitError](err) {
			t.Errorf("%+v, %v", res, err)
		}
		mustExec(t, holder, "COMMIT")
		same(t, "left", r.leftNow(t), allEvents)
		same(t, "the next batch", counts(s.prune(t.Context()).must(t)), undisturbed)
	})
	if after := r.poolerState(t, through); after != before {
		t.Errorf("left behind on the server connection:\n%s", difference(before, after))
	}
	if t.Failed() {
		b, _ := os.ReadFile(log)
		t.Logf("pgbouncer: %s", b)
	}
}

// poolerState is what the pooler's server connection has kept, for whoever gets it next.
func (r *race) poolerState(t *testing.T, through func(*pgx.ConnConfig)) string {
	t.Helper()
	conn := r.Conn(t, through, mode(pgx.QueryExecModeSimpleProtocol))
	rows, err := conn.Query(t.Context(), `SELECT pg_backend_pid() || '' UNION ALL SELECT name || '=' || setting FROM pg_settings WHERE source = 'session' AND name <> 'application_name'
UNION ALL SELECT 'prepared ' || name FROM pg_prepared_statements UNION ALL SELECT 'lock ' || mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// poolerProgram is the path of pgbouncer.
func poolerProgram(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("no pgbouncer; the gate has to install it")
			}
			t.Skip("no pgbouncer; a Debian package has it")
		}
	}
	return program
}

// pooled has a connection go through a pooler in transaction mode, with so many connections to the server of a database. It
// returns the file of the pooler's log too.
func pooled(t *testing.T, server *pgx.ConnConfig, connections int) (through func(*pgx.ConnConfig), log string) {
	t.Helper()
	port, log := startPooler(t, poolerProgram(t), server, connections)
	return func(c *pgx.ConnConfig) { c.Host, c.Port, c.TLSConfig, c.Fallbacks = "127.0.0.1", port, nil, nil }, log
}

// startPooler starts a pgbouncer before a server and returns its port and its log.
func startPooler(t *testing.T, program string, c *pgx.ConnConfig, connections int) (uint16, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "prunectl-pooler-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	password := ""
	if c.Password != "" {
		password = " password='" + strings.ReplaceAll(c.Password, "'", "''") + "'"
	}
	config, log := filepath.Join(dir, "ini"), filepath.Join(dir, "log")
	text := fmt.Sprintf(`[databases]
* = host=%[1]s port=%[2]d user=%[3]s%[4]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[5]d
unix_socket_dir =
auth_type = any
default_pool_size = %[6]d
max_db_connections = %[6]d
pool_mode = transaction
ignore_startup_parameters = extra_float_digits
`, c.Host, c.Port, c.User, password, port, connections)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{config}
	if os.Geteuid() == 0 { // which it refuses to run as
		name := "nobody"
		if _, err := user.Lookup("postgres"); err == nil {
			name = "postgres"
		}
		args = []string{"-u", name, config}
	}
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})
	eventually(t, "pgbouncer takes connections", func() bool {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		if b, _ := os.ReadFile(log); bytes.Contains(b, []byte("FATAL")) {
			t.Fatalf("pgbouncer: %s", b)
		}
		return err == nil
	})
	return uint16(port), log
}
