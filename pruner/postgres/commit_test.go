package postgres

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/pruner"
)

const (
	allEvents  = "-2 a5 b5 c5 x5" // nothing was removed
	sweptClean = "-2 c5 x5"       // what was due was
)

// noBackend says that no session of the database is at work but the one that asks.
const noBackend = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active')"

// noTransaction says that none is in a transaction, at work or idle.
const noTransaction = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL)"

// TestCancelInside cancels a batch that waits for a row: nothing is counted and nothing is gone, no session goes on with
// it, and the pool serves the next batch.
func TestCancelInside(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	pool := r.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
	arms, err := Open(t.Context(), Pool(pool), r.sweep, Options{})
	if err != nil {
		t.Fatal(err)
	}
	holder := r.Conn(t)
	mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	d := sweeper{Arm: arms[0]}.drain(ctx, drain.Bounds{})
	r.until(t, "a batch waits", "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
	cancel(enough)
	rep, err := d.end(t)
	if rep.Stop != drain.StopSignal || !errors.Is(err, context.Canceled) || !errors.Is(err, enough) || rep.Removed != 0 || rep.Examined != 0 || rep.Batches != 0 {
		t.Errorf("%v, %+v", err, rep)
	}
	r.until(t, "no session goes on with the batch", noBackend)
	mustExec(t, holder, "COMMIT")
	same(t, "left", r.leftNow(t), allEvents)
	rep = sweeper{Arm: arms[0]}.drain(t.Context(), drain.Bounds{}).must(t)
	same(t, "the next drain", []any{rep.Stop, rep.Removed}, []any{drain.StopDrained, 10})
	same(t, "connections made in all", pool.Stat().NewConnsCount(), int64(1))
}

// TestCancelBetween cancels a drain between two batches: what is counted is gone, and nothing else.
func TestCancelBetween(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	r.Exec(t, events(400))
	due := int(r.Int(t, dueEvents))
	s := r.sweeper(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	rep, err := s.drain(ctx, drain.Bounds{Limit: 30, OnBatch: func(drain.Progress) {
		if n++; n == 3 {
			cancel()
		}
	}}).end(t)
	if rep.Stop != drain.StopSignal || !errors.Is(err, context.Canceled) || rep.Batches != 3 {
		t.Errorf("%v, %+v", err, rep)
	}
	same(t, "removed", rep.Removed, due-int(r.Int(t, dueEvents)))
	rep = s.drain(t.Context(), drain.Bounds{}).must(t)
	same(t, "the connection's next drain", rep.Stop, drain.StopDrained)
}

// TestCancelThatComesLate cancels a batch whose cancel request does not reach the server before the batch has ended: what
// is said of the batch is what became of it.
func TestCancelThatComesLate(t *testing.T) {
	t.Parallel()
	for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			p := newProxy(t, r.admin)
			s, holder := r.sweeper(t, Options{}, p.through, mode(m)), r.Conn(t)
			p.on(func(m message) verdict {
				if m.cancels() {
					return drop
				}
				return pass
			})
			mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
			ctx, cancel := context.WithCancel(t.Context())
			batch := s.prune(ctx)
			r.untilWaiting(t, s.pid())
			cancel()
			mustExec(t, holder, "COMMIT")
			res, err := batch.end(t)
			r.until(t, "no session goes on with the batch", noBackend)
			r.judge(t, res, err)
		})
	}
}

// judge holds an answer against the table: exact where it says what became of the batch.
func (r *race) judge(t *testing.T, res pruner.Result, err error) {
	t.Helper()
	left := r.leftNow(t)
	t.Logf("%+v, %v, left %s", res, err, left)
	var unknown *pruner.UnknownCommitError
	switch {
	case errors.As(err, &unknown):
		if res.Removed != 0 {
			t.Errorf("%d rows are counted as removed beside %v", res.Removed, err)
		}
	case left == allEvents && res.Removed == 0:
	case left == sweptClean && res.Removed == 10:
	default:
		t.Errorf("%+v and %v are said of a batch that left %q", res, err, left)
	}
}

