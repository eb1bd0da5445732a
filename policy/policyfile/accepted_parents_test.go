package policyfile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/policy"
)

// fullParents says every key that is about parents, their children and windows of their own; at_once is below every floor,
// so it stands in a file without one.
const fullParents = `version: 1
defaults: {schema: app}
sweeps:
  parents:
    table: events
    age: at
    window: at_once
    row_window: {column: Keep, unit: min, zero: never}
    guard:
      hold: Legal Hold
      owed:
        table: deliveries
        key: {id: event_id, tenant: tenant}
        state: status
        terminal: [sent, 3]
    children:
      - table: deliveries
        key: {id: event_id}
        children:
          - {table: [log.s, lines], key: {id: delivery, no: no}}
      - {table: other.notes, key: {id: event}}
    cascades:
      - tags
      - other.tags
      - [my.schema, tags]
  others:
    table: other.events
    age: at
    window: never
    row_window: {column: keep}
    guard: {owed: {table: other.deliveries, key: {id: event_id}}}
`

func TestEveryKeyOfParents(t *testing.T) {
	app := func(table string) policy.Name { return policy.Name{Schema: "app", Table: table} }
	parents := policy.Sweep{
		Name: "parents", Table: app("events"), Age: "at", Window: policy.AtOnce,
		Own: &policy.RowWindow{Column: "Keep", Unit: time.Minute, ZeroNever: true},
		Guard: policy.Guard{Hold: "Legal Hold", Owed: &policy.OwedGuard{
			Table: app("deliveries"), Key: []policy.ChildKey{{Parent: "id", Child: "event_id"}, {Parent: "tenant", Child: "tenant"}},
			Column: "status", Terminal: []policy.Value{policy.Text("sent"), policy.Int(3)}}},
		Children: []policy.Child{
			{Table: app("deliveries"), Key: []policy.ChildKey{{Parent: "id", Child: "event_id"}}, Children: []policy.Child{
				{Table: policy.Name{Schema: "log.s", Table: "lines"}, Key: []policy.ChildKey{{Parent: "id", Child: "delivery"}, {Parent: "no", Child: "no"}}}}},
			{Table: policy.Name{Schema: "other", Table: "notes"}, Key: []policy.ChildKey{{Parent: "id", Child: "event"}}},
		},
		Cascades: []policy.Name{app("tags"), {Schema: "other", Table: "tags"}, {Schema: "my.schema", Table: "tags"}},
	}
	others := policy.Sweep{
		Name: "others", Table: policy.Name{Schema: "other", Table: "events"}, Age: "at", Own: &policy.RowWindow{Column: "keep"},
		Guard: policy.Guard{Owed: &policy.OwedGuard{Table: policy.Name{Schema: "other", Table: "deliveries"}, Key: []policy.ChildKey{{Parent: "id", Child: "event_id"}}}},
	}
	if d := cmp.Diff([]policy.Sweep{parents, others}, parse(t, fullParents).Sweeps, compare); d != "" {
		t.Error(d)
	}
}

func TestUnitsOfOwnWindows(t *testing.T) {
	for unit, want := range map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": day, `"h"`: time.Hour} {
		if got := parse(t, sweep("row_window: {column: keep, unit: "+unit+"}")).Sweeps[0].Own; got == nil || *got != (policy.RowWindow{Column: "keep", Unit: want}) {
			t.Errorf("%s: %+v", unit, got)
		}
	}
}

// TestPositionOfParents: an item that has no name of its own is counted from 0.
func TestPositionOfParents(t *testing.T) {
	f := parse(t, fullParents)
	for _, c := range []struct{ key, want, atKey string }{
		{"row_window", "p.yaml:8:17", "p.yaml:8:5"},
		{"row_window.unit", "p.yaml:8:38", "p.yaml:8:32"},
		{"guard.hold", "p.yaml:10:13", "p.yaml:10:7"},
		{"guard.owed.table", "p.yaml:12:16", "p.yaml:12:9"},
		{"guard.owed.key.tenant", "p.yaml:13:37", "p.yaml:13:29"},
		{"guard.owed.terminal.3", "p.yaml:15:26", "p.yaml:15:26"},
		{"children.0", "p.yaml:17:9", "p.yaml:17:9"},
		{"children.0.table", "p.yaml:17:16", "p.yaml:17:9"},
		{"children.0.children.0.table", "p.yaml:20:21", "p.yaml:20:14"},
		{"children.0.children.0.key.no", "p.yaml:20:61", "p.yaml:20:57"},
		{"children.1", "p.yaml:21:9", "p.yaml:21:9"},
		{"children.1.key", "p.yaml:21:35", "p.yaml:21:30"},
		{"cascades.1", "p.yaml:24:9", "p.yaml:24:9"},
		{"cascades.2", "p.yaml:25:9", "p.yaml:25:9"},
		// what is not written is where the nearest key above it is
		{"children.1.children", "p.yaml:21:9", "p.yaml:21:9"},
		{"children.7", "p.yaml:16:5", "p.yaml:16:5"},
	} {
		if got := f.Position("parents", c.key); got != c.want {
			t.Errorf("Position(%q) = %s, want %s", c.key, got, c.want)
		}
		if got := f.KeyPosition("parents", c.key); got != c.atKey {
			t.Errorf("KeyPosition(%q) = %s, want %s", c.key, got, c.atKey)
		}
	}
}
