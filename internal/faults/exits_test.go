package faults

import (
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

const secret = "hunter2/@secret"

// exits are faults of what a run says by its end: a code for each kind of it, and its reason on stderr.
var exits = []fault{{
	file: "exit-codes-that-lie", query: countJobs, answer: "3", rows: countJobs,
	steps: []step{
		run{args: "--help", policy: jobsSweep, left: 3, says: []string{"prunectl", "sweep", "plan", "check"}},
		run{args: "sweep --help", policy: jobsSweep, left: 3, says: []string{"Exit codes:", "129, 130, 143"}},
		run{name: "unknown flag", args: "sweep --onyl jobs", policy: jobsSweep, code: 2, left: 3, says: []string{"unknown flag --onyl; did you mean --only?"}},
		run{name: "unknown command", args: "swep", policy: jobsSweep, code: 2, left: 3, says: []string{"unknown command", "sweep"}},
		run{name: "argument", args: "sweep jobs", policy: jobsSweep, code: 2, left: 3, says: []string{"sweep takes no arguments, got \"jobs\"; write --only jobs"}},
		run{name: "no policy file", args: "sweep --policy nowhere.yaml", policy: jobsSweep, code: 2, left: 3, says: []string{"nowhere.yaml", "no such file"}},
		run{name: "policy is a folder", args: "sweep --policy .", policy: jobsSweep, code: 2, left: 3, says: []string{"cannot be read", "is a directory"}},
		run{name: "policy is no YAML", file: "}{", code: 2, left: 3, says: []string{"prunectl.yaml:1:"}},
		run{name: "policy is empty", file: "\n", code: 2, left: 3, says: []string{"prunectl.yaml:1:"}},
		run{name: "wrong password", policy: jobsSweep, dsn: wrongPassword, code: 1, left: 3, says: []string{"cannot connect to database postgres on 127.0.0.1:", "password authentication failed"},
			lacks: []string{secret, url.QueryEscape(secret), "hunter2"}},
		run{name: "nobody listens", policy: jobsSweep, dsn: nobody, code: 1, left: 3, says: []string{"cannot connect to database app on 127.0.0.1:", "connection refused"}, lacks: []string{"hunter2"}},
		run{name: "no such host", policy: jobsSweep, dsn: func(*scene) string { return "postgres://app:" + url.QueryEscape(secret) + "@no-such-host.invalid/app" }, code: 1, left: 3,
			says: []string{"cannot connect to database app on no-such-host.invalid:5432"}, lacks: []string{"hunter2"}},
		run{name: "no such database", policy: jobsSweep, dsn: func(s *scene) string { return strings.Replace(s.db.DSN, s.db.Name, "nowhere", 1) }, code: 1, left: 3, says: []string{`database "nowhere" does not exist`}},
		run{name: "table missing", policy: with(named(jobsSweep, "ghosts"), "table: ghosts"), code: 4, outcome: outcome{stop: report.Refused}, left: 3, says: []string{"table public.ghosts does not exist", "1 of 1 sweep refused (exit 4)"}},
		run{name: "ceiling", policy: with(jobsSweep, "ceiling: {rows: 1}"), outcome: outcome{stop: report.Ceiling, by: report.ByRows, removed: 1}, left: 2},
		run{name: "ceiling, and somebody asks", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "ceiling: {rows: 1}"), code: 3, outcome: outcome{stop: report.Ceiling, by: report.ByRows, removed: 1}, left: 1},
		run{name: "table missing for one of two", policy: with(named(jobsSweep, "ghosts"), "table: ghosts") + jobsSweep, code: 4,
			outcome: outcome{sweep: "jobs", stop: report.Drained, removed: 1}, also: []outcome{{sweep: "ghosts", stop: report.Refused}}, says: []string{"1 of 2 sweeps refused (exit 4)"}},
		run{name: "nothing due", policy: jobsSweep, outcome: outcome{stop: report.Drained}},
		add(3),
		run{name: "all fine", args: "sweep --detailed-exitcode", policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 3}},
		add(3),
		run{name: "reader gone", args: "sweep -o json", policy: jobsSweep, stdout: readerGone, code: 1, says: []string{"the result could not be written", "removed=3"}},
		add(3),
		run{name: "disk full", policy: jobsSweep, args: "sweep -o table", stdout: full, code: 1, says: []string{"the result could not be written", "no space left on device", "removed=3"}},
		run{name: "help and disk full", args: "--help", policy: jobsSweep, stdout: full, code: 1, says: []string{"the result could not be written"}},
	},
}}

func add(n int) step {
	return sql("insert into jobs (state, created_at, finished_at) select 'done', now() - interval '40 days', now() - interval '39 days' from generate_series(1, " + string(rune('0'+n)) + ")")
}

// wrongPassword leads to a server that asks for a password, with another one.
func wrongPassword(s *scene) string {
	server := pgtest.Own(s.t, pgserver.Options{Password: "the right one"})
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), secret)
	return u.String()
}

// nobody leads to a port on which nobody listens.
func nobody(s *scene) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	return "postgres://app:" + url.QueryEscape(secret) + "@" + l.Addr().String() + "/app?sslmode=disable"
}

// readerGone is a pipe that nobody reads any more.
func readerGone(t testing.TB) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

// full is a file on a disk without room.
func full(t testing.TB) *os.File {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
