package postgres

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// The lines of the shop's tenant, before and after a batch.
const (
	linesLeft = "SELECT count(*) FROM lines WHERE id < 110"
	allLines  = int64(3)
)

// TestPurgeRoundTrips counts, in every exec mode, what a batch sends and how often it waits for the server: once, and where
// the simple protocol is asked for once more for COMMIT.
func TestPurgeRoundTrips(t *testing.T) {
	for _, m := range execModes {
		db := pgtest.New(t)
		db.Exec(t, shopTables+shopRows)
		p := newProxy(t, db.Conn(t))
		s := openPurge(t, Conn(db.Conn(t, p.through, mode(m))), shop(), "acme").steps[stepLines]
		var commits, named, ready, parses int
		var mu sync.Mutex
		p.on(func(m message) verdict {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case m.fromServer && m.kind == 'Z':
				ready++
			case !m.fromServer && m.kind == 'P':
				parses++
				if !strings.HasPrefix(m.body, "\x00") {
					named++
				}
			}
			if m.sql() == "COMMIT" {
				commits++
			}
			return pass
		})
		res := stepUnderway(t.Context(), s, 50).must(t)
		p.on(nil)
		same(t, "the batch", counts(res), purged(3, 3, 0, 0))
		want := []int{1, 1, 0, 7} // BEGIN, SET CONSTRAINTS, settings, pick, delete, after and COMMIT
		if m == pgx.QueryExecModeSimpleProtocol {
			want = []int{2, 1, 0, 0}
		}
		same(t, m.String()+": round trips, commits, named statements, parses", []int{ready, commits, named, parses}, want)
	}
}

// TestPurgeConnectionLost cuts the line at every point of a batch: what is said of it is exact, or that it is not known, and
// the next batch is right in either case.
func TestPurgeConnectionLost(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		at      func(m message, answers int) verdict
		removed int // that the batch says
		left    int64
		err     bool
		unknown bool // where one round trip has it all
	}{
		{"before BEGIN", func(m message, _ int) verdict {
			if strings.Contains(m.sql(), "BEGIN") {
				return drop
			}
			return pass
		}, 0, allLines, true, true},
		{"before COMMIT reaches the server", func(m message, answers int) verdict {
			if m.fromServer && m.kind == 'C' && answers == 6 {
				return passThen
			}
			if m.sql() == "COMMIT" {
				return swallow
			}
			return pass
		}, 0, allLines, true, false},
		{"before COMMIT is answered", func(m message, _ int) verdict {
			if m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" {
				return drop
			}
			return pass
		}, 3, 0, false, false},
		{"after COMMIT is answered", func(m message, _ int) verdict {
			if m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" {
				return passThen
			}
			return pass
		}, 3, 0, false, false},
	}
	for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, c := range cases {
			t.Run(m.String()+", "+c.name, func(t *testing.T) {
				t.Parallel()
				r := &race{DB: pgtest.New(t)}
				r.Exec(t, shopTables+shopRows)
				r.admin = r.Conn(t)
				p := newProxy(t, r.admin)
				pool := r.Pool(t, func(c *pgxpool.Config) {
					c.MaxConns = 1
					p.through(c.ConnConfig)
					c.ConnConfig.DefaultQueryExecMode = m
				})
				s := openPurge(t, Pool(pool), shop(), "acme").steps[stepLines]
				answers := 0
				p.on(func(m message) verdict {
					if m.link != 1 {
						return pass
					}
					if m.fromServer && m.kind == 'C' {
						answers++
					}
					return c.at(m, answers)
				})
				res, err := stepUnderway(t.Context(), s, 50).end(t)
				if (err != nil) != c.err || res.Removed != c.removed || as[*pruner.UnknownCommitError](err) != (c.unknown && m != pgx.QueryExecModeSimpleProtocol) {
					t.Errorf("%+v, %v", res, err)
				}
				// A session that has not seen yet that its line is gone would have its rows passed over by the next batch.
				r.until(t, "no session is in a transaction", noTransaction)
				same(t, "left", r.Int(t, linesLeft), c.left)
				again := stepUnderway(t.Context(), s, 50).must(t)
				same(t, "the next batch", again.Removed, int(c.left))
			})
		}
	}
}

