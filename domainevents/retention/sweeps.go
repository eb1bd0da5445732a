package retention

import (
	"time"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/policy"
)

// succeededSweep is the name of the sweep under SUCCEEDED.
const succeededSweep = "domain_events_succeeded"

// Sweeps returns the sweeps of the ready policy domain_events, over the tables in a
// schema, public when empty: the events that go by a window, those under SUCCEEDED and
// those under SETTLED. window takes the place of the default window and of nothing
// else; the zero Window is [domainevents.DefaultWindow].
func Sweeps(schema string, window policy.Window) []policy.Sweep {
	if schema == "" {
		schema = "public"
	}
	if window.IsNever() {
		window = policy.MustWindow(domainevents.DefaultWindow)
	}
	deliveries := policy.Name{Schema: schema, Table: "domain_event_deliveries"}
	key := []policy.ChildKey{{Parent: "id", Child: "event_id"}}
	sweep := func(name string, w policy.Window, terminal []domainevents.Status) policy.Sweep {
		s := policy.Sweep{
			Name:     name,
			Table:    policy.Name{Schema: schema, Table: "domain_events"},
			Age:      "recorded_at",
			Window:   w,
			Guard:    policy.Guard{Owed: &policy.OwedGuard{Table: deliveries, Key: key, Column: "status"}},
			Children: []policy.Child{{Table: deliveries, Key: key}},
		}
		for _, status := range terminal {
			s.Guard.Owed.Terminal = append(s.Guard.Owed.Terminal, policy.Text(string(status)))
		}
		return s
	}
	// What a dead letter keeps is parked, and not read again at every sweep.
	under := func(s policy.Sweep, p domainevents.Policy, overlaps ...string) policy.Sweep {
		s.Only = []policy.Match{
			{Column: "retention_policy", Values: policy.Texts(string(p))},
			{Column: "parked", Values: []policy.Value{policy.Bool(false)}},
		}
		s.Index, s.Overlaps = "domain_events_policy", overlaps
		return s
	}

	byWindow := sweep("domain_events", window, domainevents.Terminal())
	byWindow.Own = &policy.RowWindow{Column: "retention_seconds", Unit: time.Second}
	byWindow.Floor = policy.MinWindow
	succeeded := sweep(succeededSweep, policy.AtOnce, domainevents.Done())
	settled := sweep("domain_events_settled", policy.AtOnce, domainevents.Terminal())
	return []policy.Sweep{
		byWindow,
		under(succeeded, domainevents.PolicySucceeded, byWindow.Name),
		under(settled, domainevents.PolicySettled, byWindow.Name, succeeded.Name),
	}
}
