package policy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

func TestOwnWindow(t *testing.T) {
	const longest = int64(policy.MaxWindow / time.Second)
	hours := policy.Sweep{Own: &policy.RowWindow{Column: "keep"}} // the floor is the default, an hour
	seconds := hours
	seconds.Floor = time.Second
	zero := hours
	zero.Own = &policy.RowWindow{Column: "keep", ZeroNever: true}
	for _, c := range []struct {
		name  string
		sweep policy.Sweep
		own   int64
		want  policy.Window
		ok    bool
	}{
		{"a day", hours, 86400, policy.MustWindow(day), true},
		{"the floor", hours, 3600, policy.MustWindow(time.Hour), true},
		{"below the floor", hours, 3599, policy.MustWindow(time.Hour), true},
		{"a second below the floor", hours, 1, policy.MustWindow(time.Hour), true},
		{"a second, and a floor of one", seconds, 1, policy.MustWindow(time.Second), true},
		{"the longest", hours, longest, policy.MustWindow(policy.MaxWindow), true},
		{"longer than the longest", hours, longest + 1, policy.Never, false},
		{"longer than time", hours, math.MaxInt64, policy.Never, false},
		{"zero", hours, 0, policy.Never, false},
		{"negative", hours, -1, policy.Never, false},
		{"longest before time", hours, math.MinInt64, policy.Never, false},
		{"zero for ever", zero, 0, policy.Never, true},
		{"negative, and zero for ever", zero, -1, policy.Never, false},
		{"a day, and zero for ever", zero, 86400, policy.MustWindow(day), true},
	} {
		if got, ok := c.sweep.OwnWindow(c.own); got != c.want || ok != c.ok {
			t.Errorf("%s: %s, usable %t; want %s, %t", c.name, got, ok, c.want, c.ok)
		}
	}
}

