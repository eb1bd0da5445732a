package policyfile_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
)

const day = 24 * time.Hour

var compare = cmp.Options{cmp.Comparer(func(a, b policy.Value) bool { return a == b }), cmp.Comparer(func(a, b policy.Window) bool { return a == b })}

func parse(t *testing.T, text string) *policyfile.File {
	t.Helper()
	f, err := policyfile.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

func days(n int) policy.Window { return policy.MustWindow(time.Duration(n) * day) }

// full says every key of this version once, but those in fullParents.
const full = `# every key
version: 1
defaults:
  schema: app
  floor: 2h
  batch: {limit: 2000, target: 80ms}
  ceiling: {batches: 700, rows: none, time: 5min}
  timeouts: {statement: 10s, lock: 300ms}
  pause: 20ms
  commit: sync
budget: {time: 20min, rows: 5000000, turn: 15s}
sweeps:
  first:
    table: jobs
    age: {column: Finished At, as: instant, since: 2001-02-03}
    window: {done: 24h, 3: 1w, true: never}
    floor: 1h
    only:
      queue: mail
      kind: [a, "7", 7, null]
      error: null
      note: {not: [x, null]}
      flag: {not: true}
    guard:
      ended: true
      state: State
      terminal: [done, 3, true]
      live:
        - queued
        - 'it''s'
      final: true
    index: idx.with.dots
    batch: {limit: 10}
    ceiling: {batches: none, time: none}
    timeouts: {lock: 1s}
    pause: none
    set: {que.skip_notify: "true", app.tenant: acme}
    commit: async
  second:
    table: [my.schema, Run "Events"]
    age: at
    window: never
    overlaps: [third_before]
    guard:
      owner:
        table: other.runs.archive
        key: {tenant: tenant, run: id}
        state: status
        terminal: [completed]
        live: [running]
        final: false
        orphans: keep
        ownerless: keep
  last:
    table: jobs
    age: at
    window: 90d
    overlaps: [first]
    guard:
      none: |
        an audit line,
        nothing is owed
`

func TestEveryKey(t *testing.T) {
	text := strings.Replace(full, "    overlaps: [third_before]\n", "", 1)
	f := parse(t, text)
	if want := (policy.Budget{Time: 20 * time.Minute, Rows: 5_000_000, Turn: 15 * time.Second}); f.Budget != want {
		t.Errorf("budget %+v, want %+v", f.Budget, want)
	}
	sum := sha256.Sum256([]byte(text))
	if f.Path != "p.yaml" || f.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("path %q, sum %q", f.Path, f.SHA256)
	}
	bounds := policy.Sweep{
		Floor: 2 * time.Hour, Batch: policy.Batch{Limit: 2000, Target: 80 * time.Millisecond},
		Ceiling:  policy.Ceiling{Batches: 700, Rows: policy.NoCeiling, Time: 5 * time.Minute},
		Timeouts: policy.Timeouts{Statement: 10 * time.Second, Lock: 300 * time.Millisecond}, Pause: 20 * time.Millisecond, Sync: true,
	}
	first, second, last := bounds, bounds, bounds

	first.Name, first.Table, first.Age = "first", policy.Name{Schema: "app", Table: "jobs"}, "Finished At"
	first.Since = time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)
	first.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: days(1)}, {State: policy.Int(3), Window: days(7)}, {State: policy.Bool(true), Window: policy.Never}}
	first.Floor = time.Hour
	first.Only = []policy.Match{
		{Column: "queue", Values: policy.Texts("mail")},
		{Column: "kind", Values: []policy.Value{policy.Text("a"), policy.Text("7"), policy.Null}},
		{Column: "error", Values: []policy.Value{policy.Null}},
		{Column: "note", Values: []policy.Value{policy.Text("x"), policy.Null}, Not: true},
		{Column: "flag", Values: []policy.Value{policy.Bool(true)}, Not: true},
	}
	first.Guard = policy.Guard{Ended: true, State: &policy.StateGuard{
		Column: "State", Terminal: []policy.Value{policy.Text("done"), policy.Int(3), policy.Bool(true)}, Live: policy.Texts("queued", "it's"), Final: true}}
	first.Index = "idx.with.dots"
	first.Batch.Limit = 10
	first.Ceiling = policy.Ceiling{Batches: policy.NoCeiling, Rows: policy.NoCeiling, Time: policy.NoCeiling}
	first.Timeouts.Lock = time.Second
	first.Pause, first.Sync = 0, false
	first.Set = []policy.Setting{{Name: "que.skip_notify", Value: "true"}, {Name: "app.tenant", Value: "acme"}}

	second.Name, second.Table, second.Age, second.Window = "second", policy.Name{Schema: "my.schema", Table: `Run "Events"`}, "at", policy.Never
	second.Guard = policy.Guard{Owner: &policy.OwnerGuard{
		Table: policy.Name{Schema: "other", Table: "runs.archive"}, Key: []policy.KeyPair{{Target: "tenant", Owner: "tenant"}, {Target: "run", Owner: "id"}},
		Column: "status", Terminal: policy.Texts("completed"), Live: policy.Texts("running")}}

	last.Name, last.Table, last.Age, last.Window = "last", policy.Name{Schema: "app", Table: "jobs"}, "at", days(90)
	last.Overlaps = []string{"first"}
	last.Guard = policy.Guard{None: "an audit line, nothing is owed"}

	if d := cmp.Diff([]policy.Sweep{first, second, last}, f.Sweeps, compare); d != "" {
		t.Error(d)
	}
}

