package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/domainevents/retention"
	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// reopeners are the ways to reopen an event: how many deliveries became owed, and whether the event was gone.
var reopeners = map[string]func(*testing.T, *pgxpool.Pool, int64) (int, bool, error){
	"requeue": func(t *testing.T, pool *pgxpool.Pool, _ int64) (int, bool, error) {
		done, err := events.New(events.Options{}).Requeue(bounded(t), pool, domainevents.Filter{Limit: 10})
		return len(done.Reopened), len(done.Gone) > 0, err
	},
	"requeue of the event": func(t *testing.T, pool *pgxpool.Pool, id int64) (int, bool, error) {
		done, err := events.New(events.Options{}).Requeue(bounded(t), pool, domainevents.Filter{Event: id, Limit: 10})
		return len(done.Reopened), len(done.Gone) > 0, err
	},
	"replay": func(t *testing.T, pool *pgxpool.Pool, id int64) (int, bool, error) {
		done, err := events.New(events.Options{}).Replay(bounded(t), pool, id)
		if errors.Is(err, domainevents.ErrGone) {
			return 0, true, nil
		}
		return len(done.Reopened), false, err
	},
}

// raceArms are the four arms, each with an event that is due in it.
var raceArms = []struct {
	name, retention string
	sweep           int
	age             time.Duration
	status          domainevents.Status
	reopeners       []string
}{
	{"default window", "", 0, 100 * 24 * time.Hour, domainevents.Dead, []string{"requeue", "requeue of the event", "replay"}},
	{"own window", "60", 0, 2 * time.Hour, domainevents.Dead, []string{"requeue", "requeue of the event", "replay"}},
	{"SUCCEEDED", "SUCCEEDED", 1, time.Hour, domainevents.Succeeded, []string{"replay"}}, // with a dead letter it is not due
	{"SETTLED", "SETTLED", 2, time.Hour, domainevents.Dead, []string{"requeue", "requeue of the event", "replay"}},
}

// TestEveryReopenerBesideEveryArm steps each way to reopen against each arm of the sweep itself, in both orders. Whoever is
// first is held in the middle of its work, after it has locked the event, by a lock on one of the deliveries.
func TestEveryReopenerBesideEveryArm(t *testing.T) {
	for _, arm := range raceArms {
		for _, name := range arm.reopeners {
			reopen := reopeners[name]
			t.Run(arm.name+", "+name, func(t *testing.T) {
				pool := installed.New(t).Pool(t)
				sweep := func() drain.SweepReport {
					s := retention.Sweeps("", policy.Never)[arm.sweep]
					s.Timeouts.Lock = 5 * time.Second // it waits for the test, and not for ever
					arms, err := postgres.Open(bounded(t), postgres.Pool(pool), s, postgres.Options{})
					must(t, err)
					r, err := drain.RunSweep(bounded(t), drain.SweepOf(s, arms, time.Now()))
					must(t, err)
					return r
				}
				hold := func(id int64) (release func()) {
					tx, err := pool.Begin(t.Context())
					must(t, err)
					_, err = tx.Exec(t.Context(), `select from domain_event_deliveries where event_id = $1 for update`, id)
					must(t, err)
					t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // where the test failed: nobody may wait for it
					return func() { must(t, tx.Rollback(t.Context())) }
				}
				waiting := func(n int) {
					for ctx := bounded(t); ; {
						var have int
						must(t, pool.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&have))
						if have == n {
							return
						}
					}
				}
				type outcome struct {
					n    int
					gone bool
					err  error
				}
				start := func(id int64) <-chan outcome {
					done := make(chan outcome, 1)
					go func() {
						n, gone, err := reopen(t, pool, id)
						done <- outcome{n, gone, err}
					}()
					return done
				}

				id := put(t, pool, "public", arm.age, arm.retention, arm.status, arm.status)
				release := hold(id)
				reopened := start(id)
				waiting(1)
				if r := sweep(); r.Removed+r.Children != 0 || r.Locked != 1 || r.Drained() {
					t.Errorf("the sweep beside a reopening: %+v", r.Report)
				}
				release()
				if o := <-reopened; o.err != nil || o.n != 2 || o.gone {
					t.Errorf("the reopening that came first: %+v", o)
				}
				if r := sweep(); r.Removed+r.Children != 0 || r.Held != 1 {
					t.Errorf("the sweep after a reopening: %+v", r.Report)
				}

				_, err := pool.Exec(t.Context(), `update domain_event_deliveries set status = $1, finished_at = now()`, string(arm.status))
				must(t, err)
				release = hold(id)
				swept := make(chan drain.SweepReport, 1)
				go func() { swept <- sweep() }()
				waiting(1)
				reopened = start(id)
				waiting(2)
				release()
				if r := <-swept; r.Removed != 1 || r.Children != 2 || !r.Drained() {
					t.Errorf("the sweep that came first: %+v", r.Report)
				}
				if o := <-reopened; o.err != nil || o.n != 0 || !o.gone {
					t.Errorf("the reopening after a sweep: %+v", o)
				}
			})
		}
	}
}
