package policy_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// expiring is a sweep of rows that expire, without a problem.
func expiring(change ...func(*policy.Sweep)) policy.Sweep {
	s := policy.Sweep{Name: "leases", Table: policy.Name{Schema: "public", Table: "leases"}, Age: "until", Expires: true, Window: policy.AtOnce,
		Guard: policy.Guard{None: "an expired lease is nobody's"}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func grace(d time.Duration) func(*policy.Sweep) {
	return func(s *policy.Sweep) { s.Window = policy.MustWindow(d) }
}

// TestDecideExpiring: a row goes once its expiry and the grace are past; without an expiry it is kept, and is not undated.
func TestDecideExpiring(t *testing.T) {
	now := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time { return ptr(now.Add(d)) }
	none, day1 := expiring(), expiring(grace(day))
	unset := expiring(func(s *policy.Sweep) { s.Window = policy.Never })
	state := expiring(func(s *policy.Sweep) { s.Guard = byState })
	ended := expiring(func(s *policy.Sweep) { s.Guard = policy.Guard{Ended: true} })
	hold := expiring(func(s *policy.Sweep) { s.Guard = policy.Guard{Hold: "hold"} })
	mail := expiring(func(s *policy.Sweep) { s.Only = []policy.Match{{Column: "queue", Values: policy.Texts("mail")}} })
	owes := expiring(func(s *policy.Sweep) { s.Guard = policy.Guard{Owed: owed()} })
	columns := func(name string, v policy.Value) map[string]policy.Value { return map[string]policy.Value{name: v} }
	live, done := columns("state", policy.Text("running")), columns("state", policy.Text("done"))
	for _, c := range []struct {
		name  string
		sweep policy.Sweep
		row   policy.Row
		want  policy.Verdict
		says  string
	}{
		{"past", none, policy.Row{Age: in(-time.Microsecond)}, policy.Due, "before the cutoff 2026-04-11T00:00:00Z (no grace) and not protected"},
		{"now", none, policy.Row{Age: in(0)}, policy.Young, "until is not before the cutoff 2026-04-11T00:00:00Z (no grace)"},
		{"in the future", none, policy.Row{Age: in(time.Microsecond)}, policy.Young, "no grace"},
		{"never", none, policy.Row{}, policy.Young, "until is null: no expiry, kept for ever"},
		{"infinity", none, policy.Row{Age: ptr(time.Unix(math.MaxInt32<<10, 0))}, policy.Young, "no grace"},
		{"the epoch", none, policy.Row{Age: ptr(time.Unix(0, 0))}, policy.Undated, "until is before 1990-01-01"},
		{"inside the grace", day1, policy.Row{Age: in(-day)}, policy.Young, "(grace 1d)"},
		{"past the grace", day1, policy.Row{Age: in(-day - time.Microsecond)}, policy.Due, "(grace 1d)"},
		{"never, with a grace", day1, policy.Row{}, policy.Young, "no expiry"},
		{"nothing said of the grace", unset, policy.Row{Age: in(-365 * day)}, policy.Young, "grace never"},
		{"past and live", state, policy.Row{Age: in(-day), Columns: live}, policy.Held, "running"},
		{"past and terminal", state, policy.Row{Age: in(-day), Columns: done}, policy.Due, ""},
		{"live, and not past", state, policy.Row{Age: in(day), Columns: live}, policy.Young, ""},
		{"never and terminal", state, policy.Row{Columns: done}, policy.Young, "no expiry"},
		{"never and live", state, policy.Row{Columns: live}, policy.Young, "no expiry"},
		{"the epoch, and live", state, policy.Row{Age: ptr(time.Unix(0, 0)), Columns: live}, policy.Young, "the row is live"},
		{"past and ended", ended, policy.Row{Age: in(-day)}, policy.Due, ""},
		{"never, and not ended", ended, policy.Row{}, policy.Young, "no expiry"},
		{"past and on hold", hold, policy.Row{Age: in(-day), Columns: columns("hold", policy.Bool(true))}, policy.Held, "hold is true"},
		{"past and owed", owes, policy.Row{Age: in(-day), Owed: true}, policy.Held, "refers to it"},
		{"never and outside", mail, policy.Row{Columns: columns("queue", policy.Text("fax"))}, policy.Outside, "queue is fax"},
	} {
		got := c.sweep.Decide(now, c.row)
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.says) || got.Reason == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Verdict, got.Reason, c.want, c.says)
		}
	}
}

// TestProblemsOfExpiring: an expiry needs no guard that ends, no window and no floor, and what is about windows is refused.
func TestProblemsOfExpiring(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*policy.Sweep)
		want   []string
	}{
		{"no grace, unguarded", func(*policy.Sweep) {}, nil},
		{"a second of grace, below every floor", grace(time.Second), nil},
		{"by the state", func(s *policy.Sweep) { s.Guard = byState }, nil},
		{"with its defaults", func(s *policy.Sweep) { *s = s.WithDefaults() }, nil},
		{"no column", func(s *policy.Sweep) { s.Age = "" }, []string{"expires: no column is named"}},
		{"no guard", func(s *policy.Sweep) { s.Guard = policy.Guard{} }, []string{
			`guard: nothing says which rows are still needed; give ended, state, owner, owed or hold, or none: "why nothing is owed"`}},
		{"a floor", func(s *policy.Sweep) { s.Floor = time.Second }, []string{
			"floor: an expiry has no floor: what wrote it has decided how long the row is kept; leave it out"}},
		{"own windows", func(s *policy.Sweep) { s.Own = &policy.RowWindow{Column: "keep"} }, []string{
			"row_window: a row that says when it expires has no window beside it; leave it out, or write age and window in place of expires"}},
		{"windows by state", func(s *policy.Sweep) {
			s.Guard = policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}}
			s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(day)}}
		}, []string{"window: windows by state do not stand beside an expiry; write a sweep for each state, with its own grace"}},
	} {
		var got []string
		for _, p := range expiring(c.change).Problems() {
			got = append(got, p.String())
			if want := p.Key == "floor" || p.Key == "row_window"; p.AtKey != want {
				t.Errorf("%s: %s: at the key: %t", c.name, p, p.AtKey)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestArmsOfExpiring: the arm is one of the column, and its cutoff is now less the grace.
func TestArmsOfExpiring(t *testing.T) {
	state := policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}}
	for _, c := range []struct {
		sweep policy.Sweep
		index policy.Index
		want  string
	}{
		{expiring(), policy.Index{Columns: []string{"until", "id"}}, "leases: window at_once"},
		{expiring(), policy.Index{Columns: []string{"until", "id"}, Where: []string{"until"}}, "leases: window at_once"},
		{expiring(grace(day)), policy.Index{Columns: []string{"until"}}, "leases: window 1d"},
		{expiring(grace(day), func(s *policy.Sweep) { s.Guard = state }), policy.Index{Columns: []string{"state", "until"}}, "leases done: window 1d, state = done"},
	} {
		arms := c.sweep.Arms(c.index)
		if len(arms) != 1 || text(arms[0]) != c.want || arms[0].Expiry {
			t.Errorf("%v\nwant %s", arms, c.want)
		}
		if own := c.sweep.OwnArms(c.index); own != nil {
			t.Errorf("and %v", own)
		}
	}
}
