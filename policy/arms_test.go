package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/policy"
)

// text is an arm in one line: everything of it that a statement would be made from.
func text(a policy.Arm) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: window %s", a.Name, a.Window)
	if a.Expiry {
		b.WriteString(" of the expiry")
	}
	for _, e := range a.Equal {
		fmt.Fprintf(&b, ", %s = %s", e.Column, e.Value)
	}
	for _, m := range a.Within {
		fmt.Fprintf(&b, ", within %s %t (%s)", m.Column, !m.Not, policy.JoinValues(m.Values))
	}
	for _, m := range a.Only {
		not := ""
		if m.Not {
			not = "not "
		}
		fmt.Fprintf(&b, ", only %s %s(%s)", m.Column, not, policy.JoinValues(m.Values))
	}
	if a.State != nil {
		for _, g := range a.State.Groups {
			switch {
			case g.Never:
				fmt.Fprintf(&b, ", %s in (%s) never", a.State.Column, policy.JoinValues(g.States))
			case g.Longer != 0:
				fmt.Fprintf(&b, ", %s in (%s) longer by %s", a.State.Column, policy.JoinValues(g.States), policy.FormatDuration(g.Longer))
			default:
				fmt.Fprintf(&b, ", %s in (%s)", a.State.Column, policy.JoinValues(g.States))
			}
		}
	}
	if a.Owner != nil {
		fmt.Fprintf(&b, ", owner %s", a.Owner.Table)
	}
	for _, m := range a.Part {
		fmt.Fprintf(&b, ", part %s %t (%s)", m.Column, !m.Not, policy.JoinValues(m.Values))
	}
	if a.Own != nil {
		fmt.Fprintf(&b, ", own %s from %s", a.Own.Column, policy.FormatDuration(a.Own.Floor))
	}
	if a.Hold != "" {
		fmt.Fprintf(&b, ", hold %s", a.Hold)
	}
	if a.Owed != nil {
		fmt.Fprintf(&b, ", owed %s", a.Owed.Table)
	}
	for _, c := range a.Children {
		fmt.Fprintf(&b, ", with %s", c.Table)
	}
	return b.String()
}

