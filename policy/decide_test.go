package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

var (
	byState = policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed", "kept")}}
	byOwner = policy.Guard{Owner: &policy.OwnerGuard{
		Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "run", Owner: "id"}}, Column: "status", Terminal: policy.Texts("completed", "failed")}}
)

// TestDecide goes through every verdict, for each guard that can give it. The window is 7 days and now is day 100.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	old, young := now.Add(-8*day), now.Add(-6*day)
	edge, epoch, future := now.Add(-7*day), time.Unix(0, 0), now.Add(day)

	base := policy.Sweep{Name: "s", Table: policy.Name{Schema: "public", Table: "t"}, Age: "at", Window: policy.MustWindow(7 * day)}
	with := func(change func(*policy.Sweep)) policy.Sweep {
		s := base
		change(&s)
		return s
	}
	none := with(func(s *policy.Sweep) { s.Guard.None = "nothing is owed on it" })
	ended := with(func(s *policy.Sweep) { s.Guard.Ended = true })
	state := with(func(s *policy.Sweep) { s.Guard = byState })
	owner := with(func(s *policy.Sweep) { s.Guard = byOwner })
	both := with(func(s *policy.Sweep) { s.Guard.State, s.Guard.Owner = byState.State, byOwner.Owner })
	endedState := with(func(s *policy.Sweep) { s.Guard.State, s.Guard.Ended = byState.State, true })
	windows := with(func(s *policy.Sweep) {
		s.Guard = byState
		s.Window = policy.Never
		s.ByState = []policy.StateWindow{
			{State: policy.Text("failed"), Window: policy.MustWindow(30 * day)}, {State: policy.Text("done"), Window: policy.MustWindow(7 * day)}, {State: policy.Text("kept"), Window: policy.Never}}
	})
	mail := with(func(s *policy.Sweep) {
		s.Guard.None = "nothing is owed on it"
		s.Only = []policy.Match{{Column: "queue", Values: policy.Texts("mail")}, {Column: "error", Values: []policy.Value{policy.Null}}}
	})
	never := with(func(s *policy.Sweep) { s.Guard.None, s.Window = "nothing is owed on it", policy.Never })
	since2026 := with(func(s *policy.Sweep) {
		s.Guard.None, s.Since = "nothing is owed on it", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	})

	row := func(age *time.Time, columns ...string) policy.Row {
		r := policy.Row{Age: age, Columns: map[string]policy.Value{}}
		for i := 0; i < len(columns); i += 2 {
			if columns[i+1] != "<null>" {
				r.Columns[columns[i]] = policy.Text(columns[i+1])
			}
		}
		return r
	}
	owned := func(age *time.Time, state policy.Value, columns ...string) policy.Row {
		r := row(age, columns...)
		r.Owner = policy.OwnerState{Exists: true, State: state}
		return r
	}

	for _, c := range []struct {
		name  string
		sweep policy.Sweep
		row   policy.Row
		want  policy.Verdict
		says  string
	}{
		{"unguarded, old", none, row(&old), policy.Due, "before the cutoff 2026-04-04T00:00:00Z (window 7d)"},
		{"unguarded, exactly at the cutoff", none, row(&edge), policy.Young, "not before the cutoff"},
		{"unguarded, young", none, row(&young), policy.Young, "not before the cutoff"},
		{"unguarded, in the future", none, row(&future), policy.Young, "not before the cutoff"},
		{"unguarded, no age", none, row(nil), policy.Undated, "null or before 1990-01-01"},
		{"unguarded, the epoch", none, row(&epoch), policy.Undated, "null or before 1990-01-01"},
		{"unguarded, before a later since", since2026, row(ptr(time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC))), policy.Undated, "before 2026-01-01"},
		{"unguarded, at a later since", since2026, row(ptr(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))), policy.Due, ""},
		{"kept for ever", never, row(&old), policy.Young, "window never"},

		{"only, another queue", mail, row(&old, "queue", "fax"), policy.Outside, "queue is fax"},
		{"only, queue null", mail, row(&old), policy.Outside, "queue is null"},
		{"only, another queue and no age", mail, row(nil, "queue", "fax"), policy.Outside, "queue is fax"},
		{"only, with an error", mail, row(&old, "queue", "mail", "error", "boom"), policy.Outside, "error is boom"},
		{"only, matched", mail, row(&old, "queue", "mail"), policy.Due, ""},

		{"ended, old", ended, row(&old), policy.Due, ""},
		{"ended, no age", ended, row(nil), policy.Young, "the row is live"},
		{"ended, an age of zero", ended, row(&epoch), policy.Young, "the row is live"},

		{"own state, terminal", state, row(&old, "state", "done"), policy.Due, ""},
		{"own state, the other terminal", state, row(&old, "state", "failed"), policy.Due, ""},
		{"own state, live", state, row(&old, "state", "running"), policy.Held, "state is running, which is not terminal"},
		{"own state, nobody knows it", state, row(&old, "state", "paused"), policy.Held, "state is paused"},
		{"own state, null", state, row(&old), policy.Held, "state is null"},
		{"own state, empty", state, row(&old, "state", ""), policy.Held, "not terminal"},
		{"own state, in capitals", state, row(&old, "state", "DONE"), policy.Held, "DONE"},
		{"own state, live and young", state, row(&young, "state", "running"), policy.Young, "not before the cutoff"},
		{"own state, terminal without an age", state, row(nil, "state", "done"), policy.Undated, "null"},
		{"own state, live without an age", state, row(nil, "state", "running"), policy.Young, "the row is live"},
		{"own state, null without an age", state, row(nil), policy.Young, "the row is live"},
		{"own state and ended, terminal without an age", endedState, row(nil, "state", "done"), policy.Young, "the row is live"},

		{"windows by state, past its own", windows, row(ptr(now.Add(-31*day)), "state", "failed"), policy.Due, "window 30d"},
		{"windows by state, past another's", windows, row(&old, "state", "failed"), policy.Young, "window 30d"},
		{"windows by state, past the short one", windows, row(&old, "state", "done"), policy.Due, "window 7d"},
		{"windows by state, kept for ever", windows, row(&old, "state", "kept"), policy.Young, "window never"},
		{"windows by state, live past the shortest", windows, row(&old, "state", "running"), policy.Held, "running"},
		{"windows by state, live before the shortest", windows, row(&young, "state", "running"), policy.Young, "window 7d"},

		{"owner, terminal", owner, owned(&old, policy.Text("completed")), policy.Due, ""},
		{"owner, live", owner, owned(&old, policy.Text("running")), policy.Held, "status of its owner in public.runs is running"},
		{"owner, state null", owner, owned(&old, policy.Null), policy.Held, "is null, which is not terminal"},
		{"owner, gone", owner, row(&old), policy.Orphan, "no row of public.runs owns it"},
		{"owner, gone, young", owner, row(&young), policy.Young, ""},
		{"owner, live, young", owner, owned(&young, policy.Text("running")), policy.Young, ""},
		{"owner, no age", owner, owned(nil, policy.Text("completed")), policy.Undated, ""},

		{"state and owner, both let go", both, owned(&old, policy.Text("failed"), "state", "done"), policy.Due, ""},
		{"state and owner, the state holds", both, owned(&old, policy.Text("failed"), "state", "running"), policy.Held, "state is running"},
		{"state and owner, the owner holds", both, owned(&old, policy.Text("running"), "state", "done"), policy.Held, "of its owner"},
		{"state and owner, no owner", both, row(&old, "state", "done"), policy.Orphan, ""},
	} {
		got := c.sweep.Decide(now, c.row)
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.says) || got.Reason == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Verdict, got.Reason, c.want, c.says)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestZeroVerdictKeeps: of all verdicts only Due removes, and the zero one is not it.
func TestZeroVerdictKeeps(t *testing.T) {
	var v policy.Verdict
	if v == policy.Due || v.String() != "young" {
		t.Errorf("the zero verdict is %s", v)
	}
}

// TestDecideIsMonotonic: a row does not become less due by waiting, nor by a shorter window.
func TestDecideIsMonotonic(t *testing.T) {
	now := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	age := now.Add(-10 * day)
	due := func(w time.Duration, wait time.Duration) bool {
		s := policy.Sweep{Age: "at", Window: policy.MustWindow(w), Guard: policy.Guard{None: "nothing is owed on it"}}
		return s.Decide(now.Add(wait), policy.Row{Age: &age}).Verdict == policy.Due
	}
	was := false
	for wait := -time.Hour; wait <= time.Hour; wait += time.Minute {
		is := due(10*day, wait)
		if was && !is {
			t.Errorf("due no more after %s", wait)
		}
		was = is
	}
	if !was || due(10*day, 0) || !due(10*day-time.Second, 0) {
		t.Error("the edge of the window is not where it should be")
	}
}
