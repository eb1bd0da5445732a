package river_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// A job ends as its arguments say.
type job struct {
	End string `json:"end"`
}

func (job) Kind() string { return "job" }

const (
	succeed = "succeed"
	cancel  = "cancel" // River's word for a job that will never be worked again
	fail    = "fail"
	wait    = "wait" // works until the test lets it go
)

// worker works jobs. A failed job is retried in an hour, where it has attempts left.
type worker struct {
	river.WorkerDefaults[job]

	waiting chan struct{} // a job waits
	letGo   chan struct{} // closed: waiting jobs succeed
}

func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	switch j.Args.End {
	case cancel:
		return river.JobCancel(errors.New("no longer wanted"))
	case fail:
		return errors.New("the other side did not answer")
	case wait:
		w.waiting <- struct{}{}
		select {
		case <-w.letGo:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *worker) NextRetry(*river.Job[job]) time.Time { return time.Now().Add(time.Hour) }

// queue is River at work on a database of its own.
type queue struct {
	*river.Client[pgx.Tx]

	pool   *pgxpool.Pool
	worker *worker
	events <-chan *river.Event // of jobs that ended, or failed
}

// startQueue makes River's tables by River's migrations, and starts a client whose job cleaner is off.
func startQueue(t *testing.T, db *pgtest.DB) *queue {
	t.Helper()
	pool := db.Pool(t)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatalf("migrate River's schema: %v", err)
	}

	q := &queue{pool: pool, worker: &worker{waiting: make(chan struct{}, 1), letGo: make(chan struct{})}}
	workers := river.NewWorkers()
	river.AddWorker(workers, q.worker)
	q.Client, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
		Workers:       workers,
		FetchCooldown: 5 * time.Millisecond,
		// -1 is River's word for "the job cleaner removes none of these".
		CompletedJobRetentionPeriod: -1,
		CancelledJobRetentionPeriod: -1,
		DiscardedJobRetentionPeriod: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Larger than all jobs of a test: River drops an event that finds no room.
	q.events, _ = q.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: 2 * worked,
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed},
	})
	if err := q.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := q.StopAndCancel(ctx); err != nil {
			t.Errorf("stop River: %v", err)
		}
	})
	return q
}

func (q *queue) insert(t *testing.T, n int, end string, opts river.InsertOpts) {
	t.Helper()
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i] = river.InsertManyParams{Args: job{end}, InsertOpts: &opts}
	}
	if _, err := q.InsertManyFast(t.Context(), jobs); err != nil {
		t.Fatalf("insert %d jobs: %v", n, err)
	}
}

// await returns when n more jobs have ended or failed.
func (q *queue) await(t *testing.T, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	for i := range n {
		select {
		case <-q.events:
		case <-limit:
			t.Fatalf("River worked %d of %d jobs within a minute", i, n)
		}
	}
}

// worked jobs have ended before the sweep, by these; liveEach more are left in each state that River still owes something in.
const (
	completed = 12_000
	cancelled = 4_000
	discarded = 4_000
	worked    = completed + cancelled + discarded
	liveEach  = 250
)

// makeHistory has River work jobs, and leaves others in every live state, one of them running. Then it makes the history older:
//   - of the jobs in each terminal state half are past their window, up to 30 days, and half are not, by an hour at least;
//   - discarded jobs that are not past theirs are older than the window of the other two states;
//   - every job was inserted a year ago, also those that are still owed.
func makeHistory(t *testing.T, db *pgtest.DB, q *queue) {
	t.Helper()
	q.insert(t, completed, succeed, river.InsertOpts{})
	q.insert(t, cancelled, cancel, river.InsertOpts{})
	q.insert(t, discarded, fail, river.InsertOpts{MaxAttempts: 1})
	q.insert(t, liveEach, fail, river.InsertOpts{MaxAttempts: 2}) // retryable
	q.await(t, worked+liveEach)
	q.insert(t, liveEach, succeed, river.InsertOpts{Queue: "nobody_works_here"}) // available
	q.insert(t, liveEach, succeed, river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	q.insert(t, liveEach, succeed, river.InsertOpts{Pending: true})
	q.insert(t, 1, wait, river.InsertOpts{}) // running
	select {
	case <-q.worker.waiting:
	case <-time.After(time.Minute):
		t.Fatal("River did not start a job within a minute")
	}

	db.Exec(t, `
		WITH numbered AS (
		  SELECT id, row_number() OVER (PARTITION BY state ORDER BY id) AS n,
		         CASE WHEN state = 'discarded' THEN interval '7 days' ELSE interval '24 hours' END AS keep
		    FROM river_job WHERE finalized_at IS NOT NULL)
		UPDATE river_job j
		   SET finalized_at = now() - CASE
		         WHEN n % 2 = 0 THEN keep + interval '1 hour' + (n % 977) * (interval '30 days' - keep) / 977
		         WHEN j.state = 'discarded' THEN keep - interval '1 hour' - (n % 977) * interval '5 days' / 977
		         ELSE keep - interval '1 hour' - (n % 977) * interval '23 hours' / 977 END
		  FROM numbered WHERE numbered.id = j.id`)
	db.Exec(t, `UPDATE river_job SET created_at = now() - interval '1 year'`)
	db.Exec(t, `ANALYZE river_job`)

	want := map[rivertype.JobState]int{
		rivertype.JobStateCompleted: completed, rivertype.JobStateCancelled: cancelled, rivertype.JobStateDiscarded: discarded,
		rivertype.JobStateAvailable: liveEach, rivertype.JobStateScheduled: liveEach, rivertype.JobStateRetryable: liveEach,
		rivertype.JobStatePending: liveEach, rivertype.JobStateRunning: 1,
	}
	equal(t, "jobs by state", counts[rivertype.JobState](t, q, `SELECT state::text, count(*) FROM river_job GROUP BY state`), want)
}

// counts reads rows of a name and a number.
func counts[K ~string](t *testing.T, q *queue, sql string) map[K]int {
	t.Helper()
	return collect[K, int](t, q, sql)
}

// collect reads rows of a key and a value.
func collect[K comparable, V any](t *testing.T, q *queue, sql string) map[K]V {
	t.Helper()
	rows, err := q.pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	m := map[K]V{}
	var k K
	var v V
	if _, err := pgx.ForEachRow(rows, []any{&k, &v}, func() error { m[k] = v; return nil }); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return m
}