// TestConnectionLost cuts the line at every place of a batch.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	// at is the place. A batch's answers are those of BEGIN, SET CONSTRAINTS, settings, batch and after.
	cases := []struct {
		name    string
		at      func(m message, answers int) verdict
		left    string
		removed int
		err     bool
		unknown bool // in a pipeline: the client cannot tell whether the server got it
	}{
		{"before the batch reaches the server", func(m message, _ int) verdict {
			if strings.Contains(m.sql(), "BEGIN") {
				return drop
			}
			return pass
		}, allEvents, 0, true, true},
		{"before COMMIT reaches the server", func(m message, answers int) verdict {
			if m.fromServer && m.kind == 'C' && answers == 5 {
				return passThen
			}
			if m.sql() == "COMMIT" {
				return swallow
			}
			return pass
		}, allEvents, 0, true, false},
		{"before COMMIT is answered", func(m message, _ int) verdict {
			if m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" {
				return drop
			}
			return pass
		}, sweptClean, 10, false, false},
		{"after COMMIT is answered", func(m message, _ int) verdict {
			if m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" {
				return passThen
			}
			return pass
		}, sweptClean, 10, false, false},
	}
	for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, c := range cases {
			t.Run(m.String()+", "+c.name, func(t *testing.T) {
				t.Parallel()
				r := ownerRace(t)
				p := newProxy(t, r.admin)
				pool := r.Pool(t, func(c *pgxpool.Config) {
					c.MaxConns = 1
					p.through(c.ConnConfig)
					c.ConnConfig.DefaultQueryExecMode = m
				})
				arms, err := Open(t.Context(), Pool(pool), r.sweep, Options{})
				if err != nil {
					t.Fatal(err)
				}
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
				res, err := sweeper{Arm: arms[0]}.prune(t.Context()).end(t)
				if (err != nil) != c.err || res.Removed != c.removed || as[*pruner.UnknownCommitError](err) != (c.unknown && m != pgx.QueryExecModeSimpleProtocol) {
					t.Errorf("%+v, %v", res, err)
				}
				r.until(t, "no session goes on with the batch", noBackend)
				same(t, "left", r.leftNow(t), c.left)
				rep := sweeper{Arm: arms[0]}.drain(t.Context(), drain.Bounds{}).must(t)
				same(t, "the pool's next drain", []any{rep.Stop, rep.Removed}, []any{drain.StopDrained, 10 - c.removed})
			})
		}
	}
}

// TestConnectionLostInStatement cuts the line while a batch waits for a row. The server has the whole batch and goes on
// with it; what is said of it is not that it was rolled back.
func TestConnectionLostInStatement(t *testing.T) {
	t.Parallel()
	for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			r := ownerRace(t)
			p := newProxy(t, r.admin)
			s, holder := r.sweeper(t, Options{}, p.through, mode(m)), r.Conn(t)
			mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
			batch := s.prune(t.Context())
			r.untilWaiting(t, s.pid())
			p.cutAll()
			mustExec(t, holder, "COMMIT")
			res, err := batch.end(t)
			if err == nil {
				t.Errorf("no error: %+v", res)
			}
			r.until(t, "no session goes on with the batch", noBackend)
			r.judge(t, res, err)
		})
	}
}

// TestUnknownCommit loses the line at COMMIT, and the server that is asked cannot say what became of it: it is another one.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	r := ownerRace(t)
	other := pgtest.Own(t, pgserver.Options{})
	admin := connect(t, other.DSN("postgres"))
	mustExec(t, admin, "CREATE DATABASE "+ident(r.Name))
	if user := r.admin.Config().User; user != admin.Config().User {
		mustExec(t, admin, "CREATE ROLE "+ident(user)+" LOGIN SUPERUSER")
	}
	// Each block takes a number, so that the batch's is one that the other server has not come to.
	r.Exec(t, "DO $$ BEGIN FOR i IN 1..5000 LOOP BEGIN INSERT INTO runs VALUES ('c', 'live'); EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$")
	p := newProxy(t, r.admin)
	s := r.sweeper(t, Options{}, p.through)
	p.on(func(m message) verdict {
		if m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" {
			return drop
		}
		return pass
	})
	p.redirect(admin)
	rep, err := s.drain(t.Context(), drain.Bounds{}).end(t)
	var unknown *pruner.UnknownCommitError
	if !errors.As(err, &unknown) || unknown.XID == "" || unknown.Pending.Removed != 10 || unknown.Pending.Examined != 22 {
		t.Errorf("%v, %+v", err, unknown)
	}
	same(t, "the drain", []any{rep.Stop, rep.Removed, rep.UnknownCommits, rep.Failed()}, []any{drain.StopFailed, 0, 1, true})
	same(t, "left", r.leftNow(t), sweptClean)
}