func TestArms(t *testing.T) {
	week := policy.MustWindow(7 * day)
	plain := policy.Sweep{Name: "s", Age: "at", Window: week}
	state := plain
	state.Guard = policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed", "dead")}}
	unequal := state
	unequal.Window = policy.Never
	unequal.ByState = []policy.StateWindow{
		{State: policy.Text("failed"), Window: policy.MustWindow(30 * day)}, {State: policy.Text("done"), Window: week}, {State: policy.Text("dead"), Window: policy.Never}}
	equal := state
	equal.Window = policy.Never
	equal.ByState = []policy.StateWindow{{State: policy.Text("dead"), Window: week}, {State: policy.Text("done"), Window: week}, {State: policy.Text("failed"), Window: week}}
	owner := plain
	owner.Guard = byOwner
	only := plain
	only.Only = []policy.Match{
		{Column: "queue", Values: policy.Texts("mail")}, {Column: "error", Values: []policy.Value{policy.Null}}, {Column: "kind", Values: policy.Texts("a", "b")},
		{Column: "flag", Values: []policy.Value{policy.Bool(true)}, Not: true}, {Column: "tenant", Values: []policy.Value{policy.Int(7)}}}
	onlyState := unequal
	onlyState.Only = only.Only[:1]

	const rest = ", only error (null), only kind (a, b), only flag not (true)"
	for _, c := range []struct {
		name  string
		sweep policy.Sweep
		index []string
		want  []string
	}{
		{"age-led", plain, []string{"at"}, []string{"s: window 7d"}},
		{"age-led, more columns behind", plain, []string{"at", "id"}, []string{"s: window 7d"}},
		{"no age", plain, []string{"id"}, nil},
		{"a column before the age", plain, []string{"tenant", "at"}, nil},
		{"an expression before the age", plain, []string{"", "at"}, nil},
		{"no columns", plain, nil, nil},
		{"owner, age-led", owner, []string{"at", "run"}, []string{"s: window 7d, owner public.runs"}},
		{"owner, its key before the age", owner, []string{"run", "at"}, nil},

		{"own state, age-led", state, []string{"at"}, []string{"s: window 7d, state in (done, failed, dead)"}},
		{"own state, state-led", state, []string{"state", "at"}, []string{"s done: window 7d, state = done", "s failed: window 7d, state = failed", "s dead: window 7d, state = dead"}},
		{"own state, another column first", state, []string{"status", "at"}, nil},
		{"own state, age-led with the state behind", state, []string{"at", "state"}, []string{"s: window 7d, state in (done, failed, dead)"}},
		{"unequal windows, age-led", unequal, []string{"at"}, []string{"s: window 7d, state in (done), state in (failed) longer by 23d, state in (dead) never"}},
		{"unequal windows, state-led", unequal, []string{"state", "at"}, []string{"s done: window 7d, state = done", "s failed: window 30d, state = failed", "s dead: window never, state = dead"}},
		{"equal windows by state, age-led", equal, []string{"at"}, []string{"s: window 7d, state in (done, failed, dead)"}},

		{"only, all equalities lead", only, []string{"queue", "tenant", "at"}, []string{"s: window 7d, queue = mail, tenant = 7" + rest}},
		{"only, in another order", only, []string{"tenant", "queue", "at"}, []string{"s: window 7d, queue = mail, tenant = 7" + rest}},
		// What the index does not settle is tested inside the range: searched for, it would be read for without a bound.
		{"only, one leads", only, []string{"tenant", "at"}, []string{"s: window 7d, tenant = 7, only queue (mail)" + rest}},
		{"only, none leads", only, []string{"at"}, []string{"s: window 7d, only queue (mail)" + rest + ", only tenant (7)"}},
		{"only null does not lead", only, []string{"error", "at"}, nil},
		{"only of two values does not lead", only, []string{"kind", "at"}, nil},
		{"only not does not lead", only, []string{"flag", "at"}, nil},
		{"only and state lead", onlyState, []string{"queue", "state", "at"}, []string{
			"s done: window 7d, queue = mail, state = done", "s failed: window 30d, queue = mail, state = failed", "s dead: window never, queue = mail, state = dead"}},
		{"only leads, states are tested", onlyState, []string{"queue", "at"}, []string{"s: window 7d, queue = mail, state in (done), state in (failed) longer by 23d, state in (dead) never"}},
	} {
		var got []string
		for _, a := range c.sweep.Arms(policy.Index{Columns: c.index}) {
			got = append(got, text(a))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestArmsOfAPartialIndex: what its predicate is about becomes part of the range, so that the planner can prove it; the
// guarded states of such an index are not seen, and are not counted.
func TestArmsOfAPartialIndex(t *testing.T) {
	week := policy.MustWindow(7 * day)
	s := policy.Sweep{Name: "s", Age: "at", Window: week, Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed")}},
		Only: []policy.Match{{Column: "error", Values: []policy.Value{policy.Null}, Not: true}, {Column: "kind", Values: policy.Texts("a"), Not: true}, {Column: "queue", Values: policy.Texts("mail")}}}
	unequal := s
	unequal.Window = policy.Never
	unequal.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: week}, {State: policy.Text("failed"), Window: policy.MustWindow(30 * day)}}
	const outside = ", only kind not (a), only queue (mail)"
	for _, c := range []struct {
		sweep policy.Sweep
		index policy.Index
		want  string
		held  bool
	}{
		{s, policy.Index{Columns: []string{"at"}, Where: []string{"at"}}, "s: window 7d, only error not (null), only kind not (a), only queue (mail), state in (done, failed)", true},
		{s, policy.Index{Columns: []string{"at"}, Where: []string{"state"}}, "s: window 7d, within state true (done, failed), only error not (null)" + outside, false},
		{s, policy.Index{Columns: []string{"at"}, Where: []string{"error", "kind"}}, "s: window 7d, within error false (null)" + outside + ", state in (done, failed)", true},
		{s, policy.Index{Columns: []string{"at"}, Where: []string{"queue"}}, "s: window 7d, within queue true (mail), only error not (null), only kind not (a), state in (done, failed)", true},
		{unequal, policy.Index{Columns: []string{"at"}, Where: []string{"state", "error"}}, "s: window 7d, within error false (null), within state true (done, failed)" + outside + ", state in (done), state in (failed) longer by 23d", false},
	} {
		arms := c.sweep.Arms(c.index)
		if len(arms) != 1 || text(arms[0]) != c.want || arms[0].CountsHeld() != c.held {
			t.Errorf("%v\ngot  %q, counts held %t\nwant %q", c.index, text(arms[0]), arms[0].CountsHeld(), c.want)
		}
	}
	in := s.Arms(policy.Index{Columns: []string{"at"}, Where: []string{"state"}})[0]
	if !in.In(map[string]policy.Value{"state": policy.Text("done")}) || in.In(map[string]policy.Value{"state": policy.Text("running")}) || in.In(nil) {
		t.Error("a row is in the arm if the index holds it")
	}
}

// TestArmsShareNothing: the equalities of one arm are not those of another.
func TestArmsShareNothing(t *testing.T) {
	s := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(day), Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed")}}}
	for _, column := range []string{"a", "b", "c"} { // three leave room behind them in the slice
		s.Only = append(s.Only, policy.Match{Column: column, Values: policy.Texts("x")})
	}
	arms := s.Arms(policy.Index{Columns: []string{"a", "b", "c", "state", "at"}})
	for i, want := range []string{"done", "failed"} {
		if got := arms[i].Equal[3].Value; got != policy.Text(want) {
			t.Errorf("arm %d goes by %s", i, got)
		}
	}
}

// TestCountsHeld: only an arm that examines what the guard protects can count it.
func TestCountsHeld(t *testing.T) {
	s := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(day), Guard: byState}
	o := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(day), Guard: byOwner}
	n := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(day), Guard: policy.Guard{Ended: true}}
	for _, c := range []struct {
		sweep policy.Sweep
		index []string
		want  bool
	}{{s, []string{"at"}, true}, {s, []string{"state", "at"}, false}, {o, []string{"at"}, true}, {n, []string{"at"}, false}} {
		for _, a := range c.sweep.Arms(policy.Index{Columns: c.index}) {
			if a.CountsHeld() != c.want {
				t.Errorf("%s through %v counts held: %t", a, c.index, a.CountsHeld())
			}
		}
	}
}

