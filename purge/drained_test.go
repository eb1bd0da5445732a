package purge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// TestDrained: a table is drained as an arm is. A row that the database refuses to delete is searched for and stepped over,
// and what is locked is skipped, in the modes that a drain asks for.
func TestDrained(t *testing.T) {
	s := tables("events 4")
	keep := pruner.Block{Constraint: "notes_event_fkey", Table: "public.notes"}
	at := 0 // the first row that is left; the third cannot go
	s.steps[0].answer = func(_ int, b tenant.Batch) (pruner.Result, error, bool) {
		n := min(b.Limit, 4-at)
		if b.Mode == pruner.StepStuck {
			at += n
			return pruner.Result{Examined: n, Stuck: n, End: at == 4, Next: pruner.NewCursor(fmt.Sprint(at))}, nil, true
		}
		if at <= 2 && at+n > 2 {
			return pruner.Result{}, &pruner.RefusedError{Code: "23503", Block: keep, Err: errBroken}, true
		}
		at += n
		return pruner.Result{Examined: n, Removed: n, End: at == 4, Next: pruner.NewCursor(fmt.Sprint(at))}, nil, true
	}
	s.proof = &tenant.Proof{Left: []tenant.Left{{}}} // somebody else removed the one that is left
	r, err := purge(t, s, Bounds{Limit: 4})
	blocked := keep
	blocked.Rows = 1
	if st := r.Steps[0]; err != nil || r.Stop != StopPurged || st.Removed != 3 || st.Stuck != 1 || !slices.Equal(st.Blocked, []pruner.Block{blocked}) {
		t.Errorf("%+v, %v", r, err)
	}
	modes := map[pruner.Mode]int{}
	for _, c := range s.steps[0].calls {
		modes[c.Mode]++
	}
	if modes[pruner.StepStuck] != 1 {
		t.Errorf("modes %v", modes)
	}

	s = tables("events 4")
	s.steps[0].answer = func(_ int, b tenant.Batch) (pruner.Result, error, bool) {
		return pruner.Result{}, &pruner.LockTimeoutError{CanSkip: true, Err: errBroken}, b.Mode == pruner.Remove
	}
	r, err = purge(t, s, Bounds{})
	want(t, r, s, StopPurged, "events", "events", "look")
	if err != nil || s.steps[0].calls[1].Mode != pruner.SkipLocked {
		t.Errorf("%+v, %v", s.steps[0].calls, err)
	}
}

// TestBoundsOfADrain: what bounds a purge bounds the drain of each of its tables.
func TestBoundsOfADrain(t *testing.T) {
	stop := make(chan struct{})
	b := Bounds{Limit: 1, BatchTarget: 2, Pause: 3, LockTimeout: 4, Stop: stop}
	if d := b.of(5, nil); d.Limit != 1 || d.BatchTarget != 2 || d.Pause != 3 || d.LockTimeout != 4 || d.Duration != 5 || d.Stop == nil ||
		d.Rows != drain.NoCeiling || d.Batches != 0 {
		t.Errorf("%+v", d)
	}
}

// TestBoundsOf: what the policy says, and its defaults where it is silent.
func TestBoundsOf(t *testing.T) {
	b := BoundsOf(policy.Purge{Batch: policy.Batch{Limit: 7}, Timeouts: policy.Timeouts{Lock: time.Second}, Pause: time.Minute})
	if b.Limit != 7 || b.BatchTarget != policy.DefaultTarget || b.LockTimeout != time.Second || b.Pause != time.Minute || b.Duration != 0 || b.CountTo != 0 {
		t.Errorf("%+v", b)
	}
}

// TestStepReport: rows, batches and unknown commits are summed up, the slowest batch is that of all, and what was left in place
// is that of the last time.
func TestStepReport(t *testing.T) {
	var s StepReport
	block := []pruner.Block{{Constraint: "keep", Table: "public.notes", Rows: 4}}
	s.add(drain.Report{Removed: 5, Batches: 2, SlowestBatch: time.Second, Locked: 1, Moved: 1, Stuck: 1, UnknownCommits: 1, Err: errBroken})
	s.add(drain.Report{Removed: 7, Batches: 1, SlowestBatch: time.Millisecond, Locked: 2, Stuck: 4, Blocked: block})
	if s.Removed != 12 || s.Batches != 3 || s.SlowestBatch != time.Second || s.Locked != 2 || s.Stuck != 4 || s.UnknownCommits != 1 || s.Err != nil || !slices.Equal(s.Blocked, block) {
		t.Errorf("%+v", s)
	}
}
