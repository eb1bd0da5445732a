//go:build unix

package failures

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// limit is that of a batch in head, in rows, children too.
const limit = 50

// tables are swept: parents with none to four children each, whose deletes the server enters in a ledger, and jobs, which
// have no trigger, so that their deletes are counted by the server's statistics.
const tables = `
create table parents (id bigint primary key, at timestamptz not null, kids int not null, pad text not null default repeat('x', 100));
create index parents_at on parents (at, id);
create table children (id bigint primary key, parent bigint not null);
create index children_parent on children (parent, id);
create table jobs (id bigint primary key, at timestamptz not null, pad text not null default repeat('x', 100));
create index jobs_at on jobs (at, id);
create table ledger (tx bigint not null, name text not null, removed int not null);
create function enter() returns trigger language plpgsql as
  $$ begin insert into ledger select txid_current(), tg_table_name, count(*) from gone having count(*) > 0; return null; end $$;
create trigger entered after delete on parents referencing old table as gone for each statement execute function enter();
create trigger entered after delete on children referencing old table as gone for each statement execute function enter();
`

// rowsSQL fills the tables with $1 parents and $2 jobs, all past their window.
var rowsSQL = []string{
	`insert into parents (id, at, kids) select i, now() - interval '40 days' + i * interval '1 second', i % 5 from generate_series(1, $1::int) i`,
	`insert into children select p.id * 10 + k, p.id from parents p, generate_series(1, p.kids) k`,
	`insert into jobs (id, at) select i, now() - interval '40 days' + i * interval '1 second' from generate_series(1, $1::int) i`,
}

// scene is a database with the tables, and the command that sweeps them.
type scene struct {
	t   *testing.T
	bin string
	db  *pgtest.DB
	dsn string // what the command is given; it may lead through a proxy
	all rows   // what there was at first
}

// rows is how many rows each table has, or had.
type rows struct{ Parents, Children, Jobs int }

func (r rows) sum() int { return r.Parents + r.Children + r.Jobs }

func (r rows) less(o rows) rows {
	return rows{r.Parents - o.Parents, r.Children - o.Children, r.Jobs - o.Jobs}
}

// onShared is a scene on the server of all tests.
func onShared(t *testing.T, parents, jobs int) *scene {
	t.Helper()
	return on(t, pgtest.New(t), parents, jobs)
}

// onOwn is a scene on a server of its own, which may be broken.
func onOwn(t *testing.T, parents, jobs int, o pgserver.Options) (*scene, *pgserver.Server) {
	t.Helper()
	srv := pgtest.Own(t, o)
	return on(t, databaseOf(srv), parents, jobs), srv
}

func databaseOf(srv *pgserver.Server) *pgtest.DB {
	return &pgtest.DB{Name: "postgres", DSN: srv.DSN("postgres")}
}

func on(t *testing.T, db *pgtest.DB, parents, jobs int) *scene {
	t.Helper()
	s := &scene{t: t, bin: command.Path(t), db: db, dsn: db.DSN}
	db.Exec(t, tables)
	s.fill(parents, jobs)
	return s
}

// fill fills the tables, of which nothing is left, and begins the ledger anew.
func (s *scene) fill(parents, jobs int) {
	s.t.Helper()
	s.db.Exec(s.t, "truncate ledger")
	s.db.Exec(s.t, rowsSQL[0], parents)
	s.db.Exec(s.t, rowsSQL[1])
	s.db.Exec(s.t, rowsSQL[2], jobs)
	s.all = s.rows()
}

