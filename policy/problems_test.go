package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// right is a sweep without a problem.
func right() policy.Sweep {
	return policy.Sweep{
		Name: "jobs", Table: policy.Name{Schema: "public", Table: "jobs"}, Age: "at", Window: policy.MustWindow(7 * day),
		Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed"), Live: policy.Texts("queued")}},
	}
}

func TestNoProblems(t *testing.T) {
	if ps := right().Problems(); len(ps) > 0 {
		t.Error(ps)
	}
	full := right()
	full.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(time.Hour)}, {State: policy.Text("failed"), Window: policy.Never}}
	full.Guard.Ended = true
	full.Guard.Owner = byOwner.Owner
	full.Only = []policy.Match{{Column: "queue", Values: policy.Texts("mail")}}
	full.Batch = policy.Batch{Limit: policy.MaxLimit, Target: time.Millisecond}
	full.Ceiling = policy.Ceiling{Batches: policy.NoCeiling, Rows: policy.NoCeiling, Time: policy.NoCeiling}
	full.Set = []policy.Setting{{Name: "que.skip_notify", Value: "true"}, {Name: "row_security", Value: "on"}}
	if ps := full.Problems(); len(ps) > 0 {
		t.Error(ps)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*policy.Sweep)
		want   []string
	}{
		{"no name", func(s *policy.Sweep) { s.Name = "" }, []string{`"" is no name of a sweep; write a lower-case letter, then letters, digits and _, 48 at most`}},
		{"no table", func(s *policy.Sweep) { s.Table = policy.Name{} }, []string{"table: no table is named"}},
		{"no schema", func(s *policy.Sweep) { s.Table.Schema = "" }, []string{`table: "jobs" has no schema; write schema.table`}},
		{"no age", func(s *policy.Sweep) { s.Age = "" }, []string{"age: no column is named"}},
		{"below the floor", func(s *policy.Sweep) { s.Window = policy.MustWindow(time.Minute) }, []string{"window: 1min is below the floor of 1h; lengthen it, or write floor: 1min in this sweep"}},
		{"floor below a second", func(s *policy.Sweep) { s.Floor = time.Millisecond }, []string{"floor: it must be at least 1s"}},
		{"floor of a second and a half", func(s *policy.Sweep) { s.Floor = 1500 * time.Millisecond }, []string{"floor: it must be of whole seconds"}},
		{"windows without states", func(s *policy.Sweep) {
			s.Guard = policy.Guard{Ended: true}
			s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(day)}}
		}, []string{"window: windows by state need a guard by the row's own state; give guard.state, or one window for all"}},
		{"windows of other states", func(s *policy.Sweep) {
			s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(day)}, {State: policy.Text("queued"), Window: policy.MustWindow(day)}}
		}, []string{`window: no window for the terminal state "failed"; add failed: never to keep it`, `window.queued: window names state "queued", which is not in guard.terminal`}},
		{"two windows of one state", func(s *policy.Sweep) {
			s.Guard.State.Terminal = policy.Texts("done")
			s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(day)}, {State: policy.Text("done"), Window: policy.MustWindow(2 * day)}}
		}, []string{`window.done: state "done" has two windows`}},
		{"a state in two spellings", func(s *policy.Sweep) {
			s.Guard.State.Terminal = []policy.Value{policy.Int(1)}
			s.ByState = []policy.StateWindow{{State: policy.Text("1"), Window: policy.MustWindow(day)}}
		}, []string{`window.1: the state is the text "1" here and the number 1 in guard.terminal; write it alike in both`}},
		{"no guard", func(s *policy.Sweep) { s.Guard = policy.Guard{} }, []string{`guard: nothing says which rows are still needed; give ended, state, owner, owed or hold, or none: "why nothing is owed"`}},
		{"none and another", func(s *policy.Sweep) { s.Guard.None = "nothing is owed on it" }, []string{"guard.none: none stands alone"}},
		{"none without a reason", func(s *policy.Sweep) { s.Guard = policy.Guard{None: "  because    "} }, []string{`guard.none: "  because    " says too little; write the reason, 10 characters or more`}},
		{"no state column", func(s *policy.Sweep) { s.Guard.State.Column = "" }, []string{"guard.state: no state column is named"}},
		{"no terminal state", func(s *policy.Sweep) { s.Guard.State.Terminal = nil }, []string{"guard.terminal: no terminal state is given; list the states from which nothing is owed any more"}},
		{"terminal null", func(s *policy.Sweep) { s.Guard.State.Terminal = append(s.Guard.State.Terminal, policy.Null) }, []string{"guard.terminal: null is no state; leave it out: a null state always protects"}},
		{"terminal and live", func(s *policy.Sweep) { s.Guard.State.Live = policy.Texts("done") }, []string{`guard.live: state "done" is in terminal already; keep one of them`}},
		{"terminal in two spellings", func(s *policy.Sweep) { s.Guard.State.Terminal = []policy.Value{policy.Int(1), policy.Text("1")} }, []string{`guard.terminal: state "1" is in terminal already; keep one of them`}},
		{"owner of nothing", func(s *policy.Sweep) { s.Guard = policy.Guard{Owner: &policy.OwnerGuard{}} }, []string{
			"guard.owner.key: no key leads to the owner; map columns of the target to the key of the owner", "guard.owner.state: no state column is named",
			"guard.owner.table: no owner table is named", "guard.owner.terminal: no terminal state is given; list the states from which nothing is owed any more"}},
		{"owner by a column twice", func(s *policy.Sweep) {
			o := *byOwner.Owner
			o.Key = []policy.KeyPair{{Target: "a", Owner: "id"}, {Target: "b", Owner: "id"}}
			s.Guard = policy.Guard{Owner: &o}
		}, []string{"guard.owner.key: a column stands twice in the key"}},
		{"owner by no column", func(s *policy.Sweep) {
			o := *byOwner.Owner
			o.Key = []policy.KeyPair{{Target: "", Owner: "id"}}
			s.Guard = policy.Guard{Owner: &o}
		}, []string{"guard.owner.key: a column of the key has no name"}},
		{"only nothing", func(s *policy.Sweep) { s.Only = []policy.Match{{Column: "queue"}} }, []string{"only.queue: the list is empty; name at least one value"}},
		{"limit", func(s *policy.Sweep) { s.Batch.Limit = policy.MaxLimit + 1 }, []string{"batch.limit: 100001 is out of range; it is from 1 to 100000"}},
		{"negative bounds", func(s *policy.Sweep) {
			s.Batch = policy.Batch{Limit: -1, Target: -1}
			s.Ceiling = policy.Ceiling{Batches: -1, Rows: -1, Time: -1}
			s.Timeouts = policy.Timeouts{Statement: -1, Lock: -1}
			s.Pause = -1
		}, []string{"batch.limit: -1 is out of range; it is from 1 to 100000", "batch.target: it must be above zero", "ceiling.batches: it must be above zero", "ceiling.rows: it must be above zero",
			"ceiling.time: it must be above zero", "pause: it must not be negative", "timeouts.lock: it must be above zero", "timeouts.statement: it must be above zero"}},
		{"settings", func(s *policy.Sweep) {
			s.Set = []policy.Setting{{Name: "a b"}, {Name: "Lock_Timeout"}, {Name: "synchronous_commit"}, {Name: ""}}
		}, []string{`set.: "" is no name of a parameter`, `set.Lock_Timeout: "Lock_Timeout" is no name of a parameter`, `set.a b: "a b" is no name of a parameter`, "set.synchronous_commit: synchronous_commit is set by prunectl in each batch; leave it out"}},
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

