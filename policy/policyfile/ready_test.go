package policyfile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
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

// TestReadyDomainEvents holds the ready policy of the domain events against what their package declares.
func TestReadyDomainEvents(t *testing.T) {
	data, err := policyfile.Ready("domain_events")
	if err != nil {
		t.Fatal(err)
	}
	f, err := policyfile.Parse("domain_events.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	events, deliveries := policy.Name{Schema: "public", Table: "domain_events"}, policy.Name{Schema: "public", Table: "domain_event_deliveries"}
	key := []policy.ChildKey{{Parent: "id", Child: "event_id"}}
	word := func(p domainevents.Policy) []policy.Match {
		return []policy.Match{{Column: "retention_policy", Values: policy.Texts(string(p))}, {Column: "parked", Values: []policy.Value{policy.Bool(false)}}}
	}
	sweep := func(name string, only []policy.Match, w policy.Window, terminal []domainevents.Status) policy.Sweep {
		s := policy.Sweep{
			Name: name, Table: events, Age: "recorded_at", Window: w, Only: only, Index: "domain_events_policy",
			Guard:    policy.Guard{Owed: &policy.OwedGuard{Table: deliveries, Key: key, Column: "status"}},
			Children: []policy.Child{{Table: deliveries, Key: key}},
		}
		for _, status := range terminal {
			s.Guard.Owed.Terminal = append(s.Guard.Owed.Terminal, policy.Text(string(status)))
		}
		return s
	}
	// Each part has an index of its own, so none is named.
	ordinary := sweep("domain_events", nil, policy.MustWindow(domainevents.DefaultWindow), domainevents.Terminal())
	ordinary.Floor, ordinary.Index, ordinary.Own = policy.MinWindow, "", &policy.RowWindow{Column: "retention_seconds", Unit: time.Second}
	succeeded := sweep("domain_events_succeeded", word(domainevents.PolicySucceeded), policy.AtOnce, domainevents.Done())
	succeeded.Overlaps = []string{ordinary.Name}
	settled := sweep("domain_events_settled", word(domainevents.PolicySettled), policy.AtOnce, domainevents.Terminal())
	settled.Overlaps = []string{ordinary.Name, succeeded.Name}
	if d := cmp.Diff([]policy.Sweep{ordinary, succeeded, settled}, f.Sweeps, compare); d != "" {
		t.Error(d)
	}
	for _, s := range f.Sweeps {
		for _, status := range domainevents.Owed() {
			if s.Guard.Owed.Lets(policy.Text(string(status))) {
				t.Errorf("%s lets an event go whose delivery is %s", s.Name, status)
			}
		}
	}
	// The index leads with the policy, its predicate settles the rest.
	for _, s := range f.Sweeps[1:] {
		arms := s.Arms(policy.Index{Name: s.Index, Columns: []string{"retention_policy", "recorded_at", "id"}, Where: []string{"retention_policy", "parked"}})
		if len(arms) != 1 || len(arms[0].Equal) != 1 || len(arms[0].Within) != 1 || len(arms[0].Only) > 0 {
			t.Errorf("%s has the arms %+v", s.Name, arms)
		}
	}
}

// TestReadyInboxOutbox holds the ready policy of the inbox and outbox against the sweeps of their package, and against their
// states.
func TestReadyInboxOutbox(t *testing.T) {
	data, err := policyfile.Ready("inbox_outbox")
	if err != nil {
		t.Fatal(err)
	}
	f, err := policyfile.Parse("inbox_outbox.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(retention.Sweeps("", inboxoutbox.Settings{}), f.Sweeps, compare); d != "" {
		t.Error(d)
	}
	inbox, outbox, leases := f.Sweeps[0], f.Sweeps[1], f.Sweeps[2]
	for _, state := range inboxoutbox.States() {
		if lets := inbox.Guard.State.Lets(policy.Text(string(state))); lets != (state == inboxoutbox.Completed) {
			t.Errorf("an inbox row that is %s may go: %t", state, lets)
		}
	}
	now := time.Date(2026, 4, 11, 0, 0, 0, 0, time.UTC)
	for name, d := range map[string]policy.Decision{
		"a pending row":         inbox.Decide(now, policy.Row{Columns: map[string]policy.Value{"state": policy.Text("pending")}}),
		"an undelivered record": outbox.Decide(now, policy.Row{}),
		"a lease in its time":   leases.Decide(now, policy.Row{Age: &now}),
	} {
		if d.Verdict != policy.Young {
			t.Errorf("%s is %s: %s", name, d.Verdict, d.Reason)
		}
	}
	for _, s := range f.Sweeps {
		if s.Table.Schema != inboxoutbox.DefaultSchema {
			t.Errorf("%s is not in the schema of the component", s.Table)
		}
	}
	// Each is served by its own index alone, which settles all that its guard asks.
	for _, c := range []struct {
		sweep policy.Sweep
		index policy.Index
	}{
		{inbox, policy.Index{Name: "inbox_retention", Columns: []string{"completed_at", "handler", "event_id"}, Where: []string{"state"}}},
		{outbox, policy.Index{Name: "outbox_retention", Columns: []string{"delivered_at", "record_id"}, Where: []string{"delivered_at"}}},
		{leases, policy.Index{Name: "leases_expiry", Columns: []string{"expires_at", "handler", "partition"}}},
	} {
		if arms := c.sweep.Arms(c.index); c.sweep.Index != c.index.Name || len(arms) != 1 || arms[0].State != nil {
			t.Errorf("%s through %s has the arms %+v", c.sweep.Name, c.sweep.Index, arms)
		}
	}
}
