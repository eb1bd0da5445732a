package purge

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

func purge(t *testing.T, s *script, b Bounds) (Report, error) {
	t.Helper()
	r, err := Run(t.Context(), s, b)
	if !errors.Is(err, r.Err) || (err == nil) != (r.Err == nil) {
		t.Errorf("the error is %v, and in the report %v", err, r.Err)
	}
	if len(r.Steps) != len(s.steps) {
		t.Fatalf("the report has %d steps of %d", len(r.Steps), len(s.steps))
	}
	for i, st := range r.Steps {
		if st.Table != s.steps[i].spec.Table {
			t.Errorf("step %d is %s, want %s", i, st.Table, s.steps[i].spec.Table)
		}
	}
	return r, err
}

func want(t *testing.T, r Report, s *script, stop Stop, log ...string) {
	t.Helper()
	if r.Stop != stop {
		t.Errorf("stop %q (%v), want %q", r.Stop, r.Err, stop)
	}
	if r.Proved() != (stop == StopPurged) {
		t.Errorf("proved: %t", r.Proved())
	}
	if !slices.Equal(s.log, log) {
		t.Errorf("asked %q\nwant  %q", s.log, log)
	}
}

// TestPurged: each table in its order, batch after batch from where the last one was, and a look at the end.
func TestPurged(t *testing.T) {
	s := tables("events 25, runs 3, empty 0")
	r, err := purge(t, s, Bounds{Limit: 10, CountTo: 7})
	want(t, r, s, StopPurged, "events", "events+", "events+", "runs", "empty", "look")
	if err != nil || r.Removed() != 28 || r.Late() != 0 || r.Passes != 1 || r.Elapsed <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for i, w := range []struct{ removed, batches int }{{25, 3}, {3, 1}, {0, 0}} {
		if st := r.Steps[i]; st.Removed != w.removed || st.Batches != w.batches || st.Left != (tenant.Left{}) || w.batches > 0 && st.SlowestBatch <= 0 {
			t.Errorf("step %d: %+v", i, st)
		}
	}
	if r.Proof == nil || !r.Proof.At.Equal(looked) || !r.Proof.Empty() || !slices.Equal(s.bounds, []int{7}) {
		t.Errorf("the proof is %+v of looks at %v", r.Proof, s.bounds)
	}
	first, second := s.steps[0].calls[0], s.steps[0].calls[1]
	if first != (tenant.Batch{Limit: 10}) || second != (tenant.Batch{Limit: 10, After: pruner.NewCursor("1")}) {
		t.Errorf("the batches are %+v and %+v", first, second)
	}
}

// TestNoCeilings: what is silent in the bounds ends a purge neither after the rows nor after the time of a sweep.
func TestNoCeilings(t *testing.T) {
	s := tables("events 1300000")
	r, _ := purge(t, s, Bounds{Limit: policy.MaxLimit})
	if r.Stop != StopPurged || r.Removed() != 1_300_000 || !slices.Equal(s.bounds, []int{DefaultCountTo}) {
		t.Errorf("%q, %d removed, looks at %v", r.Stop, r.Removed(), s.bounds)
	}
	for _, b := range s.steps[0].calls {
		if b.Timeout != 0 {
			t.Fatalf("a batch has %s, as if there were a ceiling", b.Timeout)
		}
	}
}

// TestLateRows: what the look after the first pass finds is counted, goes in a second pass over all tables, and is looked
// for again.
func TestLateRows(t *testing.T) {
	s := tables("events 5, runs 2")
	s.onLook = func(n int) error {
		if n == 1 {
			s.steps[0].rows += 3
			s.steps[1].rows++
		}
		return nil
	}
	r, err := purge(t, s, Bounds{})
	want(t, r, s, StopPurged, "events", "runs", "look", "events", "runs", "look")
	if err != nil || r.Passes != 2 || r.Removed() != 11 || r.Late() != 4 || r.Steps[0].Late != 3 || r.Steps[0].Removed != 8 || r.Steps[1].Late != 1 || !r.Proof.Empty() {
		t.Errorf("%+v, %v", r, err)
	}

	// Rows that come for ever end it: two passes, and no more.
	s = tables("events 5")
	s.onLook = func(n int) error { s.steps[0].rows += n; return nil }
	r, err = purge(t, s, Bounds{})
	want(t, r, s, StopLeft, "events", "look", "events", "look")
	if err != nil || r.Passes != 2 || r.Removed() != 6 || r.Late() != 1 || r.Steps[0].Left != (tenant.Left{Rows: 2}) || r.Proof.Rows() != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLockedAndStuckGoOn: rows that cannot go keep no other table from its turn, and are said with what keeps them.
func TestLockedAndStuckGoOn(t *testing.T) {
	s := tables("locked 2, moved 1, stuck 3, shut 4, runs 5")
	block := pruner.Block{Constraint: "keep", Table: "public.notes", Rows: 3}
	shut := &pruner.LockTimeoutError{Table: "public.shut"}
	s.steps[0].answer = always(pruner.Result{Examined: 2, Locked: 2, End: true}, nil)
	s.steps[1].answer = always(pruner.Result{Examined: 1, Moved: 1, End: true}, nil)
	s.steps[2].answer = always(pruner.Result{Examined: 3, Stuck: 3, Blocked: []pruner.Block{block}, End: true}, nil)
	s.steps[3].answer = always(pruner.Result{}, shut)
	r, err := purge(t, s, Bounds{})
	pass := []string{"locked", "locked", "moved", "moved", "stuck", "shut", "runs", "look"} // what is locked is tried once more
	want(t, r, s, StopLeft, append(slices.Clone(pass), pass...)...)
	if err != nil || r.Removed() != 5 || r.Late() != 10 || r.Steps[4].Left.Rows != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if st := r.Steps[0]; st.Locked != 2 || st.Stuck != 0 || st.Left.Rows != 2 || st.Err != nil {
		t.Errorf("locked: %+v", st)
	}
	if st := r.Steps[1]; st.Locked != 1 {
		t.Errorf("moved: %+v", st)
	}
	if st := r.Steps[2]; st.Stuck != 3 || !slices.Equal(st.Blocked, []pruner.Block{block}) || st.Left.Rows != 3 {
		t.Errorf("stuck: %+v", st)
	}
	if st := r.Steps[3]; !errors.Is(st.Err, shut) || st.Left.Rows != 4 {
		t.Errorf("shut: %+v", st)
	}

	// What was locked in the first pass and is free in the second is gone, and counted in neither.
	s = tables("locked 2")
	s.steps[0].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
		return pruner.Result{Examined: 2, Locked: 2, End: true}, nil, n <= 2
	}
	r, _ = purge(t, s, Bounds{})
	want(t, r, s, StopPurged, "locked", "locked", "look", "locked", "look")
	if st := r.Steps[0]; st.Locked != 0 || st.Removed != 2 || st.Late != 2 {
		t.Errorf("freed: %+v", st)
	}
}