// TestCommitThatHangs commits to a server that waits for a standby which does not come. No setting of the server ends it,
// so the batch's own deadline does, and the server is asked.
func TestCommitThatHangs(t *testing.T) {
	t.Parallel()
	srv := pgtest.Own(t, pgserver.Options{})
	admin := connect(t, srv.DSN("postgres"))
	r := &race{DB: &pgtest.DB{Name: "postgres", DSN: srv.DSN("postgres")}, rows: ownerRows, sweep: guardedEvents(), admin: admin}
	for _, s := range ownerSteps {
		if s.name == "left" {
			r.left = s.sql
		}
	}
	mustExec(t, admin, ownerTables+ownerRows)
	mustExec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	mustExec(t, admin, "SET synchronous_commit = 'local'; SELECT pg_reload_conf()")
	r.until(t, "the setting holds", "SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'")

	// A sweep does not wait for a disk or a standby unless it is told to.
	began := time.Now()
	same(t, "without sync", counts(r.sweeper(t, Options{}).prune(t.Context()).must(t)), undisturbed)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}

	mustExec(t, admin, ownerRows)
	r.sweep.Sync = true
	s := r.sweeper(t, Options{})
	batch := start(func() (pruner.Result, error) {
		return s.Prune(t.Context(), pruner.Batch{Cutoff: raceCutoff, Limit: 50, Timeout: 100 * time.Millisecond})
	})
	r.until(t, "COMMIT waits for the standby", "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
	same(t, "left while it waits", r.leftNow(t), allEvents)
	res := batch.must(t)
	same(t, "the batch", counts(res), undisturbed)
	same(t, "left", r.leftNow(t), sweptClean)
}

// TestServerKilled stops the server as in a crash while a batch waits for a row.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	srv := pgtest.Own(t, pgserver.Options{Durable: true})
	r := &race{DB: &pgtest.DB{Name: "postgres", DSN: srv.DSN("postgres")}, sweep: guardedEvents(), admin: connect(t, srv.DSN("postgres"))}
	for _, s := range ownerSteps {
		if s.name == "left" {
			r.left = s.sql
		}
	}
	r.sweep.Timeouts.Lock = patience
	r.Exec(t, ownerTables)
	r.Exec(t, ownerRows)
	s, holder := r.sweeper(t, Options{}), r.Conn(t)
	mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
	d := s.drain(t.Context(), drain.Bounds{})
	r.untilWaiting(t, s.pid())
	srv.Kill(true)
	rep, err := d.end(t)
	if err == nil || rep.Stop != drain.StopFailed || rep.Removed != 0 {
		t.Errorf("%v, %+v", err, rep)
	}
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "left", r.leftNow(t), allEvents)
	rep = r.sweeper(t, Options{}).drain(t.Context(), drain.Bounds{}).must(t)
	same(t, "the next drain", []any{rep.Stop, rep.Removed}, []any{drain.StopDrained, 10})
}

// TestEndedByOthers ends a batch that waits for a row, in every way that is not ours: only a timeout is a timeout.
func TestEndedByOthers(t *testing.T) {
	t.Parallel()
	for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, c := range []struct {
			name, role, end string
			timeout         time.Duration // of the batch
			check           func(error) bool
		}{
			{"the role's shorter statement timeout", "80ms", "", 0, func(err error) bool {
				var timeout *pruner.TimeoutError
				return errors.As(err, &timeout) && timeout.After == 80*time.Millisecond
			}},
			{"our statement timeout", "1min", "", 90 * time.Millisecond, func(err error) bool {
				var timeout *pruner.TimeoutError
				var lock *pruner.LockTimeoutError
				return errors.As(err, &timeout) && timeout.After == 90*time.Millisecond || errors.As(err, &lock) && lock.LockAfter == 90*time.Millisecond
			}},
			{"cancelled by another session", "0", "SELECT pg_cancel_backend($1)", 0, func(err error) bool {
				var pg *pgconn.PgError
				return errors.As(err, &pg) && pg.Code == codeCanceled && !as[*pruner.TimeoutError](err) && strings.Contains(err.Error(), "another session canceled it")
			}},
			{"terminated by another session", "0", "SELECT pg_terminate_backend($1)", 0, func(err error) bool {
				var pg *pgconn.PgError
				return errors.As(err, &pg) && pg.Code == "57P01" && !as[*pruner.UnknownCommitError](err)
			}},
		} {
			t.Run(m.String()+", "+c.name, func(t *testing.T) {
				t.Parallel()
				r := ownerRace(t)
				r.Exec(t, "ALTER DATABASE "+ident(r.Name)+" SET statement_timeout = '"+c.role+"'")
				s, holder := r.sweeper(t, Options{}, mode(m)), r.Conn(t)
				mustExec(t, holder, begin+"SELECT FROM ev WHERE run = 'a' AND seq = 2 FOR UPDATE")
				batch := start(func() (pruner.Result, error) {
					return s.Prune(t.Context(), pruner.Batch{Cutoff: raceCutoff, Limit: 50, Timeout: c.timeout})
				})
				if c.end != "" {
					r.untilWaiting(t, s.pid())
					mustExec(t, r.admin, c.end, s.pid())
				}
				res, err := batch.end(t)
				if !c.check(err) || !reflect.DeepEqual(res, pruner.Result{}) {
					t.Errorf("%+v, %T %v", res, err, err)
				}
				mustExec(t, holder, "COMMIT")
				same(t, "left", r.leftNow(t), allEvents)
				if !s.conn.IsClosed() {
					same(t, "the next batch", counts(s.prune(t.Context()).must(t)), undisturbed)
				}
			})
		}
	}
}