// TestPurgeUnknownCommit loses the line at COMMIT, and the server that is asked cannot say what became of it: it is another
// one. A look says it.
func TestPurgeUnknownCommit(t *testing.T) {
	t.Parallel()
	r := &race{DB: pgtest.New(t)}
	r.Exec(t, shopTables+shopRows)
	r.admin = r.Conn(t)
	other := pgtest.Own(t, pgserver.Options{})
	admin := connect(t, other.DSN("postgres"))
	mustExec(t, admin, "CREATE DATABASE "+ident(r.Name))
	if user := r.admin.Config().User; user != admin.Config().User {
		mustExec(t, admin, "CREATE ROLE "+ident(user)+" LOGIN SUPERUSER")
	}
	// Each block takes a number, so that the batch's is one that the other server has not come to.
	r.Exec(t, "DO $$ BEGIN FOR i IN 1..5000 LOOP BEGIN INSERT INTO orders VALUES (1, 'acme'); EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$")
	p := newProxy(t, r.admin)
	s := openPurge(t, Conn(r.Conn(t, p.through)), shop(), "acme").steps[stepLines]
	p.on(func(m message) verdict {
		if m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" {
			return drop
		}
		return pass
	})
	p.redirect(admin)
	res, err := stepUnderway(t.Context(), s, 50).end(t)
	var unknown *pruner.UnknownCommitError
	if !errors.As(err, &unknown) || unknown.XID == "" || unknown.Pending.Removed != 3 || res.Removed != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	same(t, "left", leftOf(t, openPurge(t, Conn(r.Conn(t)), shop(), "acme"), 10), "2 0 3")
}

// TestPurgeIsKilled stops the server as in a crash between two batches and in one: what was counted is gone for ever, and
// the purge goes on where it was.
func TestPurgeIsKilled(t *testing.T) {
	t.Parallel()
	srv := pgtest.Own(t, pgserver.Options{Durable: true})
	r := &race{DB: &pgtest.DB{Name: "postgres", DSN: srv.DSN("postgres")}, admin: connect(t, srv.DSN("postgres"))}
	r.Exec(t, "CREATE TABLE runs (tenant_id text NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id)); INSERT INTO runs SELECT t, g FROM generate_series(1, 1000) g, unnest('{acme,other}'::text[]) t")
	conn, holder := r.Conn(t), r.Conn(t)
	mustExec(t, conn, "SET synchronous_commit = off")
	s := openPurge(t, Conn(conn), purgeOf("runs"), "acme").steps[0]
	var at pruner.Cursor
	removed := 0
	for range 3 {
		res, err := s.Remove(t.Context(), tenant.Batch{Limit: 100, After: at})
		if err != nil {
			t.Fatal(err)
		}
		removed, at = removed+res.Removed, res.Next
	}
	mustExec(t, holder, "SELECT pg_advisory_lock(7)")
	s.edit = func(name, sql string) string {
		if name == "delete" {
			return replaceOnce(sql, " WHERE d.ctid", " WHERE (SELECT pg_advisory_xact_lock(7)) IS NOT NULL AND d.ctid")
		}
		return sql
	}
	batch := start(func() (pruner.Result, error) {
		return s.Remove(t.Context(), tenant.Batch{Limit: 100, After: at, Timeout: 20 * time.Second})
	})
	r.untilWaiting(t, conn.PgConn().PID())
	srv.Kill(true)
	if res, err := batch.end(t); err == nil || res.Removed != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := openPurge(t, Conn(r.Conn(t)), purgeOf("runs"), "acme")
	same(t, "left", leftOf(t, p, 10_000), "700")
	same(t, "counted", removed, 300)
	sums, err := purgeAll(t.Context(), p, 100)
	if err != nil || sums[0].Removed != 700 {
		t.Errorf("%+v, %v", sums, err)
	}
	same(t, "of the other", r.Int(t, "SELECT count(*) FROM runs"), int64(1000))
}
