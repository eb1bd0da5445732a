package river_test

import (
	"reflect"
	"testing"

	"github.com/riverqueue/river/rivertype"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// due are the jobs that the policy file lets go, in plain SQL that knows nothing of prunectl.
const due = `(state IN ('completed', 'cancelled') AND finalized_at < now() - interval '24 hours'
	OR state = 'discarded' AND finalized_at < now() - interval '7 days')`

const index = "river_job_state_and_finalized_at_index"

// removal is what a sweep says of itself.
type removal struct {
	byState  map[string]int
	examined int
	drained  bool
	indexes  []string
}

// proveSweep makes a history and sweeps it. What the sweep says and what it leaves is compared with what SQL said before it, and
// River goes on working, before, during and after.
func proveSweep(t *testing.T, db *pgtest.DB, sweep func(t *testing.T, due map[string]int) removal) {
	q := startQueue(t, db)
	makeHistory(t, db, q)
	want := counts[string](t, q, `SELECT state::text, count(*) FROM river_job WHERE `+due+` GROUP BY state`)
	equal(t, "jobs that are due", want, map[string]int{"completed": completed / 2, "cancelled": cancelled / 2, "discarded": discarded / 2})
	kept := q.jobs(t, `NOT `+due)
	equal(t, "jobs that are not due", len(kept), worked/2+4*liveEach+1)

	got := sweep(t, want)
	equal(t, "removed by state", got.byState, want)
	equal(t, "jobs examined, which are those that are due", got.examined, worked/2)
	equal(t, "drained", got.drained, true)
	for _, name := range got.indexes {
		equal(t, "the index that served", name, index)
	}
	q.unchanged(t, kept)

	again := sweep(t, map[string]int{"completed": 0, "cancelled": 0, "discarded": 0})
	equal(t, "removed by a second sweep", again.byState, map[string]int{"completed": 0, "cancelled": 0, "discarded": 0})
	q.unchanged(t, kept)

	// River finishes the job that ran meanwhile, and takes new ones.
	close(q.worker.letGo)
	q.await(t, 1)
	for end, state := range map[string]rivertype.JobState{succeed: rivertype.JobStateCompleted, cancel: rivertype.JobStateCancelled} {
		inserted, err := q.Insert(t.Context(), job{end}, nil)
		if err != nil {
			t.Fatalf("insert a job after the sweep: %v", err)
		}
		q.await(t, 1)
		after, err := q.JobGet(t.Context(), inserted.Job.ID)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "state of a job inserted after the sweep", after.State, state)
	}
	equal(t, "running jobs", counts[string](t, q, `SELECT state::text, count(*) FROM river_job WHERE state = 'running' GROUP BY state`), map[string]int{})
}

// jobs are the jobs WHERE, by their id, each as the text of its row.
func (q *queue) jobs(t *testing.T, where string) map[int64]string {
	t.Helper()
	return collect[int64, string](t, q, `SELECT id, j::text FROM river_job j WHERE `+where)
}

// unchanged asserts that these jobs are there as they were, and no others.
func (q *queue) unchanged(t *testing.T, want map[int64]string) {
	t.Helper()
	got := q.jobs(t, "true")
	wrong := 0
	for id, row := range want {
		if got[id] != row && wrong < 10 {
			wrong++
			t.Errorf("job %d was kept as %s; it was %s", id, got[id], row)
		}
	}
	for id, row := range got {
		if _, ok := want[id]; !ok && wrong < 10 {
			wrong++
			t.Errorf("job %d was due and is still there: %s", id, row)
		}
	}
	if wrong > 0 {
		t.FailNow()
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}
