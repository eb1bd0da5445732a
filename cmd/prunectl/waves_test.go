package main

import (
	"fmt"
	"testing"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
)

// TestWaves: owners come after what they own, and parents after what keeps them; where that is a ring, owners win.
func TestWaves(t *testing.T) {
	sweep := func(table, owner, owed string) *inspected {
		in := &inspected{Sweep: policy.Sweep{Name: table, Table: policy.Name{Schema: "public", Table: table}}}
		if owner != "" {
			in.Guard.Owner = &policy.OwnerGuard{Table: policy.Name{Schema: "public", Table: owner}}
		}
		if owed != "" {
			in.Guard.Owed = &policy.OwedGuard{Table: policy.Name{Schema: "public", Table: owed}}
		}
		return in
	}
	for _, c := range []struct {
		name   string
		sweeps []*inspected
		want   string
	}{
		{"no relation", []*inspected{sweep("a", "", ""), sweep("b", "", "")}, "[[a b]]"},
		{"owner", []*inspected{sweep("runs", "", ""), sweep("events", "runs", "")}, "[[events] [runs]]"},
		{"owed", []*inspected{sweep("orders", "", "lines"), sweep("lines", "", "")}, "[[lines] [orders]]"},
		{"owed by nobody's target", []*inspected{sweep("orders", "", "lines"), sweep("b", "", "")}, "[[orders b]]"},
		{"owed by its own table", []*inspected{sweep("tree", "", "tree"), sweep("b", "", "")}, "[[tree b]]"},
		{"a chain", []*inspected{sweep("a", "", "b"), sweep("b", "", "c"), sweep("c", "", "")}, "[[c] [b] [a]]"},
		{"a ring of owed", []*inspected{sweep("a", "", "b"), sweep("b", "", "a")}, "[[a b]]"},
		{"a ring of owed and an owner", []*inspected{sweep("a", "", ""), sweep("b", "a", "a")}, "[[b] [a]]"},
		{"a ring of owners", []*inspected{sweep("a", "b", ""), sweep("b", "a", "")}, "[[a b]]"},
	} {
		var got [][]string
		for _, wave := range waves(c.sweeps) {
			var names []string
			for _, in := range wave {
				names = append(names, in.Name)
			}
			got = append(got, names)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	// Nobody waits for a parent's keeper to be drained: nothing is lost where it is not.
	lines, orders := sweep("lines", "", ""), sweep("orders", "", "lines")
	if !orders.mayFollow([]*inspected{lines}, false) {
		t.Error("orders wait for lines")
	}
}

// TestOwedGoFirst: what a sweep lets go by removing what kept it goes in the same run, whichever stands first in the file; and
// where it is not let go, nothing waits.
func TestOwedGoFirst(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, `
CREATE TABLE orders (id int PRIMARY KEY, placed timestamptz NOT NULL);
CREATE INDEX orders_age ON orders (placed, id);
CREATE TABLE holds (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders (id), ended timestamptz);
CREATE INDEX holds_age ON holds (ended, id);
CREATE INDEX holds_order ON holds (order_id);
INSERT INTO orders SELECT g, now() - interval '100 days' FROM generate_series(1, 2000) g;
INSERT INTO holds SELECT g, g, CASE WHEN g > 10 THEN now() - interval '50 days' END FROM generate_series(1, 1500) g;
ANALYZE orders, holds`)
	const orders = `
  orders: {table: orders, age: placed, window: 30d, guard: {owed: {table: holds, key: {id: order_id}}}}
`
	const holds = `
  holds: {table: holds, age: ended, window: 30d, guard: {ended: true}, ceiling: {rows: 1000}}
`
	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policyOf(orders, holds)}.run(t).must(t, exitDone).document(t)
	if h, o := sweepOf(t, r, "holds"), sweepOf(t, r, "orders"); h.Removed != 1000 || h.Stop != report.Ceiling || o.Removed != 1500 || *o.Held != 500 || !o.Drained {
		t.Errorf("%+v\n%+v", h, o)
	}
	r = invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policyOf(orders, holds)}.run(t).must(t, exitDone).document(t)
	if o := sweepOf(t, r, "orders"); o.Removed != 490 || *o.Held != 10 || len(o.HeldBy) != 1 || o.HeldBy[0].Reason != "owed" || o.HeldBy[0].Value != nil {
		t.Errorf("%+v", o)
	}
}
