package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// TestArmsOfOwnWindows: rows with a window of their own, and those without, are two parts of the sweep. Each is cut through
// an index of its own, and together they are every row once.
func TestArmsOfOwnWindows(t *testing.T) {
	week := policy.MustWindow(7 * day)
	s := policy.Sweep{Name: "s", Age: "at", Window: week, Own: &policy.RowWindow{Column: "keep", Unit: time.Second}, Guard: policy.Guard{Owed: owed()}, Children: []policy.Child{{Table: logs, Key: byID}}}
	with := func(change func(*policy.Sweep)) policy.Sweep {
		c := s
		change(&c)
		return c
	}
	low := with(func(s *policy.Sweep) { s.Floor = time.Second })
	never := with(func(s *policy.Sweep) { s.Window = policy.Never })
	atOnce := with(func(s *policy.Sweep) { s.Window = policy.AtOnce })
	state := with(func(s *policy.Sweep) {
		s.Guard, s.Children = policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed")}, Hold: "hold"}, nil
	})
	unequal := with(func(s *policy.Sweep) {
		s.Guard, s.Children, s.Window = state.Guard, nil, policy.Never
		s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: week}, {State: policy.Text("failed"), Window: policy.MustWindow(30 * day)}}
	})
	mail := with(func(s *policy.Sweep) { s.Only = []policy.Match{{Column: "queue", Values: policy.Texts("mail")}} })

	const rest, groups = ", owed public.job_logs, with public.job_logs", "state in (done, failed)"
	for _, c := range []struct {
		name      string
		sweep     policy.Sweep
		index     policy.Index
		arms, own []string
	}{
		{"the age", s, policy.Index{Columns: []string{"at", "id"}},
			[]string{"s: window 7d, part keep true (null)" + rest},
			[]string{"s own window: window 1h, part keep false (null), own keep from 1h" + rest}},
		{"the age, of rows without", s, policy.Index{Columns: []string{"at", "id"}, Where: []string{"keep"}},
			[]string{"s: window 7d, within keep true (null)" + rest},
			[]string{"s own window: window 1h, within keep false (null), own keep from 1h" + rest}},
		{"the expiry", s, policy.Index{Columns: []string{"expires", "id"}, Expiry: 1},
			nil,
			[]string{"s own window: window at_once of the expiry, part keep false (null), own keep from 1h" + rest}},
		{"the expiry as an expression, of rows with one", s, policy.Index{Columns: []string{"", "id"}, Where: []string{"keep"}, Expiry: 1},
			nil,
			[]string{"s own window: window at_once of the expiry, within keep false (null), own keep from 1h" + rest}},
		{"an expression that is none", s, policy.Index{Columns: []string{"", "id"}}, nil, nil},
		{"the expiry behind another column", s, policy.Index{Columns: []string{"id", ""}, Expiry: 2}, nil, nil},
		{"the age, and the expiry behind it", s, policy.Index{Columns: []string{"at", ""}, Expiry: 2},
			[]string{"s: window 7d, part keep true (null)" + rest}, nil},
		{"a written floor", low, policy.Index{Columns: []string{"at"}},
			[]string{"s: window 7d, part keep true (null)" + rest},
			[]string{"s own window: window 1s, part keep false (null), own keep from 1s" + rest}},
		{"a written floor, the expiry", low, policy.Index{Columns: []string{"expires"}, Expiry: 1},
			nil,
			[]string{"s own window: window at_once of the expiry, part keep false (null), own keep from 1s" + rest}},
		{"rows without one are kept", never, policy.Index{Columns: []string{"at"}},
			[]string{"s: window never, part keep true (null)" + rest},
			[]string{"s own window: window 1h, part keep false (null), own keep from 1h" + rest}},
		{"rows without one go at once", atOnce, policy.Index{Columns: []string{"at"}},
			[]string{"s: window at_once, part keep true (null)" + rest},
			[]string{"s own window: window 1h, part keep false (null), own keep from 1h" + rest}},

		// The window of a state is not that of a row with its own: no group of states is kept for longer there.
		{"states, the age", unequal, policy.Index{Columns: []string{"at"}},
			[]string{"s: window 7d, state in (done), state in (failed) longer by 23d, part keep true (null), hold hold"},
			[]string{"s own window: window 1h, " + groups + ", part keep false (null), own keep from 1h, hold hold"}},
		{"states, state-led", unequal, policy.Index{Columns: []string{"state", "at"}},
			[]string{"s done: window 7d, state = done, part keep true (null), hold hold", "s failed: window 30d, state = failed, part keep true (null), hold hold"},
			[]string{"s own window done: window 1h, state = done, part keep false (null), own keep from 1h, hold hold",
				"s own window failed: window 1h, state = failed, part keep false (null), own keep from 1h, hold hold"}},
		{"states, the state and the expiry", unequal, policy.Index{Columns: []string{"state", ""}, Expiry: 2},
			nil,
			[]string{"s own window done: window at_once of the expiry, state = done, part keep false (null), own keep from 1h, hold hold",
				"s own window failed: window at_once of the expiry, state = failed, part keep false (null), own keep from 1h, hold hold"}},
		{"states, of terminal rows", unequal, policy.Index{Columns: []string{"at"}, Where: []string{"state", "keep"}},
			[]string{"s: window 7d, within keep true (null), within state true (done, failed), state in (done), state in (failed) longer by 23d, hold hold"},
			[]string{"s own window: window 1h, within keep false (null), within state true (done, failed), own keep from 1h, hold hold"}},
		{"one window for all states", state, policy.Index{Columns: []string{"at"}},
			[]string{"s: window 7d, " + groups + ", part keep true (null), hold hold"},
			[]string{"s own window: window 1h, " + groups + ", part keep false (null), own keep from 1h, hold hold"}},

		{"only, and the expiry", mail, policy.Index{Columns: []string{"queue", "expires"}, Expiry: 2},
			nil,
			[]string{"s own window: window at_once of the expiry, queue = mail, part keep false (null), own keep from 1h" + rest}},
		{"only, behind the expiry", mail, policy.Index{Columns: []string{"expires", "queue"}, Expiry: 1},
			nil,
			[]string{"s own window: window at_once of the expiry, only queue (mail), part keep false (null), own keep from 1h" + rest}},
	} {
		for _, p := range []struct {
			name string
			arms []policy.Arm
			want []string
		}{{"without", c.sweep.Arms(c.index), c.arms}, {"with", c.sweep.OwnArms(c.index), c.own}} {
			var got []string
			for _, a := range p.arms {
				got = append(got, text(a))
			}
			if !slices.Equal(got, p.want) {
				t.Errorf("%s, rows %s a window of their own\ngot  %q\nwant %q", c.name, p.name, got, p.want)
			}
		}
	}
	s.Own = nil
	if got := s.OwnArms(policy.Index{Columns: []string{"at"}}); got != nil {
		t.Errorf("no row has a window of its own, and %v", got)
	}
}

