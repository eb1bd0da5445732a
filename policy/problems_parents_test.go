package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

var (
	logs = policy.Name{Schema: "public", Table: "job_logs"}
	tags = policy.Name{Schema: "public", Table: "job_tags"}
	byID = []policy.ChildKey{{Parent: "id", Child: "job_id"}}
)

func owed() *policy.OwedGuard {
	return &policy.OwedGuard{Table: logs, Key: byID, Column: "status", Terminal: policy.Texts("sent", "dead")}
}

func TestNoProblemsOfParents(t *testing.T) {
	atOnce := func(change func(*policy.Guard)) func(*policy.Sweep) {
		return func(s *policy.Sweep) {
			s.Window, s.Guard = policy.AtOnce, policy.Guard{}
			change(&s.Guard)
		}
	}
	for name, change := range map[string]func(*policy.Sweep){
		"at once by the state":       atOnce(func(g *policy.Guard) { g.State = right().Guard.State }),
		"at once by the owner":       atOnce(func(g *policy.Guard) { g.Owner = byOwner.Owner }),
		"at once by what is owed":    atOnce(func(g *policy.Guard) { g.Owed = owed() }),
		"at once, and held":          atOnce(func(g *policy.Guard) { g.Owed, g.Hold = owed(), "hold" }),
		"at once beside own windows": func(s *policy.Sweep) { s.Window, s.Own = policy.AtOnce, &policy.RowWindow{Column: "keep"} },
		"every referring row owes":   func(s *policy.Sweep) { s.Guard = policy.Guard{Owed: &policy.OwedGuard{Table: logs, Key: byID}} },
		"a hold alone":               func(s *policy.Sweep) { s.Guard = policy.Guard{Hold: "hold"} },
		"own windows alone": func(s *policy.Sweep) {
			s.Window, s.Own = policy.Never, &policy.RowWindow{Column: "keep", Unit: time.Second, ZeroNever: true}
		},
		"own windows in minutes": func(s *policy.Sweep) { s.Own = &policy.RowWindow{Column: "keep", Unit: time.Minute} },
		"own windows in hours":   func(s *policy.Sweep) { s.Own = &policy.RowWindow{Column: "keep", Unit: time.Hour} },
		"own windows in days":    func(s *policy.Sweep) { s.Own = &policy.RowWindow{Column: "keep", Unit: day} },
		"children of children": func(s *policy.Sweep) {
			s.Children = []policy.Child{{Table: logs, Key: byID, Children: []policy.Child{{Table: tags, Key: byID}}}, {Table: tags, Key: byID}}
		},
		"one table by two keys": func(s *policy.Sweep) {
			s.Children = []policy.Child{{Table: logs, Key: byID}, {Table: logs, Key: []policy.ChildKey{{Parent: "id", Child: "parent_id"}}}}
		},
		"children and cascades": func(s *policy.Sweep) {
			s.Children, s.Cascades = []policy.Child{{Table: logs, Key: byID}}, []policy.Name{tags, {Schema: "other", Table: "job_logs"}}
		},
	} {
		s := right()
		change(&s)
		if ps := s.Problems(); len(ps) > 0 {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

func TestProblemsOfParents(t *testing.T) {
	const (
		unguarded = "window: at_once stands only beside guard.state, guard.owner or guard.owed; give one of them, or write a duration"
		perState  = "at_once is the window of a whole sweep, not of one state; write a duration or never, or give the state a sweep of its own"
	)
	guarded := func(g policy.Guard) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Guard = g } }
	by := func(change func(*policy.OwedGuard)) func(*policy.Sweep) {
		o := owed()
		change(o)
		return guarded(policy.Guard{Owed: o})
	}
	own := func(o policy.RowWindow) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Own = &o } }
	children := func(cs ...policy.Child) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Children = cs } }
	for _, c := range []struct {
		name   string
		change func(*policy.Sweep)
		want   []string
	}{
		{"at once beside none", func(s *policy.Sweep) { s.Window, s.Guard = policy.AtOnce, policy.Guard{None: "nothing is owed on it"} }, []string{unguarded}},
		{"at once beside ended", func(s *policy.Sweep) { s.Window, s.Guard = policy.AtOnce, policy.Guard{Ended: true} }, []string{unguarded}},
		{"at once beside a hold", func(s *policy.Sweep) { s.Window, s.Guard = policy.AtOnce, policy.Guard{Hold: "hold"} }, []string{unguarded}},
		{"at once below a floor", func(s *policy.Sweep) { s.Window, s.Floor = policy.AtOnce, time.Second }, []string{"window: at_once is below the floor of 1s; leave the floor out, or write a duration"}},
		{"at once of a state", func(s *policy.Sweep) {
			s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.AtOnce}, {State: policy.Text("failed"), Window: policy.MustWindow(day)}}
		}, []string{"window.done: " + perState}},
		{"at once of all states", func(s *policy.Sweep) {
			s.Floor = time.Hour
			s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.AtOnce}, {State: policy.Text("failed"), Window: policy.AtOnce}}
		}, []string{"window.done: " + perState, "window.failed: " + perState}},

		{"own window of no column", own(policy.RowWindow{Unit: time.Second}), []string{"row_window.column: no column is named"}},
		{"own window by the age", own(policy.RowWindow{Column: "at"}), []string{"row_window.column: at is the age; name the column that says how long the row is kept"}},
		{"own window in weeks", own(policy.RowWindow{Column: "keep", Unit: 7 * day}), []string{"row_window.unit: 168h0m0s is no unit of a window; write s, min, h or d, or none for an interval"}},
		{"own window in milliseconds", own(policy.RowWindow{Column: "keep", Unit: time.Millisecond}), []string{"row_window.unit: 1ms is no unit of a window; write s, min, h or d, or none for an interval"}},

		{"none beside owed", guarded(policy.Guard{None: "nothing is owed on it", Owed: owed()}), []string{"guard.none: none stands alone"}},
		{"none beside a hold", guarded(policy.Guard{None: "nothing is owed on it", Hold: "hold"}), []string{"guard.none: none stands alone"}},
		{"owed of nothing", guarded(policy.Guard{Owed: &policy.OwedGuard{}}), []string{
			"guard.owed.key: no key leads to the table; map the columns that it refers to, to its own", "guard.owed.table: no table is named"}},
		{"owed without a schema", by(func(o *policy.OwedGuard) { o.Table.Schema = "" }), []string{`guard.owed.table: "job_logs" has no schema; write schema.table`}},
		{"owed by no column", by(func(o *policy.OwedGuard) { o.Key = []policy.ChildKey{{Parent: "id"}} }), []string{"guard.owed.key: a column of the key has no name"}},
		{"owed by a column twice", by(func(o *policy.OwedGuard) {
			o.Key = []policy.ChildKey{{Parent: "id", Child: "job_id"}, {Parent: "tenant", Child: "job_id"}}
		}), []string{"guard.owed.key: a column stands twice in the key"}},
		{"owed in a column twice", by(func(o *policy.OwedGuard) {
			o.Key = []policy.ChildKey{{Parent: "id", Child: "job_id"}, {Parent: "id", Child: "other"}}
		}), []string{"guard.owed.key: a column stands twice in the key"}},
		{"owed, a column without terminal", by(func(o *policy.OwedGuard) { o.Terminal = nil }), []string{
			"guard.owed.terminal: no terminal state is given; list the states from which nothing is owed any more"}},
		{"owed, terminal without a column", by(func(o *policy.OwedGuard) { o.Column = "" }), []string{"guard.owed.state: no state column is named"}},
		{"owed, terminal twice", by(func(o *policy.OwedGuard) { o.Terminal = []policy.Value{policy.Int(1), policy.Text("1")} }), []string{
			`guard.owed.terminal: state "1" is in terminal already; keep one of them`}},
		{"owed, terminal null", by(func(o *policy.OwedGuard) { o.Terminal = []policy.Value{policy.Null} }), []string{
			"guard.owed.terminal: null is no state; leave it out: a null state always protects"}},

		{"a child of nothing", children(policy.Child{}), []string{
			"children.0.key: no key leads to the table; map the columns that it refers to, to its own", "children.0.table: no table is named"}},
		{"a child without a schema", children(policy.Child{Table: policy.Name{Table: "job_logs"}, Key: byID}), []string{`children.0.table: "job_logs" has no schema; write schema.table`}},
		{"a child by no column", children(policy.Child{Table: logs, Key: []policy.ChildKey{{Child: "job_id"}}}), []string{"children.0.key: a column of the key has no name"}},
		{"a child by a column twice", children(policy.Child{Table: logs, Key: []policy.ChildKey{{Parent: "a", Child: "x"}, {Parent: "b", Child: "x"}}}), []string{"children.0.key: a column stands twice in the key"}},
		{"a child twice", children(policy.Child{Table: logs, Key: byID}, policy.Child{Table: tags, Key: byID}, policy.Child{Table: logs, Key: byID}), []string{
			"children.2: public.job_logs stands twice with this key; keep one of them"}},
		{"a child of a child", children(policy.Child{Table: tags, Key: byID}, policy.Child{Table: logs, Key: byID, Children: []policy.Child{{Table: tags, Key: byID}, {Key: byID}}}), []string{
			"children.1.children.1.table: no table is named"}},
		{"its own child", children(policy.Child{Table: policy.Name{Schema: "public", Table: "jobs"}, Key: byID}), []string{
			"children.0.table: public.jobs is the sweep's own table; its rows go by their own age and guard alone"}},
		{"its own child's child", children(policy.Child{Table: logs, Key: byID, Children: []policy.Child{{Table: policy.Name{Schema: "public", Table: "jobs"}, Key: byID}}}), []string{
			"children.0.children.0.table: public.jobs is the sweep's own table; its rows go by their own age and guard alone"}},

		{"cascades", func(s *policy.Sweep) {
			s.Children = []policy.Child{{Table: logs, Key: byID, Children: []policy.Child{{Table: tags, Key: byID}}}}
			s.Cascades = []policy.Name{{}, {Table: "x"}, {Schema: "a", Table: "b"}, {Schema: "a", Table: "b"}, logs, tags}
		}, []string{"cascades.0: no table is named", `cascades.1: "x" has no schema; write schema.table`, "cascades.3: a.b stands twice; keep one of them",
			"cascades.4: public.job_logs is in children already; leave it out: its rows are removed and counted",
			"cascades.5: public.job_tags is in children already; leave it out: its rows are removed and counted"}},
	} {
		s := right()
		c.change(&s)
		var got []string
		for _, p := range s.Problems() {
			got = append(got, p.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}
