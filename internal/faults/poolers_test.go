package faults

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/proctest"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

var smallBatches = with(jobsSweep, "batch: {limit: 10}")

// poolers are faults of what lies between the command and the server.
var poolers = []fault{
	{
		file: "pooler-in-transaction-mode", as: "through PgBouncer", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			sql("create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.001); return old; end $$; create trigger jobs_slow before delete on jobs for each row execute function slow()"),
			act(throughPooler),
		},
	},
	{
		file: "pooler-in-transaction-mode", as: "in each exec mode", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			inMode("cache_statement", 400), inMode("cache_describe", 300), inMode("describe_exec", 200), inMode("exec", 100), inMode("simple_protocol", 0),
			run{name: "nothing more", policy: smallBatches, outcome: outcome{stop: report.Drained}},
		},
	},
}

func inMode(mode string, left int) run {
	// At the last one all rows are gone, but rows of one age say so only to a batch that finds no more of them.
	return run{name: mode, args: "sweep --max-rows 100", policy: smallBatches, params: "default_query_exec_mode=" + mode,
		outcome: outcome{stop: report.Budget, by: report.ByRows, removed: 100, batches: 10}, left: left}
}

// throughPooler has a run of the command and two sweeps of the library, in the driver's own mode, share two connections of
// the server with a client that asks on and on.
func throughPooler(s *scene) {
	dsn := startPooler(s.t, s.db.DSN)
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	connect := func(mode pgx.QueryExecMode) *pgxpool.Pool {
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			s.t.Fatal(err)
		}
		config.MaxConns, config.ConnConfig.DefaultQueryExecMode = 2, mode
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			s.t.Fatal(err)
		}
		s.entry.Cleanup(pool.Close)
		return pool
	}

	asking, stopAsking := context.WithCancel(ctx)
	asked := make(chan error, 1)
	client := connect(pgx.QueryExecModeExec)
	go func() {
		for asking.Err() == nil {
			var n int
			if err := client.QueryRow(ctx, "select 1").Scan(&n); err != nil {
				asked <- err
				return
			}
		}
		asked <- nil
	}()

	var wg sync.WaitGroup
	reports := make([]drain.Report, 2)
	errs := make([]error, 2)
	for i := range reports {
		pool := connect(pgx.QueryExecModeCacheStatement)
		a, sw, err := openArms(ctx, pool, smallBatches)
		if err != nil {
			s.t.Fatal(err)
		}
		server, err := postgres.Identify(ctx, postgres.Pool(pool))
		if err != nil {
			s.t.Fatal(err)
		}
		wg.Go(func() { reports[i], errs[i] = drain.Run(ctx, a[0], sw.Window.Cutoff(server.Now), boundsOf(sw)) })
	}
	through := run{name: "the command", policy: smallBatches, dsn: func(*scene) string { return dsn }, outcome: outcome{stop: report.Drained, removed: anything}, others: true, left: anything,
		lacks: []string{"42P05", "26000", "prepared statement"}}
	moved := 0
	// Rows that the others take while a batch waits for them are moved; how many is chance.
	through.moved = anything
	through.checked = func(_ *scene, r report.Report) { moved = r.Totals.Removed }
	through.do(s)
	wg.Wait()
	stopAsking()
	if err := <-asked; err != nil {
		s.t.Errorf("the client that asks: %v", err)
	}
	sum := moved
	for i, r := range reports {
		if errs[i] != nil {
			s.t.Errorf("sweep %d: %+v, %v", i, r, errs[i])
		}
		sum += r.Removed
	}
	if n := s.count(); n != 0 || sum != 500 {
		s.t.Errorf("%d rows are left, and %d are counted as removed", n, sum)
	}
	for range 10 { // of either connection
		var set string
		err := client.QueryRow(ctx, "select current_setting('row_security') || ' ' || current_setting('jit') || ' ' || current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')").Scan(&set)
		if err != nil || set != "on on 0 0" {
			s.t.Fatalf("a setting of a batch is on somebody else's connection: %s, %v", set, err)
		}
	}
}

// pooled are the faults that are looked for through PgBouncer too: all of the statements' own, and of what others do
// meanwhile. What the rest is about does not depend on who carries the statements.
var pooled = slices.Concat(guards, parents, outboxes, races, windows, instants)

// TestFaultsThroughAPooler carries them out with a pooler in transaction mode before the server, one for each entry. Those
// with a role or a connection of their own stay out: the pooler has one user, and refuses settings of a connection.
func TestFaultsThroughAPooler(t *testing.T) {
	if testing.Short() {
		t.Skip("what a pooler does to a batch does not depend on the server")
	}
	bin := proctest.Build(t, "prunectl", "github.com/prunectl/prunectl/cmd/prunectl")
	n := 0
	for _, f := range pooled {
		f, ok := f.throughPooler()
		if !ok {
			continue
		}
		n++
		t.Run(f.name(), func(t *testing.T) {
			t.Parallel()
			f.carryOut(t, bin)
		})
	}
	if n < len(pooled)/2 {
		t.Errorf("only %d of %d faults were looked for", n, len(pooled))
	}
}

// throughPooler is the fault with runs that go through a pooler, if all of them can.
func (f fault) throughPooler() (fault, bool) {
	var once sync.Once
	var pooler string
	through := func(s *scene) string {
		once.Do(func() { pooler = startPooler(s.entry, s.db.DSN) })
		return pooler
	}
	steps := slices.Clone(f.steps)
	for i, st := range steps {
		if r, ok := st.(run); ok {
			if r.role != "" || r.params != "" || r.dsn != nil {
				return f, false
			}
			r.dsn = through
			steps[i] = r
		}
	}
	f.steps = steps
	return f, true
}

func boundsOf(s policy.Sweep) drain.Bounds {
	return drain.Bounds{Limit: s.Batch.Limit, BatchTarget: s.Batch.Target}
}

// startPooler starts PgBouncer in transaction mode in front of a server, with two connections to it, and says where it is.
func startPooler(t *testing.T, server string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(path); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("pgbouncer is not there; install it: %v", err)
			}
			t.Skip("pgbouncer is not there; install it to run this: ", err)
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	_, port, _ := net.SplitHostPort(listen)
	l.Close()

	// Its user, where root may not run it, is another than ours.
	dir, err := os.MkdirTemp("", "prunectl-pooler-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	to := fmt.Sprintf("host=%s port=%s user=%s", u.Hostname(), u.Port(), u.User.Username())
	if password, ok := u.User.Password(); ok {
		to += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(strings.Join([]string{
		"[databases]", "* = " + to,
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + port, "unix_socket_dir =", "auth_type = any",
		"pool_mode = transaction", "default_pool_size = 2", "max_client_conn = 50", "",
	}, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{config}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.Command(path, args...)
	var said proctest.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("pgbouncer ended: %v\n%s", err, said.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("pgbouncer does not answer: %v\n%s", err, said.String())
		}
	}
	return fmt.Sprintf("postgres://%s@%s%s?sslmode=disable", u.User.Username(), listen, u.Path)
}
