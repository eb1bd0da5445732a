package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/eventlog/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// withRun is a database with two runs of tenant t, r and r2, without events, and
// a run of another tenant that has the same id and nine events.
var withRun = pgtest.NewTemplate("eventlog", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, schema := range []string{"public", odd} {
		quoted := pgx.Identifier{schema}.Sanitize()
		if _, err := conn.Exec(ctx, `create schema if not exists `+quoted); err != nil {
			return err
		}
		m, err := migrations.New(config, migrations.Options{Component: "run_events", Schema: schema})
		if err != nil {
			return err
		}
		defer m.Close()
		if _, err := m.Up(ctx); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, `insert into `+quoted+`.runs (tenant_id, id, status) values ('t', 'r', 'running'), ('t', 'r2', 'running'), ('u', 'r', 'running')`); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, `insert into `+quoted+`.run_events (tenant_id, run_id, sequence, type, event) select 'u', 'r', n, 'theirs', '{}' from generate_series(1, 9) n`); err != nil {
			return err
		}
	}
	return nil
})

const odd = `Odd "schema"`

func step(n int) eventlog.Draft {
	return eventlog.Draft{Type: "step", Payload: json.RawMessage(fmt.Sprintf(`{"n": %d}`, n))}
}

func add(t *testing.T, log eventlog.Log, run string, want int64, drafts ...eventlog.Draft) {
	t.Helper()
	last, err := log.Append(bounded(t), "t", run, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	if last != want {
		t.Fatalf("appended up to %d, want %d", last, want)
	}
}

func latest(t *testing.T, log eventlog.Log, run string, want int64) {
	t.Helper()
	got, err := log.LatestSequence(t.Context(), "t", run)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("latest sequence %d, want %d", got, want)
	}
}

