package purge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

var errBroken = errors.New("the disk is full")

// TestEnds: what ends a purge in the middle of the second of three tables. What was committed before is counted, the third
// table has no turn, and but for a signal there is a look, which says what is left.
func TestEnds(t *testing.T) {
	unknown := &pruner.UnknownCommitError{XID: "7", Pending: pruner.Result{Removed: 10}, Err: errBroken}
	for _, c := range []struct {
		name   string
		end    func(s *script, b *Bounds, cancel func()) // in the second batch of the second table
		stop   Stop
		err    error
		looks  int
		asked  bool // the second batch was asked for
		during int  // pruned by the second batch
	}{
		{"failed", func(s *script, _ *Bounds, _ func()) { s.steps[1].answer = only(2, pruner.Result{}, errBroken) }, StopFailed, errBroken, 1, true, 0},
		{"against the contract", func(s *script, _ *Bounds, _ func()) {
			s.steps[1].answer = only(2, pruner.Result{Examined: 11, Removed: 11}, nil)
		}, StopFailed, ErrContract, 1, true, 11},
		{"unknown commit", func(s *script, _ *Bounds, _ func()) { s.steps[1].answer = only(2, pruner.Result{}, unknown) }, StopFailed, unknown, 1, true, 0},
		{"busy", func(s *script, b *Bounds, _ func()) {
			b.LockTimeout = 1
			s.steps[1].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
				return pruner.Result{Busy: true}, nil, n >= 2
			}
		}, StopBusy, nil, 1, true, 0},
		{"ceiling", func(s *script, b *Bounds, _ func()) {
			b.Duration, b.now = time.Minute, s.clock(func() time.Duration {
				if len(s.steps[0].calls) > 0 {
					return time.Minute - 1 // one batch starts in it
				}
				return 0
			})
		}, StopCeiling, nil, 1, false, 0},
		{"ceiling after the table", func(s *script, b *Bounds, _ func()) {
			b.Duration, b.now = time.Minute, s.clock(func() time.Duration { return time.Duration(len(s.steps[1].calls)) * 30 * time.Second })
			s.steps[1].answer = only(2, pruner.Result{Examined: 10, Removed: 10, End: true}, nil)
		}, StopCeiling, nil, 1, true, 10},
		{"stop after the batch", func(s *script, b *Bounds, _ func()) {
			stop := make(chan struct{})
			b.Stop = stop
			s.steps[1].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
				if n == 2 {
					close(stop)
				}
				return pruner.Result{}, nil, false
			}
		}, StopSignal, nil, 0, true, 10},
		{"stop after the table", func(s *script, b *Bounds, _ func()) {
			stop := make(chan struct{})
			b.Stop = stop
			s.steps[1].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
				if n == 2 {
					close(stop)
				}
				return pruner.Result{Examined: 10, Removed: 10, End: true}, nil, n == 2
			}
		}, StopSignal, nil, 0, true, 10},
		{"stop beside a failure", func(s *script, b *Bounds, _ func()) {
			stop := make(chan struct{})
			b.Stop = stop
			s.steps[1].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
				if n == 2 {
					close(stop)
				}
				return pruner.Result{}, errBroken, n == 2
			}
		}, StopFailed, errBroken, 0, true, 0},
		{"cancelled in the batch", func(s *script, _ *Bounds, cancel func()) {
			s.steps[1].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
				if n == 2 {
					cancel()
				}
				return pruner.Result{}, context.Canceled, n == 2
			}
		}, StopSignal, context.Canceled, 0, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tables("events 10, jobs 25, runs 5")
			b := Bounds{Limit: 10}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.end(s, &b, cancel)
			r, err := Run(ctx, s, b)
			if r.Stop != c.stop || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || !errors.Is(r.Err, c.err) {
				t.Fatalf("%q, %v; want %q, %v", r.Stop, err, c.stop, c.err)
			}
			if r.Steps[0].Removed != 10 || r.Steps[1].Removed != 10+c.during || r.Removed() != 20+c.during || r.Late() != 0 || r.Passes != 1 {
				t.Errorf("%+v", r)
			}
			if len(s.steps[2].calls) > 0 || (len(s.steps[1].calls) > 1) != c.asked || s.looks() != c.looks {
				t.Errorf("%q", s.log)
			}
			if (r.Proof != nil) != (c.looks > 0) {
				t.Errorf("the proof is %+v", r.Proof)
			}
			if left := r.Steps[1].Left.Rows; c.looks > 0 && left != 15-c.during || c.looks == 0 && left != 0 {
				t.Errorf("%d left", left)
			}
			if errors.Is(c.err, unknown) != (r.Steps[1].UnknownCommits == 1) {
				t.Errorf("%d unknown commits", r.Steps[1].UnknownCommits)
			}
			if c.stop == StopFailed && (!errors.Is(r.Steps[1].Err, c.err) || r.Steps[0].Err != nil) {
				t.Errorf("the errors of the tables are %v, %v", r.Steps[0].Err, r.Steps[1].Err)
			}
		})
	}
}

// clock is the time of a purge as it has passed since the beginning.
func (s *script) clock(passed func() time.Duration) func() time.Time {
	return func() time.Time { return looked.Add(passed()) }
}