// TestDecideOwn: a row's own window takes the place of the sweep's, and no other test.
func TestDecideOwn(t *testing.T) {
	now := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	base := policy.Sweep{Name: "s", Age: "at", Window: policy.MustWindow(7 * day), Floor: 2 * time.Hour, Own: &policy.RowWindow{Column: "keep"}, Guard: policy.Guard{Hold: "hold"}}
	with := func(change func(*policy.Sweep)) policy.Sweep {
		s := base
		change(&s)
		return s
	}
	zero := with(func(s *policy.Sweep) { s.Own = &policy.RowWindow{Column: "keep", ZeroNever: true} })
	never := with(func(s *policy.Sweep) { s.Window = policy.Never })
	states := with(func(s *policy.Sweep) {
		s.Window, s.Guard = policy.Never, byState
		s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(7 * day)}, {State: policy.Text("failed"), Window: policy.MustWindow(30 * day)}, {State: policy.Text("kept"), Window: policy.Never}}
	})
	ended := with(func(s *policy.Sweep) { s.Guard.Ended = true })
	only := with(func(s *policy.Sweep) { s.Only = []policy.Match{{Column: "queue", Values: policy.Texts("mail")}} })

	none := (*int64)(nil)
	seconds := func(d time.Duration) *int64 { return ptr(int64(d / time.Second)) }
	columns := func(pairs ...string) map[string]policy.Value {
		m := map[string]policy.Value{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = policy.Text(pairs[i+1])
		}
		return m
	}
	held := map[string]policy.Value{"hold": policy.Bool(true)}
	for _, c := range []struct {
		name    string
		sweep   policy.Sweep
		old     time.Duration // how long before now the age is; 0: null
		own     *int64
		columns map[string]policy.Value
		want    policy.Verdict
		says    string
	}{
		{"none, past the sweep's", base, 8 * day, none, nil, policy.Due, "window 7d"},
		{"none, inside the sweep's", base, 6 * day, none, nil, policy.Young, "window 7d"},
		{"shorter, past it", base, 2 * day, seconds(day), nil, policy.Due, "window 1d"},
		{"shorter, exactly at it", base, day, seconds(day), nil, policy.Young, "window 1d"},
		{"shorter, a microsecond past it", base, day + time.Microsecond, seconds(day), nil, policy.Due, "window 1d"},
		{"longer, inside it", base, 8 * day, seconds(30 * day), nil, policy.Young, "window 30d"},
		{"longer, past it", base, 31 * day, seconds(30 * day), nil, policy.Due, "window 30d"},
		{"below the floor, inside the floor", base, time.Hour, seconds(time.Second), nil, policy.Young, "window 2h"},
		{"below the floor, past the floor", base, 3 * time.Hour, seconds(time.Second), nil, policy.Due, "window 2h"},
		{"where the sweep keeps for ever", never, 2 * day, seconds(day), nil, policy.Due, "window 1d"},
		{"none, where the sweep keeps for ever", never, 365 * day, none, nil, policy.Young, "window never"},
		{"the longest", base, 365 * day, seconds(policy.MaxWindow), nil, policy.Young, "window 36500d"},

		{"zero", base, 365 * day, ptr(int64(0)), nil, policy.Unusable, "keep is 0 seconds, which is no window"},
		{"negative", base, 365 * day, ptr(int64(-5)), nil, policy.Unusable, "keep is -5 seconds"},
		{"over the longest", base, 365 * day, ptr(int64(policy.MaxWindow/time.Second) + 1), nil, policy.Unusable, "no window"},
		{"zero, inside the floor", base, time.Hour, ptr(int64(0)), nil, policy.Young, "floor 2h"},
		{"zero, exactly at the floor", base, 2 * time.Hour, ptr(int64(0)), nil, policy.Young, "floor 2h"},
		{"zero, past the floor", base, 2*time.Hour + time.Microsecond, ptr(int64(0)), nil, policy.Unusable, ""},
		{"zero for ever", zero, 365 * day, ptr(int64(0)), nil, policy.Young, "window never"},
		{"negative, and zero for ever", zero, 365 * day, ptr(int64(-1)), nil, policy.Unusable, ""},

		{"past it and held", base, 2 * day, seconds(day), held, policy.Held, "hold is true"},
		{"unusable and held", base, 2 * day, ptr(int64(0)), held, policy.Unusable, ""},
		{"no age", base, 0, seconds(day), nil, policy.Undated, ""},
		{"no age, and live", ended, 0, seconds(day), nil, policy.Young, "the row is live"},
		{"outside", only, 2 * day, seconds(day), columns("queue", "fax"), policy.Outside, ""},
		{"unusable and outside", only, 2 * day, ptr(int64(0)), columns("queue", "fax"), policy.Outside, ""},

		{"instead of the state's window, shorter", states, 2 * day, seconds(day), columns("state", "failed"), policy.Due, "window 1d"},
		{"instead of the state's window, longer", states, 8 * day, seconds(30 * day), columns("state", "done"), policy.Young, "window 30d"},
		{"instead of a state's never", states, 2 * day, seconds(day), columns("state", "kept"), policy.Due, "window 1d"},
		{"of a state that lives", states, 2 * day, seconds(day), columns("state", "running"), policy.Held, "running"},
		{"none, by the state's window", states, 8 * day, none, columns("state", "failed"), policy.Young, "window 30d"},
	} {
		row := policy.Row{Own: c.own, Columns: c.columns}
		if c.old != 0 {
			row.Age = ptr(now.Add(-c.old))
		}
		got := c.sweep.Decide(now, row)
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.says) || got.Reason == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Verdict, got.Reason, c.want, c.says)
		}
	}
	base.Own = nil
	if got := base.Decide(now, policy.Row{Age: ptr(now.Add(-2 * day)), Own: ptr(int64(60))}); got.Verdict != policy.Young {
		t.Errorf("a sweep without own windows read one: %s", got)
	}
}