// TestSilence holds the defaults: what a file does not say stays zero, and the policy fills it in.
func TestSilence(t *testing.T) {
	f := parse(t, sweep())
	want := policy.Sweep{
		Name: "jobs", Table: policy.Name{Schema: "public", Table: "jobs"}, Age: "at", Window: days(7),
		Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed")}},
	}
	if d := cmp.Diff([]policy.Sweep{want}, f.Sweeps, compare); d != "" {
		t.Error(d)
	}
	if f.Budget != (policy.Budget{}) {
		t.Errorf("budget %+v", f.Budget)
	}
}

// TestNoneLiftsACeiling holds apart the ceiling that is lifted and the one that is not written.
func TestNoneLiftsACeiling(t *testing.T) {
	f := parse(t, top("budget: {time: none, rows: none}")+"    ceiling: {rows: none, batches: none, time: none}\n")
	if want := (policy.Budget{Time: policy.NoCeiling, Rows: policy.NoCeiling}); f.Budget != want {
		t.Errorf("budget %+v, want %+v", f.Budget, want)
	}
	if want := (policy.Ceiling{Batches: policy.NoCeiling, Rows: policy.NoCeiling, Time: policy.NoCeiling}); f.Sweeps[0].Ceiling != want {
		t.Errorf("ceiling %+v, want %+v", f.Sweeps[0].Ceiling, want)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		written string
		want    policy.Name
	}{
		{"public.jobs", policy.Name{Schema: "public", Table: "jobs"}},
		{"public.jobs.old", policy.Name{Schema: "public", Table: "jobs.old"}},
		{"[a.b, c.d]", policy.Name{Schema: "a.b", Table: "c.d"}},
		{`[Audit-Log, 'Run "Events"']`, policy.Name{Schema: "Audit-Log", Table: `Run "Events"`}},
		{`'x"; drop table jobs; --.jobs'`, policy.Name{Schema: `x"; drop table jobs; --`, Table: "jobs"}},
		{"'2024.01'", policy.Name{Schema: "2024", Table: "01"}},
		{"public.select", policy.Name{Schema: "public", Table: "select"}},
		{"Öffentlich.Aufträge", policy.Name{Schema: "Öffentlich", Table: "Aufträge"}},
		{"public." + strings.Repeat("j", 63), policy.Name{Schema: "public", Table: strings.Repeat("j", 63)}},
	} {
		if got := parse(t, sweep("table: "+c.written)).Sweeps[0].Table; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.written, got, c.want)
		}
	}
}

