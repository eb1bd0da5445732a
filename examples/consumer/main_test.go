package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
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
	env    []string
}

func newExample(t *testing.T) *example {
	t.Helper()
	db := pgtest.New(t)
	return &example{T: t, db: db, binary: proctest.Build(t, "consumer", "."), env: append(os.Environ(), "DATABASE_URL="+db.DSN, "CONSUMER_SCHEMA=")}
}

func (e *example) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.binary, args...)
	cmd.Env = e.env
	return cmd
}

// do runs a command to its end, and returns what it printed.
func (e *example) do(args ...string) string {
	e.Helper()
	out, err := e.command(args...).CombinedOutput()
	if err != nil {
		e.Fatalf("consumer %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// refused runs a command that has to fail, and to say all of says.
func (e *example) refused(args []string, says ...string) string {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.binary, args...)
	cmd.Env = e.env
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		e.Fatalf("consumer %s was not refused: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, s := range says {
		if !strings.Contains(string(out), s) {
			e.Errorf("consumer %s says\n%swhich does not have %q", strings.Join(args, " "), out, s)
		}
	}
	return string(out)
}

// roleSQL are the least rights.
func roleSQL(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("role.sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// running is a consumer at work.
type running struct {
	e   *example
	cmd *exec.Cmd
	log proctest.Buffer
}

// hurry makes parts of a second of what takes longer otherwise.
var hurry = []string{"run", "-listen", "127.0.0.1:0", "-poll", "10ms", "-hold", "3s", "-ack-timeout", "1s", "-recheck", "100ms"}

// start starts a consumer that is in a hurry, and waits until it is at work.
func (e *example) start(args ...string) *running {
	e.Helper()
	r := &running{e: e, cmd: e.command(append(append([]string{}, hurry...), args...)...)}
	r.cmd.Stderr = &r.log
	proctest.Start(e, r.cmd)
	r.says("is at work")
	return r
}

// says waits until the log has a text.
func (r *running) says(text string) {
	r.e.Helper()
	r.log.Await(r.e, text, time.Minute)
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// get asks a consumer by HTTP.
func (r *running) get(path string) (int, string) {
	r.e.Helper()
	response, err := http.Get(address.FindString(r.log.String()) + path)
	if err != nil {
		r.e.Fatalf("%v\n%s", err, r.log.String())
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.e.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// answers waits until readiness is answered with a status and a text.
func (r *running) answers(status int, text string) {
	r.e.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got, body := r.get("/readyz")
		if got == status && strings.Contains(body, text) {
			return
		}
		if time.Now().After(deadline) {
			r.e.Fatalf("after a minute /readyz is %d %s; want %d %s\n%s", got, body, status, text, r.log.String())
		}
		time.Sleep(10 * time.Millisecond) // between looks
	}
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

// until waits for something that the consumers do.
func (e *example) until(what string, query string, args ...any) {
	e.Helper()
	for deadline := time.Now().Add(2 * time.Minute); e.db.Text(e.T, query, args...) != "t"; {
		if time.Now().After(deadline) {
			e.Fatalf("after two minutes it is still not so that %s\n%s", what, e.do("show"))
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

// counts holds show to what it should print.
func (e *example) counts(sent, messages, bookings, mails, unfinished, completed, undelivered, delivered int64) {
	e.Helper()
	want := []int64{sent, messages, bookings, mails, unfinished, completed, undelivered, delivered}
	for i, line := range strings.Split(strings.TrimSpace(e.do("show")), "\n") {
		fields := strings.Fields(line)
		if got := fields[len(fields)-1]; i >= len(want) || got != e.db.Text(e.T, `SELECT $1::bigint`, want[i]) {
			e.Errorf("%s; want %d", line, want[min(i, len(want)-1)])
		}
	}
}

// once holds that every payment to an open account is booked once and its receipt mailed once, and that nothing else is.
func (e *example) once() {
	e.Helper()
	e.zero("payments that are not booked once", `
SELECT count(*) FROM (SELECT DISTINCT event_id, body ->> 'account' AS account FROM broker WHERE topic = 'payments') p
 WHERE (SELECT count(*) FROM bookings b WHERE b.event_id = p.event_id) <> CASE p.account WHEN 'hal' THEN 0 ELSE 1 END`)
	e.zero("bookings whose receipt is not mailed once", `
SELECT count(*) FROM bookings b WHERE (SELECT count(*) FROM mails m WHERE m.event_id = 'receipt-of-' || b.event_id) <> 1`)
	e.zero("bookings of nothing", `SELECT count(*) FROM bookings b WHERE NOT EXISTS (SELECT FROM broker p WHERE p.event_id = b.event_id)`)
	e.zero("mails about nothing", `SELECT count(*) FROM mails m WHERE NOT EXISTS (SELECT FROM bookings b WHERE m.event_id = 'receipt-of-' || b.event_id)`)
	e.zero("accounts whose balance is not the sum of their bookings", `
SELECT count(*) FROM accounts a WHERE balance <> (SELECT coalesce(sum(amount), 0) FROM bookings b WHERE b.account = a.name)`)
}

const (
	allDone = `
SELECT NOT EXISTS (SELECT FROM broker WHERE acked_at IS NULL AND body ->> 'account' <> 'hal')
   AND NOT EXISTS (SELECT FROM inbox_outbox.outbox WHERE delivered_at IS NULL)`
	waiting  = `SELECT count(*) = $1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	deleting = `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
	alone    = `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`
)
