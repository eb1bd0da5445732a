package postgres

import (
	"context"

	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/prunertest"
)

// clause is a part of what a batch sends, the edit that takes it out, and who must notice.
type clause struct {
	name   string
	edit   func(string) string // of the batch's statement
	wire   [2]string           // of everything else: a text and what is sent in its place, no longer than it
	victim victim
}

// victim is a check that is green while nothing is taken out.
type victim struct {
	name string
	run  func(context.Context, *bench) error
}

// bench is where a victim runs, with the edit in force.
type bench struct {
	t       *testing.T
	db      *pgtest.DB
	clause  clause
	touched bool // the edit changed a text
}

// edit is for Arm.edit. Shapes without the clause stay as they are.
func (b *bench) edit(_ shape, sql string) string {
	if b.clause.edit == nil {
		return sql
	}
	edited := b.clause.edit(sql)
	b.touched = b.touched || edited != sql
	return edited
}

// conn is a sweeping connection, which sends what the clause says in place of what it should.
func (b *bench) conn(opts ...func(*pgx.ConnConfig)) *pgx.Conn {
	if b.clause.wire[0] != "" {
		opts = append(opts, func(c *pgx.ConnConfig) {
			dial := c.DialFunc
			c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &forger{conn, b}, err
			}
		})
	}
	return b.db.Conn(b.t, opts...)
}

// forger replaces a text in what is sent. The messages keep their length.
type forger struct {
	net.Conn
	b *bench
}

func (f *forger) Write(p []byte) (int, error) {
	old, instead := f.b.clause.wire[0], f.b.clause.wire[1]
	if len(instead) > len(old) {
		panic("longer than the text it stands for: " + instead)
	}
	sent := strings.ReplaceAll(string(p), old, instead+strings.Repeat(" ", len(old)-len(instead)))
	f.b.touched = f.b.touched || sent != string(p)
	n, err := f.Conn.Write([]byte(sent))
	return n, err
}

// in restricts an edit to one query of the WITH list, "" for what follows it.
func in_(query string, edit func(string) string) func(string) string {
	return func(sql string) string {
		start := regexp.MustCompile(`(?m)^(WITH |\), )` + query + ` AS [^\n]*\n`).FindStringIndex(sql)
		if query == "" {
			start = regexp.MustCompile(`(?m)^\)\n`).FindStringIndex(sql)
		}
		if start == nil {
			return sql
		}
		end := len(sql)
		if next := regexp.MustCompile(`(?m)^\)`).FindStringIndex(sql[start[1]:]); next != nil {
			end = start[1] + next[0]
		}
		return sql[:start[1]] + edit(sql[start[1]:end]) + sql[end:]
	}
}

// re replaces each match.
func re(pattern, instead string) func(string) string {
	r := regexp.MustCompile(pattern)
	return func(sql string) string { return r.ReplaceAllString(sql, instead) }
}

// chain makes one edit after the other.
func chain(edits ...func(string) string) func(string) string {
	return func(sql string) string {
		for _, e := range edits {
			sql = e(sql)
		}
		return sql
	}
}

// conformance is the check of the contract with this name. change, if given, changes its populations.
func conformance(name string, change ...func(*prunertest.Fixture)) victim {
	return victim{name, func(ctx context.Context, b *bench) error {
		for _, c := range prunertest.Checks() {
			if c.Name == name {
				return c.Run(ctx, b.factory(change...))
			}
		}
		return fmt.Errorf("there is no check %q", name)
	}}
}

// factory is the engine's, with the edit.
func (b *bench) factory(change ...func(*prunertest.Fixture)) prunertest.Factory {
	f := factory(b.t, b.db, Options{})
	if b.clause.wire[0] != "" {
		f = factory(b.t, b.db, Options{}, func(c *pgx.ConnConfig) {
			dial := c.DialFunc
			c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &forger{conn, b}, err
			}
		})
	}
	return func(ctx context.Context, fix prunertest.Fixture) (prunertest.Population, error) {
		for _, c := range change {
			c(&fix)
		}
		p, err := f(ctx, fix)
		if sp, ok := p.(*schemaPopulation); ok {
			sp.edit = b.edit
		}
		return p, err
	}
}

// descending turns the index round: nothing but ORDER BY then gives the oldest first.
func descending(fix *prunertest.Fixture) {
	fix.Index.DDL = strings.NewReplacer("(age, id)", "(age DESC, id DESC)", "(age)", "(age DESC)", "state, age, id", "state, age DESC, id DESC", "kind, age, id", "kind, age DESC, id DESC").Replace(fix.Index.DDL)
}

// crowded adds an index that has the age, but not the order of the rows of one age.
func crowded(fix *prunertest.Fixture) { fix.Index.DDL += "; CREATE INDEX ON entries (age)" }

// raced is one batch beside another session: what it does before and while the batch waits, and what must come of it.
func raced(name string, tables, rows string, s policy.Sweep, sql, end string, want pruner.Result, left string, opts ...func(*pgx.ConnConfig)) victim {
	return victim{name, func(ctx context.Context, b *bench) error {
		conn, other := b.conn(opts...), b.db.Conn(b.t)
		b.db.Exec(b.t, "DROP TABLE IF EXISTS ev, runs, job")
		b.db.Exec(b.t, tables+rows)
		s.Timeouts.Lock = 5 * time.Second
		arms, err := Open(ctx, Conn(conn), s, Options{})
		if err != nil {
			return err
		}
		arms[0].edit = b.edit
		mustExec(b.t, other, begin+sql)
		batch := start(func() (pruner.Result, error) { return arms[0].Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}) })
		ended := false
		for deadline := time.Now().Add(patience); !ended && time.Now().Before(deadline); {
			var waits bool
			if err := b.db.Conn(b.t).QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", conn.PgConn().PID()).Scan(&waits); err != nil {
				return err
			}
			ended = waits || len(batch.c) > 0
		}
		mustExec(b.t, other, end)
		res, err := batch.end(b.t)
		if err != nil {
			return err
		}
		if got := counts(res); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the batch counted %+v; want %+v", got, want)
		}
		query := ownerSteps[len(ownerSteps)-1].sql
		if s.Name == "job" {
			query = jobSteps[len(jobSteps)-1].sql
		}
		if got := b.db.Text(b.t, strings.TrimSuffix(query, ";")); got != left {
			return fmt.Errorf("%q is left; want %q", got, left)
		}
		return nil
	}}
}

// plan looks at the plans of one specimen's statements, on the tables of TestSabotage. before changes the catalog for the
// time of the look.
func plans(specimenName string, before string) victim {
	return victim{"the plan of " + specimenName, func(ctx context.Context, b *bench) error {
		conn := b.db.Conn(b.t)
		for _, sp := range specimens() {
			if sp.name != specimenName {
				continue
			}
			arm := sp.open(b.t, Conn(conn))
			p := planner{conn, arm}
			p.begin(b.t)
			defer p.end(b.t)
			if before != "" {
				mustExec(b.t, conn, before)
			}
			for name, s := range shapesOf(arm) {
				st := arm.render(s)
				st.sql = b.edit(s, st.sql)
				if err := p.prepare(ctx, name, st); err != nil {
					return err
				}
				for _, generic := range []bool{false, true} {
					e, err := p.explain(ctx, "FORMAT JSON", name, st, planValues(arm, 5000), generic)
					if err != nil {
						return err
					}
					for _, f := range planFaults(arm, s, e) {
						return fmt.Errorf("%s: %s", name, f)
					}
				}
			}
			return nil
		}
		return fmt.Errorf("there is no specimen %s", specimenName)
	}}
}