func TestWindows(t *testing.T) {
	for written, want := range map[string]policy.Window{
		"30d": days(30), "720h": days(30), "4w": days(28), "90min": policy.MustWindow(90 * time.Minute), "3600s": policy.MustWindow(time.Hour),
		"36500d": policy.MustWindow(policy.MaxWindow), "never": policy.Never, `"90d"`: days(90), "007d": days(7),
	} {
		if got := parse(t, window(written)).Sweeps[0].Window; got != want {
			t.Errorf("%s: %s, want %s", written, got, want)
		}
	}
	if got := parse(t, window("at_once")).Sweeps[0].Window; got != policy.AtOnce {
		t.Errorf("at_once: %s", got)
	}
	if got := parse(t, sweep("window: 1s", "floor: 1s")).Sweeps[0].Window; got != policy.MustWindow(time.Second) {
		t.Errorf("1s: %s", got)
	}
}

// TestDisjoint: sweeps by states of one column that have none in common need not name each other.
func TestDisjoint(t *testing.T) {
	f := parse(t, sweep()+again("dead", "public.jobs", "{state: state, terminal: [dead]}")+again("all", "public.jobs", "{ended: true}", "overlaps: [jobs, dead]"))
	if len(f.Sweeps) != 3 {
		t.Errorf("%d sweeps", len(f.Sweeps))
	}
}

func TestPosition(t *testing.T) {
	f := parse(t, strings.Replace(full, "    overlaps: [third_before]\n", "", 1))
	for _, c := range []struct{ sweep, key, want, atKey string }{
		{"first", "", "p.yaml:13:3", "p.yaml:13:3"},
		{"first", "table", "p.yaml:14:12", "p.yaml:14:5"},
		{"first", "age", "p.yaml:15:10", "p.yaml:15:5"},
		{"first", "age.column", "p.yaml:15:19", "p.yaml:15:11"},
		{"first", "window.done", "p.yaml:16:20", "p.yaml:16:14"},
		{"first", "window.3", "p.yaml:16:28", "p.yaml:16:25"},
		{"first", "only.kind.7", "p.yaml:20:17", "p.yaml:20:17"},
		{"first", "guard", "p.yaml:25:7", "p.yaml:24:5"},
		{"first", "guard.live.queued", "p.yaml:29:11", "p.yaml:29:11"},
		{"first", "guard.live.it's", "p.yaml:30:11", "p.yaml:30:11"},
		{"first", "set.que.skip_notify", "p.yaml:37:28", "p.yaml:37:11"},
		// what is not written is where the nearest key above it is
		{"first", "guard.owner.state", "p.yaml:24:5", "p.yaml:24:5"},
		{"first", "guard.terminal.gone", "p.yaml:27:7", "p.yaml:27:7"},
		{"first", "overlaps", "p.yaml:13:3", "p.yaml:13:3"},
		{"second", "guard.owner.key.run", "p.yaml:46:36", "p.yaml:46:31"},
		{"second", "guard.owner.terminal.completed", "p.yaml:48:20", "p.yaml:48:20"},
		{"", "budget.time", "p.yaml:11:16", "p.yaml:11:10"},
		{"", "defaults.batch.limit", "p.yaml:6:18", "p.yaml:6:11"},
		{"", "", "p.yaml:1:1", "p.yaml:1:1"},
		{"no_such_sweep", "window", "p.yaml:1:1", "p.yaml:1:1"},
	} {
		if got := f.Position(c.sweep, c.key); got != c.want {
			t.Errorf("Position(%q, %q) = %s, want %s", c.sweep, c.key, got, c.want)
		}
		if got := f.KeyPosition(c.sweep, c.key); got != c.atKey {
			t.Errorf("KeyPosition(%q, %q) = %s, want %s", c.sweep, c.key, got, c.atKey)
		}
	}
}

