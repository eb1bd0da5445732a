package faults

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// fault is an entry of the table.
type fault struct {
	file   string // in testdata, without .sql: the state, and the name of the fault
	as     string // which of the fault's entries it is, where it has several
	roles  string // "name: attributes; ...": roles of the server that the state speaks of
	query  string // the oracle, asked of the fresh state
	answer string // what it must say
	rows   string // a query that counts the rows a run may remove, children too
	steps  []step
}

// step is one thing that happens in the course of an entry: a run of the command, or what somebody else does.
type step interface{ do(s *scene) }

// scene is an entry that is being carried out.
type scene struct {
	t        *testing.T // of the step
	entry    *testing.T // of the whole entry
	bin      string
	rows     string
	db       *pgtest.DB
	sessions map[string]*pgx.Conn
	now      *process // the run that is under way; nil: none
}

// in is the same scene for a step that is a test of its own.
func (s *scene) in(t *testing.T) *scene {
	c := *s
	c.t = t
	return &c
}

func (f fault) name() string {
	if f.as == "" {
		return f.file
	}
	return f.file + ", " + f.as
}

func (f fault) carryOut(t *testing.T, bin string) {
	for role := range strings.SplitSeq(f.roles, ";") {
		if name, attrs, ok := strings.Cut(strings.TrimSpace(role), ": "); ok {
			pgtest.Role(t, name, attrs)
		}
	}
	s := &scene{t: t, entry: t, bin: bin, rows: f.rows, db: load(t, f.file), sessions: map[string]*pgx.Conn{}}
	if got := s.db.Text(t, f.query); got != f.answer {
		t.Fatalf("the oracle says %s instead of %s:\n%s", got, f.answer, f.query)
	}
	for _, step := range f.steps {
		step.do(s)
		if t.Failed() {
			return // what follows stands on it
		}
	}
}

// load makes a database in the state of a file.
func load(t testing.TB, file string) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	fill(t, db, file)
	return db
}

// fill brings an empty database into the state of a file.
func fill(t testing.TB, db *pgtest.DB, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// One at a time, as psql would: VACUUM takes no transaction of several. A statement ends with its line.
	for statement := range strings.SplitAfterSeq(string(text), ";\n") {
		if err := conn.PgConn().Exec(ctx, statement).Close(); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, statement)
		}
	}
}

// sql is SQL that a superuser runs to its end.
type sql string

func (e sql) do(s *scene) {
	s.t.Helper()
	s.db.Exec(s.t, string(e))
}

// session is SQL on a connection that stays open, of the name A where none is given: other statements follow on it.
type session struct{ name, text string }

func (o session) do(s *scene) {
	s.t.Helper()
	conn := s.sessions[o.name]
	if conn == nil {
		conn = s.db.Conn(s.entry)
		s.sessions[o.name] = conn
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := conn.PgConn().Exec(ctx, o.text).Close(); err != nil {
		s.t.Fatalf("session %s: %v\n%s", o.name, err, o.text)
	}
}

// fact is a query and what it must say.
type fact struct{ query, answer string }

func (f fact) do(s *scene) {
	s.t.Helper()
	if got := s.db.Text(s.t, f.query); got != f.answer {
		s.t.Errorf("it is %s instead of %s:\n%s", got, f.answer, f.query)
	}
}

// until waits for what another process does, which tells nobody: the query must come to say true.
type until string

func (u until) do(s *scene) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s.db.Text(s.t, string(u)) == "t" {
			return
		}
	}
	s.t.Fatalf("not within a minute: %s\nstderr so far: %s", u, s.now.said())
}

// act is a step that no other kind of step can say.
type act func(s *scene)

func (a act) do(s *scene) { a(s) }

// What a run under way is doing, as the server sees it.
const (
	waitsForLock until = `select exists (select from pg_stat_activity where application_name = 'prunectl' and wait_event_type = 'Lock' and datname = current_database())`
	deletes      until = `select exists (select from pg_stat_activity where application_name = 'prunectl' and wait_event = 'PgSleep' and datname = current_database())`
	isGone       until = `select not exists (select from pg_stat_activity where application_name = 'prunectl' and datname = current_database())`
)