// TestDecideHeld: what is owed on a row, and a hold, protect it past its window, and nothing else lets it go.
func TestDecideHeld(t *testing.T) {
	now := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	old, future := now.Add(-time.Microsecond), now.Add(time.Microsecond)
	base := policy.Sweep{Name: "s", Age: "at", Window: policy.AtOnce, Guard: policy.Guard{Owed: owed(), Hold: "hold"}}
	with := func(change func(*policy.Sweep)) policy.Sweep {
		s := base
		change(&s)
		return s
	}
	all := with(func(s *policy.Sweep) { s.Guard.State, s.Guard.Owner = byState.State, byOwner.Owner })
	unowed := with(func(s *policy.Sweep) { s.Guard.Owed, s.Guard.State = nil, byState.State })
	week := with(func(s *policy.Sweep) { s.Window = policy.MustWindow(7 * day) })

	columns := func(hold policy.Value) map[string]policy.Value {
		return map[string]policy.Value{"hold": hold, "state": policy.Text("done")}
	}
	gone := policy.OwnerState{Exists: true, State: policy.Text("completed")}
	for _, c := range []struct {
		name  string
		sweep policy.Sweep
		row   policy.Row
		want  policy.Verdict
		says  string
	}{
		{"at once", base, policy.Row{Age: &old}, policy.Due, "window at_once"},
		{"at once, now", base, policy.Row{Age: &now}, policy.Young, "window at_once"},
		{"at once, in the future", base, policy.Row{Age: &future}, policy.Young, "window at_once"},
		{"at once, no age", base, policy.Row{}, policy.Undated, ""},
		{"owed", base, policy.Row{Age: &old, Owed: true}, policy.Held, "a row of public.job_logs refers to it that is not terminal"},
		{"owed, and young", week, policy.Row{Age: &old, Owed: true}, policy.Young, "window 7d"},
		{"owed, where nothing is asked", unowed, policy.Row{Age: &old, Owed: true, Columns: columns(policy.Null)}, policy.Due, ""},
		{"on hold", base, policy.Row{Age: &old, Columns: columns(policy.Bool(true))}, policy.Held, "hold is true"},
		{"on hold, and young", week, policy.Row{Age: &old, Columns: columns(policy.Bool(true))}, policy.Young, ""},
		{"not on hold", base, policy.Row{Age: &old, Columns: columns(policy.Bool(false))}, policy.Due, ""},
		{"nobody said whether on hold", base, policy.Row{Age: &old, Columns: columns(policy.Null)}, policy.Due, ""},
		{"on hold and owed", base, policy.Row{Age: &old, Owed: true, Columns: columns(policy.Bool(true))}, policy.Held, "hold is true"},
		{"every part lets go", all, policy.Row{Age: &old, Columns: columns(policy.Null), Owner: gone}, policy.Due, ""},
		{"the state holds first", all, policy.Row{Age: &old, Columns: map[string]policy.Value{"hold": policy.Bool(true)}, Owed: true}, policy.Held, "state is null"},
		{"owed, and no owner", all, policy.Row{Age: &old, Columns: columns(policy.Null), Owed: true}, policy.Held, "refers to it"},
		{"no owner, and nothing owed", all, policy.Row{Age: &old, Columns: columns(policy.Null)}, policy.Orphan, ""},
	} {
		got := c.sweep.Decide(now, c.row)
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.says) || got.Reason == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Verdict, got.Reason, c.want, c.says)
		}
	}
}

// TestOwedLets: only a terminal state of a referring row lets go, and where no state is named, none does.
func TestOwedLets(t *testing.T) {
	o := owed()
	for v, want := range map[policy.Value]bool{policy.Text("sent"): true, policy.Text("dead"): true, policy.Text("pending"): false, policy.Text("SENT"): false, policy.Text(""): false, policy.Null: false} {
		if o.Lets(v) != want {
			t.Errorf("%q lets go: %t", v, !want)
		}
	}
	o.Terminal = append(o.Terminal, policy.Null)
	if o.Lets(policy.Null) {
		t.Error("null lets go")
	}
	o.Column = ""
	if o.Lets(policy.Text("sent")) {
		t.Error("a row without a state lets go")
	}
}

func TestVerdicts(t *testing.T) {
	for v, want := range map[policy.Verdict]string{policy.Young: "young", policy.Outside: "outside", policy.Undated: "undated", policy.Unusable: "unusable", policy.Held: "held", policy.Orphan: "orphan", policy.Due: "due"} {
		if v.String() != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
}