// TestProblemsAtKey: where the key is what is wrong, the problem says so.
func TestProblemsAtKey(t *testing.T) {
	s := right()
	s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(time.Second)}, {State: policy.Text("failed"), Window: policy.MustWindow(day)}, {State: policy.Text("gone"), Window: policy.MustWindow(day)}}
	for _, p := range s.Problems() {
		if want := strings.HasPrefix(p.What, "window names"); p.AtKey != want {
			t.Errorf("%s: at the key: %t", p, p.AtKey)
		}
	}
	if n := len(s.Problems()); n != 2 {
		t.Errorf("%d problems", n)
	}
}

// TestDefaults holds the documented defaults.
func TestDefaults(t *testing.T) {
	s := policy.Sweep{}.WithDefaults()
	want := policy.Sweep{
		Since: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), Floor: time.Hour, Batch: policy.Batch{Limit: 5000, Target: 100 * time.Millisecond},
		Ceiling:  policy.Ceiling{Batches: policy.NoCeiling, Rows: 1_000_000, Time: 10 * time.Minute},
		Timeouts: policy.Timeouts{Statement: 30 * time.Second, Lock: 500 * time.Millisecond},
	}
	if s.Since != want.Since || s.Floor != want.Floor || s.Batch != want.Batch || s.Ceiling != want.Ceiling || s.Timeouts != want.Timeouts || s.Pause != 0 || s.Sync {
		t.Errorf("%+v", s)
	}
	if !s.Window.IsNever() {
		t.Errorf("there is a default window: %s", s.Window)
	}
	if b, want := (policy.Budget{}).WithDefaults(), (policy.Budget{Time: 30 * time.Minute, Rows: policy.NoCeiling, Turn: 30 * time.Second}); b != want {
		t.Errorf("%+v", b)
	}
	kept := policy.Sweep{Floor: time.Second, Batch: policy.Batch{Limit: 7}}.WithDefaults()
	if kept.Floor != time.Second || kept.Batch.Limit != 7 || kept.Batch.Target != policy.DefaultTarget {
		t.Errorf("what was written is not kept: %+v", kept)
	}
}