// rows counts what is there.
func (s *scene) rows() rows {
	s.t.Helper()
	var r rows
	text := s.db.Text(s.t, "select (select count(*) from parents) || ' ' || (select count(*) from children) || ' ' || (select count(*) from jobs)")
	if _, err := fmt.Sscan(text, &r.Parents, &r.Children, &r.Jobs); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// head is that of every file: batches are not adapted, and turns are short.
const head = "version: 1\ndefaults: {schema: public, batch: {limit: 50, target: 1min}}\nbudget: {turn: 5ms}\n"

const childrenKey = "children: [{table: children, key: {id: parent}}]\n"

// policy is the file of both sweeps; keys are further ones of each.
func policy(keys string) string {
	return head + "sweeps:\n" + sweepOf("parents", childrenKey+keys) + sweepOf("jobs", keys)
}

// alone is a file of one sweep.
func alone(table, keys string) string {
	if table == "parents" {
		keys = childrenKey + keys
	}
	return head + "sweeps:\n" + sweepOf(table, keys)
}

func sweepOf(table, keys string) string {
	text := "  " + table + ":\n    table: " + table + "\n    age: at\n    window: 1d\n    guard: {none: \"nothing is owed\"}\n"
	for line := range strings.Lines(keys) {
		text += "    " + strings.TrimSuffix(line, "\n") + "\n"
	}
	return text
}

// whole holds what is left, and what is gone, against what a batch is: a parent is there with all its children or gone with
// all of them, and each transaction that the ledger knows took at most a batch. The ledger has what is gone, and no more.
func (s *scene) whole() (batches int) {
	s.t.Helper()
	const halves = `select count(*) from (select id, kids from parents) p full join (select parent, count(*) as n from children group by parent) c on c.parent = p.id
		where p.id is null or p.kids <> coalesce(c.n, 0)`
	if n := s.db.Int(s.t, halves); n != 0 {
		s.t.Errorf("%d parents are gone or there without some of their children", n)
	}
	gone := s.all.less(s.rows())
	const entered = `select coalesce(sum(removed) filter (where name = 'parents'), 0) || ' parents and ' || coalesce(sum(removed) filter (where name = 'children'), 0) || ' children' from ledger`
	if is, want := s.db.Text(s.t, entered), fmt.Sprintf("%d parents and %d children", gone.Parents, gone.Children); is != want {
		s.t.Errorf("the ledger has %s; gone are %s", is, want)
	}
	if n := s.db.Int(s.t, "select coalesce(max(n), 0) from (select sum(removed) as n from ledger group by tx) x"); n > limit {
		s.t.Errorf("a transaction took %d rows; a batch is at most %d", n, limit)
	}
	return int(s.db.Int(s.t, "select count(distinct tx) from ledger"))
}

// honest holds a report against what is gone since before: exact, or short of it by at most a batch for each commit that it
// says is unknown, and then never with exit code 0.
func (s *scene) honest(before rows, r report.Report) {
	s.t.Helper()
	gone := before.less(s.rows())
	for _, sw := range r.Sweeps {
		said, is := rows{Parents: sw.Removed, Children: sw.Children}, rows{Parents: gone.Parents, Children: gone.Children}
		if sw.Name == "jobs" {
			said, is = rows{Jobs: sw.Removed}, rows{Jobs: gone.Jobs}
		}
		more := is.less(said)
		if more.Parents < 0 || more.Children < 0 || more.Jobs < 0 || more.sum() > limit*sw.UnknownCommits || more.Jobs%limit != 0 {
			s.t.Errorf("sweep %s says that %+v went, and %d unknown commits; gone are %+v", sw.Name, said, sw.UnknownCommits, is)
		}
		if sw.UnknownCommits > 0 && (r.ExitCode != 1 || sw.Stop != report.Failed || sw.Error == nil || !strings.Contains(sw.Error.Message, "unknown")) {
			s.t.Errorf("a commit is unknown, and the report says exit code %d, %+v", r.ExitCode, sw)
		}
	}
	s.t.Logf("gone %+v, said %d and %d children, unknown %d", gone, r.Totals.Removed, r.Totals.Children, unknowns(r))
}

func unknowns(r report.Report) (n int) {
	for _, sw := range r.Sweeps {
		n += sw.UnknownCommits
	}
	return n
}

// quiet waits until nothing of the command is left on the server: no connection, no lock. It says how long that took.
func (s *scene) quiet() time.Duration {
	s.t.Helper()
	began := time.Now()
	s.until("no connection of the command is left", "select not exists (select from pg_stat_activity where application_name = 'prunectl' and datname = current_database())")
	s.until("no lock of the command is left", `select not exists (select from pg_locks where pid <> pg_backend_pid() and database = (select oid from pg_database where datname = current_database())
		and (locktype = 'advisory' or relation in ('parents'::regclass, 'children'::regclass, 'jobs'::regclass)))`)
	return time.Since(began)
}

// until waits for what another process does, which tells nobody: the query must come to say true.
func (s *scene) until(what, query string) {
	s.t.Helper()
	eventually(s.t, what, func() bool { return s.db.Text(s.t, query) == "t" })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 20 seconds: %s", what)
}

// finish is the next run: it takes all that was left, says so exactly, and leaves nothing of its own.
func (s *scene) finish(file string) {
	s.t.Helper()
	before := s.rows()
	r := s.sweep(file).must(s.t, 0)
	s.honest(before, r)
	for _, sw := range r.Sweeps {
		if !sw.Drained {
			s.t.Errorf("the next run leaves %+v", sw)
		}
	}
	if left := s.rows(); left.sum() != 0 {
		s.t.Errorf("the next run leaves %+v", left)
	}
	s.whole()
	s.quiet()
}

// holder locks a row in a transaction of its own, so that the batch that comes to it waits there. It ends with its
// connection.
func (s *scene) holder(table string, id int) *pgx.Conn {
	s.t.Helper()
	conn := s.db.Conn(s.t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := conn.Exec(ctx, fmt.Sprintf("begin; select from %s where id = %d for update", table, id)); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// waits is a batch of the command that waits for a row.
const waits = "select exists (select from pg_stat_activity where application_name = 'prunectl' and wait_event_type = 'Lock' and datname = current_database())"

func (s *scene) untilItWaits() {
	s.t.Helper()
	s.until("a batch waits", waits)
}
