package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func nothing(context.Context, *sql.Conn) error { return nil }

type outcome struct {
	applied []Applied
	err     error
}

func goUp(ctx context.Context, m *Migrator) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		applied, err := m.Up(ctx)
		c <- outcome{applied, err}
	}()
	return c
}

// trying is not 0 once some session has tried for the lock and did not get it.
const trying = `
select count(*) from pg_stat_activity a
 where a.datname = current_database() and a.query ilike '%pg_try_advisory_lock%' and a.state = 'idle'
   and not exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory')`

func TestTwoMigratorsStartedAtOnceApplyEachVersionOnce(t *testing.T) {
	db := pgtest.New(t)
	a, b := goUp(bounded(t), migrator(t, db.DSN)), goUp(bounded(t), migrator(t, db.DSN))
	times := map[string]int{}
	for _, c := range []<-chan outcome{a, b} {
		o := <-c
		if o.err != nil {
			t.Fatal(o.err)
		}
		for _, v := range o.applied {
			times[v.String()]++
		}
	}
	if len(times) != 2 || times["1 create_tables"] != 1 || times["2 add_retention_index"] != 1 {
		t.Errorf("applied %v", times)
	}
	state(t, migrator(t, db.DSN), "up to date")
}

// The second comes while the first is within the concurrent build, which waits for
// every transaction that began before it: the second must not be one of them.
func TestTheSecondMigratorWaitsForTheBuildAndHasNothingToDo(t *testing.T) {
	db := installed.New(t)
	down(t, migrator(t, db.DSN), "2 add_retention_index")
	tx := holdOpen(t, db.Conn(t))
	watch := db.Conn(t)

	first := goUp(bounded(t), migrator(t, db.DSN))
	until(t, watch, "the first builds", building)
	second := goUp(bounded(t), migrator(t, db.DSN))
	until(t, watch, "the second tries for the lock", trying)

	end(t, tx)
	one, two := <-first, <-second
	if one.err != nil || len(one.applied) != 1 {
		t.Errorf("the first applied %v, %v", one.applied, one.err)
	}
	if two.err != nil || len(two.applied) != 0 {
		t.Errorf("the second applied %v, %v", two.applied, two.err)
	}
	if n := db.Int(t, validity); n != 1 {
		t.Errorf("validity %d", n)
	}
}

func TestAMigratorThatWaitedInVainIsBusy(t *testing.T) {
	db := pgtest.New(t)
	m := migrator(t, db.DSN, func(o *Options) { o.LockWait = time.Second })
	holder := db.Conn(t)
	if _, err := holder.Exec(t.Context(), `select pg_advisory_lock($1)`, m.lockKey()); err != nil {
		t.Fatal(err)
	}
	_, err := m.Up(bounded(t))
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("held by pid %d", holder.PgConn().PID())) {
		t.Errorf("up: %v", err)
	}
	state(t, m, "not installed") // looking needs no lock
	// Another schema is another lock.
	db.Exec(t, `create schema other`)
	up(t, migrator(t, db.DSN, inSchema("other")), "1 create_tables", "2 add_retention_index")
}

