package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/proctest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// example is the built program, and a database for it.
type example struct {
	*testing.T
	db     *pgtest.DB
	binary string
}

func newExample(t *testing.T) *example {
	t.Helper()
	return &example{T: t, db: pgtest.New(t), binary: proctest.Build(t, "worker", ".")}
}

func (e *example) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.binary, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+e.db.DSN)
	return cmd
}

// do runs a command to its end, and returns what it printed.
func (e *example) do(args ...string) string {
	e.Helper()
	out, err := e.command(args...).CombinedOutput()
	if err != nil {
		e.Fatalf("worker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// running is a worker at work.
type running struct {
	e   *example
	cmd *exec.Cmd
	log proctest.Buffer
}

// start starts a worker that is in a hurry: what takes it a minute otherwise takes it a part of a second here.
func (e *example) start(args ...string) *running {
	e.Helper()
	r := &running{e: e, cmd: e.command(append([]string{"run", "-poll", "10ms", "-interval", "50ms", "-lease", "3s"}, args...)...)}
	r.cmd.Stderr = &r.log
	proctest.Start(e, r.cmd)
	return r
}

// kill ends it as a power cut would.
func (r *running) kill() {
	r.e.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		r.e.Fatalf("it had ended: %v\n%s", err, r.log.String())
	}
	proctest.Wait(r.e, r.cmd, time.Minute)
}

// term asks it to end.
func (r *running) term() {
	r.e.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.e.Fatalf("it had ended: %v\n%s", err, r.log.String())
	}
}

// end asks it to end, and waits until it has.
func (r *running) end() {
	r.e.Helper()
	r.term()
	r.ended()
}

func (r *running) ended() {
	r.e.Helper()
	if code := proctest.Wait(r.e, r.cmd, 2*time.Minute); code != 0 || !strings.Contains(r.log.String(), "has ended") {
		r.e.Fatalf("it ended with exit code %d\n%s", code, r.log.String())
	}
}

// says waits until the log has a text.
func (r *running) says(text string) {
	r.e.Helper()
	r.log.Await(r.e, text, time.Minute)
}

// until waits for something that the workers do.
func (e *example) until(what string, query string, args ...any) {
	e.Helper()
	for deadline := time.Now().Add(time.Minute); e.db.Text(e.T, query, args...) != "t"; {
		if time.Now().After(deadline) {
			e.Fatalf("after a minute it is still not so that %s\n%s", what, e.do("show"))
		}
		time.Sleep(10 * time.Millisecond) // between looks
	}
}

func (e *example) zero(what string, query string, args ...any) {
	e.Helper()
	if n := e.db.Int(e.T, query, args...); n != 0 {
		e.Errorf("%s: %d", what, n)
	}
}

const (
	nothingOwed = `SELECT NOT EXISTS (SELECT FROM domain_event_deliveries WHERE status IN ('pending', 'claimed', 'failed'))`
	waiting     = `SELECT count(*) = $1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	deleting    = `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
	alone       = `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`
)