func TestArmString(t *testing.T) {
	s := policy.Sweep{Name: "river", Age: "at", Window: policy.MustWindow(day), Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}}}
	if got, want := s.Arms(policy.Index{Columns: []string{"state", "at"}})[0].String(), "river done (window 1d, state = done)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWantedIndex(t *testing.T) {
	s := policy.Sweep{Age: "at", Window: policy.MustWindow(day), Only: []policy.Match{{Column: "queue", Values: policy.Texts("mail")}, {Column: "n", Values: []policy.Value{policy.Null}}}}
	if got := s.WantedIndex(); !slices.Equal(got, []string{"queue", "at"}) {
		t.Errorf("%v", got)
	}
	s.Guard = byState
	if got := s.WantedIndex(); !slices.Equal(got, []string{"queue", "at"}) {
		t.Errorf("one window for all states: %v", got)
	}
	s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(day)}, {State: policy.Text("failed"), Window: policy.MustWindow(2 * day)}}
	if got := s.WantedIndex(); !slices.Equal(got, []string{"queue", "state", "at"}) || !s.UnequalWindows() {
		t.Errorf("windows of their own: %v", got)
	}
	if got := s.Arms(policy.Index{Columns: s.WantedIndex()}); len(got) == 0 {
		t.Error("the wanted index does not serve")
	}
}

func TestShortestAndWindowOf(t *testing.T) {
	s := policy.Sweep{Window: policy.MustWindow(day)}
	if s.Shortest() != policy.MustWindow(day) || s.WindowOf(policy.Text("x")) != policy.MustWindow(day) {
		t.Error("one window for all")
	}
	s.ByState = []policy.StateWindow{{State: policy.Text("a"), Window: policy.Never}, {State: policy.Text("b"), Window: policy.MustWindow(3 * day)}, {State: policy.Text("c"), Window: policy.MustWindow(2 * day)}}
	if got := s.Shortest(); got != policy.MustWindow(2*day) {
		t.Errorf("the shortest is %s", got)
	}
	for state, want := range map[string]policy.Window{"a": policy.Never, "b": policy.MustWindow(3 * day), "c": policy.MustWindow(2 * day), "live": policy.MustWindow(2 * day)} {
		if got := s.WindowOf(policy.Text(state)); got != want {
			t.Errorf("%s: %s, want %s", state, got, want)
		}
	}
	s.ByState = s.ByState[:1]
	if !s.Shortest().IsNever() {
		t.Error("nothing but never is not never")
	}
}