// A pooler gives each statement another session, which does not hold the lock.
func TestALockThatTheSessionDoesNotHoldPointsAtThePooler(t *testing.T) {
	db := pgtest.New(t)
	m := migrator(t, db.DSN)
	turn, err := m.newSession(nothing)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := m.db.Conn(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := turn.SessionUnlock(bounded(t), conn); err == nil || !strings.Contains(err.Error(), "pooler") {
		t.Errorf("unlock: %v", err)
	}
}

func TestAWaitingMigratorEndsWithItsContext(t *testing.T) {
	db := pgtest.New(t)
	m := migrator(t, db.DSN)
	if _, err := db.Conn(t).Exec(t.Context(), `select pg_advisory_lock($1)`, m.lockKey()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	waiting := goUp(ctx, m)
	until(t, db.Conn(t), "it tries", trying)
	cancel()
	if o := <-waiting; !errors.Is(o.err, context.Canceled) {
		t.Errorf("up: %v", o.err)
	}
}

// Whoever ends a migrator within the build leaves an index that is not valid.
func TestABuildThatWasCutShortIsRunAgain(t *testing.T) {
	for name, cut := range map[string]func(t *testing.T, pid int64, cancel func(), db *pgtest.DB){
		"backend ended": func(t *testing.T, pid int64, _ func(), db *pgtest.DB) { terminate(t, db, pid) },
		"context ended": func(_ *testing.T, _ int64, cancel func(), _ *pgtest.DB) { cancel() },
		"query canceled": func(t *testing.T, pid int64, _ func(), db *pgtest.DB) {
			db.Int(t, `select pg_cancel_backend($1)::int`, pid)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			down(t, migrator(t, db.DSN), "2 add_retention_index")
			tx := holdOpen(t, db.Conn(t))
			watch := db.Conn(t)
			ctx, cancel := context.WithCancel(bounded(t))
			defer cancel()

			m := migrator(t, db.DSN)
			dying := goUp(ctx, m)
			pid := until(t, watch, "it builds", building)
			cut(t, pid, cancel, db)
			o := <-dying
			if o.err == nil || !strings.Contains(o.err.Error(), "version 2 add_retention_index") || len(o.applied) != 0 {
				t.Fatalf("the cut build ended with %v, %v", o.applied, o.err)
			}
			until(t, watch, "its session leaves the build", `select (count(*) = 0)::int from pg_stat_progress_create_index where datname = current_database()`)
			if n := db.Int(t, validity); n != 0 {
				t.Fatalf("validity %d, want an invalid index", n)
			}
			state(t, migrator(t, db.DSN), "pending: 2 add_retention_index")

			end(t, tx)
			if done := up(t, m, "2 add_retention_index"); !done[0].Rebuilt {
				t.Error("not said to be rebuilt")
			}
			if n := db.Int(t, validity); n != 1 {
				t.Errorf("validity %d", n)
			}
			if n := db.Int(t, `select count(*) from run_events`); n != 1 {
				t.Errorf("%d events", n)
			}
			state(t, m, "up to date")
		})
	}
}

// Version 1 is one transaction. It is held half-way by somebody who creates a table
// of the second one's name.
func TestAMigratorKilledWithinTheFirstVersionLeavesNothing(t *testing.T) {
	db := pgtest.New(t)
	other := db.Conn(t)
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `create table public.run_events ()`); err != nil {
		t.Fatal(err)
	}
	m := migrator(t, db.DSN)
	dying := goUp(bounded(t), m)
	pid := until(t, db.Conn(t), "it waits for the second table", `
select coalesce((select max(pid) from pg_stat_activity where datname = current_database()
                  and wait_event_type = 'Lock' and query ilike 'create table%run_events%'), 0)`)
	terminate(t, db, pid)
	if o := <-dying; o.err == nil || len(o.applied) != 0 {
		t.Fatalf("the killed one applied %v, %v", o.applied, o.err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := db.Int(t, `select count(*) from pg_class where relname in ('runs', 'run_events')`); n != 0 {
		t.Errorf("%d tables are there", n)
	}
	state(t, m, "not installed")
	up(t, m, "1 create_tables", "2 add_retention_index")
}

// A drop that was killed after it marked the index.
func TestADropThatWasCutShortIsRunAgain(t *testing.T) {
	db := installed.New(t)
	m := migrator(t, db.DSN)
	reader := db.Conn(t)
	tx, err := reader.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table run_events in access share mode`); err != nil {
		t.Fatal(err)
	}
	dying := make(chan error, 1)
	go func() { _, err := m.Down(bounded(t)); dying <- err }()
	pid := until(t, db.Conn(t), "the drop waits for the reader", `
select coalesce((select max(pid) from pg_stat_activity where datname = current_database()
                  and wait_event_type = 'Lock' and query ilike 'drop index concurrently%'), 0)`)
	terminate(t, db, pid)
	if err := <-dying; err == nil {
		t.Fatal("the killed one ended well")
	}
	end(t, tx)
	if n := db.Int(t, validity); n != 0 {
		t.Fatalf("validity %d, want an invalid index", n)
	}
	state(t, m, "damaged: index run_events_retention is not valid")
	down(t, m, "2 add_retention_index")
	if n := db.Int(t, validity); n != -1 {
		t.Errorf("validity %d", n)
	}
}

// terminate ends a session and waits until it is gone.
func terminate(t *testing.T, db *pgtest.DB, pid int64) {
	t.Helper()
	conn := db.Conn(t)
	if _, err := conn.Exec(t.Context(), `select pg_terminate_backend($1)`, pid); err != nil {
		t.Fatal(err)
	}
	until(t, conn, "the session is gone", `select (count(*) = 0)::int from pg_stat_activity where pid = $1`, pid)
}

// Taking the tables down needs a lock that all others would queue up behind.
func TestDownDoesNotWaitLongForASessionThatHoldsTheTables(t *testing.T) {
	db := installed.New(t)
	m := migrator(t, db.DSN)
	down(t, m, "2 add_retention_index")
	tx, err := db.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table runs in access share mode`); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Down(bounded(t)); err == nil || !strings.Contains(err.Error(), "a session holds the table") {
		t.Errorf("down: %v", err)
	}
	end(t, tx)
	down(t, m, "1 create_tables")
}