// TestAllErrorsInOneGo: the faults of every part of a file, in the order of the file, and none that only follows.
func TestAllErrorsInOneGo(t *testing.T) {
	const file = `version: 1
defaults: {schema: public, floor: 10min}
budget: {turn: 30}
sweeps:
  a:
    table: "jobs "
    age: at
    windw: 90d
    guard: {state: state, terminal: done}
  B:
    frees: []
    table: jobs
    age: {column: at, as: epoch_s}
    window: {done: 3m, dne: 90d}
    guard: {state: state, terminal: [done]}
    ceiling: {rows: 0}
  c:
    table: jobs
    age: at
    window: 30min
    overlaps: [b]
    guard: {none: nothing}
`
	const want = `p.yaml:2:35: defaults.floor: a floor below 1h is written in each sweep that needs it, and not for all; move it there
p.yaml:3:16: budget.turn: "30" has no unit; write 30d, 30h or 30min
p.yaml:6:12: a.table: "jobs " has blanks round it; write jobs
p.yaml:8:5: a: unknown key "windw"; did you mean window?
p.yaml:9:37: a.guard.terminal: found the text "done", and a list is due; write [done]
p.yaml:10:3: B: "B" is no name of a sweep; write a lower-case letter, then letters, digits and _, 48 at most
p.yaml:11:5: B: key frees is planned, not in this version
p.yaml:13:27: B.age.as: epoch_s is planned, not in this version; the age is a timestamptz column
p.yaml:14:20: B.window.done: "3m": months have no fixed length and m is read both ways; write min for minutes or count days
p.yaml:14:24: B.window.dne: window names state "dne", which is not in guard.terminal
p.yaml:16:21: B.ceiling.rows: 0 is out of range; write a number from 1, or none for no ceiling
p.yaml:21:16: c.overlaps: there is no sweep "b"; did you mean B?
p.yaml:22:19: c.guard.none: "nothing" says too little; write the reason, 10 characters or more`
	_, err := policyfile.Parse("p.yaml", []byte(file))
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// systems reads a file of sweeps over the tables of real systems.
func systems(t *testing.T, name string) (*policyfile.File, error) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return policyfile.Parse(name, data)
}

func TestSystems(t *testing.T) {
	f, err := systems(t, "systems.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Sweeps) != 27 {
		t.Errorf("%d sweeps", len(f.Sweeps))
	}
	for _, s := range f.Sweeps {
		if ps := s.Problems(); len(ps) > 0 {
			t.Errorf("%s: %v", s.Name, ps)
		}
	}
}

// TestSystemsPlanned: a sweep that needs a key of a later version is refused for that key, and for nothing else.
func TestSystemsPlanned(t *testing.T) {
	_, err := systems(t, "systems_planned.yaml")
	var errs policyfile.Errors
	if !errors.As(err, &errs) {
		t.Fatalf("accepted, or another error: %v", err)
	}
	refused := map[string]bool{}
	for _, e := range errs {
		name, _, _ := strings.Cut(e.Key, ".")
		refused[name] = true
		if !strings.Contains(e.Message, " is planned, not in this version") {
			t.Errorf("refused for another reason: %v", e)
		}
	}
	if len(refused) != 21 {
		t.Errorf("%d of the sweeps are refused", len(refused))
	}
}

func TestReady(t *testing.T) {
	if got := policyfile.ReadyNames(); !reflect.DeepEqual(got, []string{"domain_events", "inbox_outbox", "run_events"}) {
		t.Errorf("ready are %v", got)
	}
	for _, name := range policyfile.ReadyNames() {
		text, err := policyfile.Ready(name)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := policyfile.Parse(name, text); err != nil || len(f.Sweeps) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := policyfile.Ready("../doc"); err == nil || !strings.Contains(err.Error(), "there is domain_events, inbox_outbox, run_events") {
		t.Errorf("a name that is none: %v", err)
	}
}