// TestRowsOfOwnWindowsAreInOneArm: an index that holds one part of the rows has the arms of that part alone.
func TestRowsOfOwnWindowsAreInOneArm(t *testing.T) {
	s := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(day), Own: &policy.RowWindow{Column: "keep"}, Guard: policy.Guard{Hold: "hold"}}
	ix := policy.Index{Columns: []string{"at"}, Where: []string{"keep"}}
	without, with := s.Arms(ix)[0], s.OwnArms(ix)[0]
	null, set := map[string]policy.Value{}, map[string]policy.Value{"keep": policy.Int(60)}
	if !without.In(null) || without.In(set) || with.In(null) || !with.In(set) {
		t.Error("a row is in the arm of its part, and in no other")
	}
}

// TestCountsHeldOfParents: what a hold and a referring row protect is seen, whichever index leads.
func TestCountsHeldOfParents(t *testing.T) {
	state := policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}
	for _, c := range []struct {
		name          string
		guard         policy.Guard
		held, parents bool
	}{
		{"nothing", policy.Guard{Ended: true}, false, false},
		{"the state", policy.Guard{State: &state}, false, false},
		{"the state and a hold", policy.Guard{State: &state, Hold: "hold"}, true, false},
		{"the state and what is owed", policy.Guard{State: &state, Owed: owed()}, true, true},
		{"a hold", policy.Guard{Hold: "hold"}, true, false},
	} {
		s := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(day), Guard: c.guard}
		index := []string{"at"}
		if c.guard.State != nil {
			index = []string{"state", "at"}
		}
		a := s.Arms(policy.Index{Columns: index})[0]
		if a.CountsHeld() != c.held || a.Parents() != c.parents {
			t.Errorf("%s: held is counted %t, parents %t", c.name, a.CountsHeld(), a.Parents())
		}
		s.Children = []policy.Child{{Table: logs, Key: byID}}
		if a := s.Arms(policy.Index{Columns: index})[0]; !a.Parents() || a.CountsHeld() != c.held {
			t.Errorf("%s, with children: held is counted %t, parents %t", c.name, a.CountsHeld(), a.Parents())
		}
	}
}
