package drain

import (
	"reflect"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

type specified struct {
	pruner.Pruner
	arm policy.Arm
}

func (s specified) Spec() policy.Arm { return s.arm }

func TestSweepOf(t *testing.T) {
	p := sweep
	p.Window, p.ByState = policy.Never, []policy.StateWindow{{State: policy.Text("done"), Window: window}}
	p.Batch, p.Ceiling = policy.Batch{Limit: 7, Target: time.Second}, policy.Ceiling{Batches: 3, Rows: 20, Time: time.Minute}
	p.Pause, p.Timeouts.Lock = time.Millisecond, 2*time.Second
	var arms []specified
	for _, columns := range [][]string{{"state", "at"}, {"at"}} {
		for _, a := range p.Arms(policy.Index{Columns: columns}) {
			arms = append(arms, specified{arm: a})
		}
	}
	got := SweepOf(p, arms, now)
	want := Sweep{Name: "jobs", Arms: []Arm{{Name: "jobs done", Pruner: arms[0], Cutoff: cutoff}, {Name: "jobs", Pruner: arms[1], Cutoff: cutoff, CountsHeld: true}},
		Bounds: Bounds{Limit: 7, Batches: 3, Rows: 20, Duration: time.Minute, Pause: time.Millisecond, BatchTarget: time.Second, LockTimeout: 2 * time.Second}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if got, want := BoundsOf(policy.Sweep{}), (Bounds{Limit: policy.DefaultLimit, Batches: NoCeiling, Rows: policy.DefaultRows, Duration: policy.DefaultTime,
		BatchTarget: policy.DefaultTarget, LockTimeout: policy.DefaultLockTimeout}); !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are %+v; want %+v", got, want)
	}
}