func list(t *testing.T, log eventlog.Log, run string, after int64, limit int, want ...int64) []eventlog.Event {
	t.Helper()
	events, err := log.ListAfter(t.Context(), "t", run, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, e := range events {
		got = append(got, e.Sequence)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("after %d, at most %d: sequences %d, want %d", after, limit, got, want)
	}
	return events
}

// The promises of the port, in every mode in which pgx speaks to a server, and in
// a schema of any name.
func TestTheLogKeepsWhatIsAppended(t *testing.T) {
	for _, schema := range []string{"", odd} {
		for _, mode := range []pgx.QueryExecMode{
			pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
			pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
		} {
			t.Run(fmt.Sprintf("%q %s", schema, mode), func(t *testing.T) {
				db := withRun.New(t)
				conn := db.Conn(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
				log := postgres.New(conn, postgres.Options{Schema: schema})
				latest(t, log, "r", 0)
				list(t, log, "r", 0, 10)

				add(t, log, "r", 1, eventlog.Draft{Type: "start"})
				add(t, log, "r", 4, step(2), step(3), step(4))
				add(t, log, "r2", 1, step(1))
				latest(t, log, "r", 4)

				events := list(t, log, "r", 0, 10, 1, 2, 3, 4)
				list(t, log, "r", 2, 10, 3, 4)
				list(t, log, "r", 0, 2, 1, 2)
				list(t, log, "r", 4, 1)
				list(t, log, "r", -7, 1, 1)
				if string(events[0].Payload) != "{}" || events[0].Type != "start" {
					t.Errorf("first event %+v", events[0])
				}
				for i, e := range events {
					var v struct{ N int }
					if err := json.Unmarshal(e.Payload, &v); err != nil || (i > 0 && v.N != i+1) {
						t.Errorf("event %d holds %s, %v", i+1, e.Payload, err)
					}
					if e.CreatedAt.Location() != time.UTC || (i > 0 && e.CreatedAt.Before(events[i-1].CreatedAt)) {
						t.Errorf("event %d is of %s", i+1, e.CreatedAt)
					}
				}
				var now time.Time
				if err := conn.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&now); err != nil {
					t.Fatal(err)
				}
				if age := now.Sub(events[0].CreatedAt); age < 0 || age > time.Minute {
					t.Errorf("the first event is %s old", age)
				}
			})
		}
	}
}

func TestARunThatDoesNotExistIsAnErrorOfItsOwn(t *testing.T) {
	db := withRun.New(t)
	log := postgres.New(db.Pool(t), postgres.Options{})
	for _, c := range []struct{ tenant, run string }{{"t", "nobody"}, {"other", "r"}, {"", ""}} {
		if _, err := log.Append(bounded(t), c.tenant, c.run, step(1)); !errors.Is(err, eventlog.ErrUnknownRun) {
			t.Errorf("append to %q of %q: %v", c.run, c.tenant, err)
		}
		if _, err := log.LatestSequence(t.Context(), c.tenant, c.run); !errors.Is(err, eventlog.ErrUnknownRun) {
			t.Errorf("latest of %q of %q: %v", c.run, c.tenant, err)
		}
		if events, err := log.ListAfter(t.Context(), c.tenant, c.run, 0, 1); err != nil || len(events) != 0 {
			t.Errorf("list of %q of %q: %v, %v", c.run, c.tenant, events, err)
		}
	}
	if n := db.Int(t, `select count(*) from run_events where type = 'step'`); n != 0 {
		t.Errorf("%d orphans were written", n)
	}
}

func TestAnUnusableDraftIsRefusedWithTheWholeCall(t *testing.T) {
	db := withRun.New(t)
	log := postgres.New(db.Pool(t), postgres.Options{})
	for name, d := range map[string]eventlog.Draft{
		"no type":     {Payload: json.RawMessage(`{}`)},
		"no JSON":     {Type: "x", Payload: json.RawMessage(`{`)},
		"two values":  {Type: "x", Payload: json.RawMessage(`{} {}`)},
		"a zero byte": {Type: "x", Payload: json.RawMessage(`"\u0000"`)},
	} {
		if _, err := log.Append(bounded(t), "t", "r", step(1), d); !errors.Is(err, eventlog.ErrDraft) {
			t.Errorf("%s: %v", name, err)
		}
	}
	latest(t, log, "r", 0)
	list(t, log, "r", 0, 1)
}

// untouched is a database that must not be asked.
type untouched struct{ postgres.DB }

func TestWhatAsksForNothingDoesNotAskTheDatabase(t *testing.T) {
	log := postgres.New(untouched{}, postgres.Options{})
	if last, err := log.Append(bounded(t), "t", "r"); last != 0 || err != nil {
		t.Errorf("append of nothing: %d, %v", last, err)
	}
	for _, limit := range []int{0, -1} {
		if _, err := log.ListAfter(t.Context(), "t", "r", 0, limit); !errors.Is(err, eventlog.ErrLimit) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestAppendersToOneRunLeaveNoGaps(t *testing.T) {
	db := withRun.New(t)
	log := postgres.New(db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 8 }), postgres.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := log.Append(bounded(t), "t", "r", step(i), step(i), step(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	latest(t, log, "r", 240)
	events, err := log.ListAfter(t.Context(), "t", "r", 0, 1000)
	if err != nil || len(events) != 240 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.Sequence != int64(i+1) {
			t.Fatalf("event %d has sequence %d", i+1, e.Sequence)
		}
		if i > 0 && e.CreatedAt.Before(events[i-1].CreatedAt) {
			t.Fatalf("event %d is older than the one before it", i+1)
		}
	}
}

// The second appender waits for the first one's transaction, and its events follow
// those of the first, or take their place where the first gave up.
func TestAnAppenderWaitsForTheTransactionBeforeIt(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := withRun.New(t)
			log := postgres.New(db.Pool(t), postgres.Options{})
			second := db.Conn(t)
			late, err := second.Begin(t.Context()) // begun first, and appends last
			if err != nil {
				t.Fatal(err)
			}
			first, err := db.Conn(t).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			add(t, log.In(first), "r", 2, step(1), step(2))
			latest(t, log, "r", 0) // nobody else sees it yet

			var last int64
			done := db.Beside(t, second, func() (err error) {
				last, err = log.In(late).Append(bounded(t), "t", "r", step(3))
				return err
			})
			want := int64(1)
			if commits {
				want = 3
				err = first.Commit(t.Context())
			} else {
				err = first.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if last != want {
				t.Errorf("the second got %d, want %d", last, want)
			}
			if err := late.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			latest(t, log, "r", want)
			if commits {
				events := list(t, log, "r", 0, 10, 1, 2, 3)
				if events[2].CreatedAt.Before(events[1].CreatedAt) {
					t.Errorf("time runs backwards: %s, then %s", events[1].CreatedAt, events[2].CreatedAt)
				}
			} else {
				list(t, log, "r", 0, 10, 1)
			}
		})
	}
}

func TestWhatIsAppendedInATransactionGoesWithIt(t *testing.T) {
	db := withRun.New(t)
	conn := db.Conn(t)
	log := postgres.New(conn, postgres.Options{})
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update runs set status = 'completed' where id = 'r'`); err != nil {
		t.Fatal(err)
	}
	add(t, log.In(tx), "r", 1, eventlog.Draft{Type: "completed"})
	list(t, log.In(tx), "r", 0, 10, 1)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	latest(t, log, "r", 0)
	list(t, log, "r", 0, 10)
}

// The sweep removes events. The numbers it leaves are not given again.
func TestASequenceIsNotGivenTwiceAfterASweep(t *testing.T) {
	db := withRun.New(t)
	log := postgres.New(db.Pool(t), postgres.Options{})
	add(t, log, "r", 3, step(1), step(2), step(3))
	db.Exec(t, `delete from run_events where sequence < 3`)
	list(t, log, "r", 0, 10, 3)
	db.Exec(t, `delete from run_events`)
	latest(t, log, "r", 3)
	add(t, log, "r", 4, step(4))
	list(t, log, "r", 3, 10, 4)
}

// The order is that of the sequence, also where no index gives it and the table
// holds the newest event first.
func TestEventsAreListedBySequence(t *testing.T) {
	db := withRun.New(t)
	db.Exec(t, `insert into run_events (tenant_id, run_id, sequence, type, event) select 't', 'r', n, 'x', '{}' from generate_series(6, 1, -1) n`)
	conn := db.Conn(t)
	if _, err := conn.Exec(t.Context(), `set enable_indexscan = off; set enable_bitmapscan = off`); err != nil {
		t.Fatal(err)
	}
	list(t, postgres.New(conn, postgres.Options{}), "r", 1, 4, 2, 3, 4, 5)
}

// A history that was copied in by hand goes on where it ends.
func TestAnImportedHistoryGoesOn(t *testing.T) {
	db := withRun.New(t)
	db.Exec(t, `insert into run_events (tenant_id, run_id, sequence, type, event) select 't', 'r', n, 'old', '{}' from generate_series(1, 5) n`)
	log := postgres.New(db.Pool(t), postgres.Options{})
	latest(t, log, "r", 5)
	add(t, log, "r", 7, step(6), step(7))
	latest(t, log, "r", 7)
	latest(t, log, "r2", 0)
}

func TestAConflictSaysToTryAgain(t *testing.T) {
	t.Run("an event written past the log", func(t *testing.T) {
		db := withRun.New(t)
		log := postgres.New(db.Pool(t), postgres.Options{})
		past, err := db.Conn(t).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := past.Exec(t.Context(), `insert into run_events (tenant_id, run_id, sequence, type, event) values ('t', 'r', 1, 'x', '{}')`); err != nil {
			t.Fatal(err)
		}
		conn := db.Conn(t)
		done := db.Beside(t, conn, func() error {
			_, err := postgres.New(conn, postgres.Options{}).Append(bounded(t), "t", "r", step(1))
			return err
		})
		if err := past.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("append: %v", err)
		}
		add(t, log, "r", 2, step(2))
	})

	t.Run("an isolation level that does not wait", func(t *testing.T) {
		db := withRun.New(t)
		conn := db.Conn(t)
		log := postgres.New(conn, postgres.Options{})
		tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		list(t, log.In(tx), "r", 0, 1) // its snapshot
		add(t, postgres.New(db.Pool(t), postgres.Options{}), "r", 1, step(1))
		if _, err := log.In(tx).Append(bounded(t), "t", "r", step(2)); !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("append: %v", err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		add(t, log, "r", 2, step(2))
	})

	t.Run("a deadlock", func(t *testing.T) {
		db := withRun.New(t)
		log := postgres.New(db.Pool(t), postgres.Options{})
		one, two := db.Conn(t), db.Conn(t)
		a, err := one.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := two.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add(t, log.In(a), "r", 1, step(1))
		add(t, log.In(b), "r2", 1, step(1))
		done := db.Beside(t, one, func() error { _, err := log.In(a).Append(bounded(t), "t", "r2", step(1)); return err })
		_, errB := log.In(b).Append(bounded(t), "t", "r", step(1))
		if errB != nil {
			if err := b.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		errA := <-done
		if errA != nil {
			errA, errB = errB, errA
		}
		if errA != nil || !errors.Is(errB, eventlog.ErrConflict) {
			t.Errorf("of the two, one got %v and the other %v", errA, errB)
		}
		for _, tx := range []pgx.Tx{a, b} {
			if err := tx.Rollback(t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
				t.Fatal(err)
			}
		}
	})
}

// A sweep locks the row of an owner and passes over one that it can not have.
func TestARunThatIsBeingAppendedToIsPassedOverByASweep(t *testing.T) {
	db := withRun.New(t)
	conn := db.Conn(t)
	log := postgres.New(conn, postgres.Options{})
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	add(t, log.In(tx), "r", 1, step(1))
	const lock = `select coalesce(string_agg(id, ','), '') from (select id from runs where tenant_id = 't' order by id for share skip locked) l`
	if got := db.Text(t, lock); got != "r2" {
		t.Errorf("lockable beside the appender: %q, want r2", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := db.Text(t, lock); got != "r,r2" {
		t.Errorf("lockable after it: %q", got)
	}
}

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	return ctx
}
