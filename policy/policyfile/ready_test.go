package policyfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
)

// TestReadyRunEvents holds the ready policy of the run events against what the event log declares.
func TestReadyRunEvents(t *testing.T) {
	text, err := policyfile.Ready("run_events")
	if err != nil {
		t.Fatal(err)
	}
	f, err := policyfile.Parse("run_events.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Sweeps) != 1 {
		t.Fatalf("%d sweeps", len(f.Sweeps))
	}
	s := f.Sweeps[0]
	if s.Name != "run_events" || s.Table != (policy.Name{Schema: "public", Table: "run_events"}) || s.Age != "created_at" || s.Index != "run_events_retention" {
		t.Errorf("sweep %s of %s by %s through %s", s.Name, s.Table, s.Age, s.Index)
	}
	if s.Window != policy.MustWindow(eventlog.DefaultWindow) {
		t.Errorf("the window is %s, the event log declares %s", s.Window, eventlog.DefaultWindow)
	}
	if s.Floor != policy.MinWindow {
		t.Errorf("the floor is %s", s.Floor)
	}
	g := s.Guard.Owner
	if g == nil || g.Table != (policy.Name{Schema: "public", Table: "runs"}) || g.Column != "status" {
		t.Fatalf("guard %+v", s.Guard)
	}
	if d := cmp.Diff([]policy.KeyPair{{Target: "tenant_id", Owner: "tenant_id"}, {Target: "run_id", Owner: "id"}}, g.Key); d != "" {
		t.Error(d)
	}
	for _, state := range eventlog.States() {
		if lets := g.Lets(policy.Text(string(state))); lets != state.Terminal() {
			t.Errorf("state %s: the policy lets its events go: %t, the event log calls it terminal: %t", state, lets, state.Terminal())
		}
	}
	if len(g.Terminal) != len(eventlog.Terminal()) {
		t.Errorf("the policy has %d terminal states, the event log %d", len(g.Terminal), len(eventlog.Terminal()))
	}
}