// TestSelf: where rows of a table refer to each other, the leaves go first, and the table is gone through again as long as
// something goes and something was kept.
func TestSelf(t *testing.T) {
	leaf := func(s *script) func(int, tenant.Batch) (pruner.Result, error, bool) {
		return func(int, tenant.Batch) (pruner.Result, error, bool) {
			all := s.steps[0].rows
			return pruner.Result{Examined: all, Removed: min(all, 2), Stuck: all - min(all, 2), End: true}, nil, true
		}
	}
	s := tables("tree 7, runs 1")
	s.steps[0].spec.Self, s.steps[0].answer = "tree_parent_fkey", leaf(s)
	r, err := purge(t, s, Bounds{})
	want(t, r, s, StopPurged, "tree", "tree", "tree", "tree", "runs", "look")
	if st := r.Steps[0]; err != nil || st.Removed != 7 || st.Stuck != 0 || st.Batches != 4 || st.Self == "" {
		t.Errorf("%+v, %v", st, err)
	}

	s = tables("tree 7, runs 1")
	s.steps[0].answer = leaf(s)
	r, _ = purge(t, s, Bounds{})
	want(t, r, s, StopLeft, "tree", "runs", "look", "tree", "runs", "look") // not one that says so
	if st := r.Steps[0]; st.Removed != 4 || st.Stuck != 3 || st.Left.Rows != 3 {
		t.Errorf("%+v", st)
	}

	s = tables("tree 2, runs 1")
	s.steps[0].spec.Self, s.steps[0].answer = "tree_parent_fkey", always(pruner.Result{Examined: 2, Stuck: 2, End: true}, nil)
	r, _ = purge(t, s, Bounds{})
	want(t, r, s, StopLeft, "tree", "runs", "look", "tree", "runs", "look") // a ring, say: nothing goes
}

// TestProgress: a call for each batch, with the sums of the table and of all of them, over the passes.
func TestProgress(t *testing.T) {
	s := tables("events 15, runs 2")
	s.onLook = func(n int) error {
		if n == 1 {
			s.steps[0].rows += 4
		}
		return nil
	}
	var got []Progress
	if _, err := purge(t, s, Bounds{Limit: 10, OnBatch: func(p Progress) {
		if p.Took < 0 {
			t.Errorf("took %s", p.Took)
		}
		p.Took = 0
		got = append(got, p)
	}}); err != nil {
		t.Fatal(err)
	}
	if w := []Progress{
		{Step: 0, Pass: 1, Removed: 10, Total: 10, Limit: 10}, {Step: 0, Pass: 1, Removed: 15, Total: 15, Limit: 10}, {Step: 1, Pass: 1, Removed: 2, Total: 17, Limit: 10},
		{Step: 0, Pass: 2, Removed: 19, Total: 21, Limit: 10}, {Step: 1, Pass: 2, Removed: 2, Total: 21, Limit: 10},
	}; !slices.Equal(got, w) {
		t.Errorf("got\n%+v\nwant\n%+v", got, w)
	}
}

// TestWrongBounds: nothing is touched, and nothing is looked at.
func TestWrongBounds(t *testing.T) {
	for name, b := range map[string]Bounds{
		"limit": {Limit: -1}, "a large limit": {Limit: policy.MaxLimit + 1}, "target": {BatchTarget: -1}, "time": {Duration: -1}, "pause": {Pause: -1},
		"lock timeout": {LockTimeout: -1}, "count": {CountTo: -1},
	} {
		s := tables("events 5")
		r, err := purge(t, s, b)
		want(t, r, s, StopFailed)
		if !errors.Is(err, drain.ErrBounds) || r.Proof != nil || r.Passes != 0 {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	s := &script{}
	r, err := purge(t, s, Bounds{})
	want(t, r, s, StopFailed)
	if !errors.Is(err, ErrContract) {
		t.Errorf("without a table: %v", err)
	}
}

// TestStopBefore: a purge that is told to stop before its first batch touches nothing.
func TestStopBefore(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	s := tables("events 5")
	r, err := purge(t, s, Bounds{Stop: stop})
	want(t, r, s, StopSignal)
	if err != nil || r.Proof != nil {
		t.Errorf("%v, %+v", err, r)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the deploy"))
	s = tables("events 5")
	r, err = Run(ctx, s, Bounds{})
	want(t, r, s, StopSignal)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("%v", err)
	}
}