// TestEndsSayWhere: the error names the table.
func TestEndsSayWhere(t *testing.T) {
	s := tables("events 10")
	s.steps[0].answer = always(pruner.Result{}, errBroken)
	if _, err := purge(t, s, Bounds{}); err == nil || err.Error() != "public.events: the disk is full" {
		t.Errorf("%v", err)
	}
}

// TestBusyAtOnce: another purge of the tenant has it; nothing is waited for.
func TestBusyAtOnce(t *testing.T) {
	s := tables("events 10, runs 5")
	s.steps[0].answer = always(pruner.Result{Busy: true}, nil)
	r, err := purge(t, s, Bounds{LockTimeout: time.Hour})
	want(t, r, s, StopBusy, "events", "look")
	if err != nil || r.Removed() != 0 || r.Proof.Rows() != 15 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSecondPassEnds: a purge that is cut short in its second pass keeps what the look before it found as late, and not as
// left: rows have gone since.
func TestSecondPassEnds(t *testing.T) {
	stop := make(chan struct{})
	s := tables("events 10, runs 5")
	s.onLook = func(int) error { s.steps[0].rows += 3; return nil }
	s.steps[0].answer = func(n int, _ tenant.Batch) (pruner.Result, error, bool) {
		if n == 2 {
			close(stop)
		}
		return pruner.Result{}, nil, false
	}
	r, err := purge(t, s, Bounds{Stop: stop})
	want(t, r, s, StopSignal, "events", "runs", "look", "events")
	if err != nil || r.Passes != 2 || r.Removed() != 18 || r.Late() != 3 || r.Proof != nil || r.Steps[0].Left.Rows != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLookFails: rows that nobody looked for are not gone.
func TestLookFails(t *testing.T) {
	failAt := func(n int) *script {
		s := tables("events 10")
		s.onLook = func(i int) error {
			s.steps[0].rows += 2
			if i == n {
				return errBroken
			}
			return nil
		}
		return s
	}
	s := failAt(1)
	r, err := purge(t, s, Bounds{})
	want(t, r, s, StopFailed, "events", "look")
	if !errors.Is(err, errBroken) || r.Removed() != 10 || r.Proof != nil || r.Late() != 0 {
		t.Errorf("%+v, %v", r, err)
	}

	s = failAt(2)
	r, err = purge(t, s, Bounds{})
	want(t, r, s, StopFailed, "events", "look", "events", "look")
	if !errors.Is(err, errBroken) || r.Removed() != 12 || r.Proof != nil || r.Late() != 2 || r.Steps[0].Left.Rows != 0 {
		t.Errorf("%+v, %v", r, err)
	}

	// Beside a failure the first error is the one that counts.
	s = failAt(1)
	s.steps[0].answer = always(pruner.Result{}, context.DeadlineExceeded)
	r, err = purge(t, s, Bounds{})
	want(t, r, s, StopFailed, "events", "look")
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errBroken) || r.Proof != nil {
		t.Errorf("%+v, %v", r, err)
	}

	// One that says too little proves nothing.
	s = tables("events 10, runs 5")
	s.proof = &tenant.Proof{Left: []tenant.Left{{}}}
	r, err = purge(t, s, Bounds{})
	want(t, r, s, StopFailed, "events", "runs", "look")
	if !errors.Is(err, drain.ErrContract) || r.Proof != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSignalInTheLook: a look that was cancelled is no failure; one that was not, although the purge is to stop, counts.
func TestSignalInTheLook(t *testing.T) {
	for _, c := range []struct {
		cause error
		text  string
	}{{nil, "context canceled"}, {errors.New("the deploy"), "context canceled: the deploy"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := tables("events 10")
		s.onLook = func(int) error { cancel(c.cause); return errBroken }
		r, err := Run(ctx, s, Bounds{})
		want(t, r, s, StopSignal, "events", "look")
		if !errors.Is(err, context.Canceled) || err.Error() != c.text || r.Removed() != 10 || r.Proof != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}

	stop := make(chan struct{})
	s := tables("events 10")
	s.onLook = func(int) error { close(stop); return nil }
	r, _ := purge(t, s, Bounds{Stop: stop})
	want(t, r, s, StopPurged, "events", "look")

	// The last batch was the last of all, and the purge is told to stop: no look.
	stop = make(chan struct{})
	s = tables("events 10")
	r, _ = purge(t, s, Bounds{Stop: stop, OnBatch: func(Progress) { close(stop) }})
	want(t, r, s, StopSignal, "events")
	if r.Removed() != 10 {
		t.Errorf("%+v", r)
	}
}

// TestCeilingIsOfAllTables: with a ceiling, batches are bounded by the time that is left of it.
func TestCeilingIsOfAllTables(t *testing.T) {
	s := tables("events 25, runs 25")
	b := Bounds{Limit: 10, Duration: time.Hour}
	b.now = s.clock(func() time.Duration { return time.Duration(len(s.steps[0].calls)) * 10 * time.Minute })
	r, _ := purge(t, s, b)
	want(t, r, s, StopPurged, "events", "events+", "events+", "runs", "runs+", "runs+", "look")
	if first, second := s.steps[0].calls[1].Timeout, s.steps[1].calls[1].Timeout; first > time.Hour || first < 59*time.Minute || second > 30*time.Minute || second < 29*time.Minute {
		t.Errorf("the second batches have %s and %s", first, second)
	}
	if r.Elapsed != 30*time.Minute {
		t.Errorf("elapsed %s", r.Elapsed)
	}
}
