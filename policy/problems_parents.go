package policy

import (
	"fmt"
	"slices"
	"time"
)

// atOnceProblems: a row that is kept by no window has to be kept by a guard that looks at something, and is below every
// floor. floorWritten is whether the sweep, or what fills it in, says a floor.
func (s Sweep) atOnceProblems(add adder, floorWritten bool) {
	for _, sw := range s.ByState {
		if sw.Window.IsAtOnce() {
			add("window."+sw.State.String(), "write a duration or never, or give the state a sweep of its own", "at_once is the window of a whole sweep, not of one state")
		}
	}
	if len(s.ByState) > 0 || !s.Window.IsAtOnce() {
		return
	}
	if g := s.Guard; g.State == nil && g.Owner == nil && g.Owed == nil {
		add("window", "give one of them, or write a duration", "at_once stands only beside guard.state, guard.owner or guard.owed")
	}
	if floorWritten {
		add("window", "leave the floor out, or write a duration", "at_once is below the floor of %s", FormatDuration(s.Floor))
	}
}

// ownUnits are those of a row's own window; 0 is that of an interval.
var ownUnits = []time.Duration{0, time.Second, time.Minute, time.Hour, day}

func (s Sweep) ownProblems(add adder) {
	o := s.Own
	if o == nil {
		return
	}
	switch {
	case o.Column == "":
		add("row_window.column", "", "no column is named")
	case o.Column == s.Age:
		add("row_window.column", "name the column that says how long the row is kept", "%s is the age", o.Column)
	}
	if !slices.Contains(ownUnits, o.Unit) {
		add("row_window.unit", "write s, min, h or d, or none for an interval", "%s is no unit of a window", o.Unit)
	}
}

// childProblems are those of the rows that go with a row: the tables below the sweep's own, and what the database may
// remove by itself.
func (s Sweep) childProblems(add adder) {
	var below []Name
	var walk func(prefix string, children []Child)
	walk = func(prefix string, children []Child) {
		for i, c := range children {
			key := fmt.Sprintf("%s.%d", prefix, i)
			referenceProblems(add, key, c.Table, c.Key)
			if !c.Table.IsZero() && c.Table == s.Table {
				add(key+".table", "its rows go by their own age and guard alone", "%s is the sweep's own table", c.Table)
			}
			if slices.ContainsFunc(children[:i], c.same) {
				add(key, "keep one of them", "%s stands twice with this key", c.Table)
			}
			below = append(below, c.Table)
			walk(key+".children", c.Children)
		}
	}
	walk("children", s.Children)
	for i, n := range s.Cascades {
		key := fmt.Sprintf("cascades.%d", i)
		switch {
		case n.Table == "":
			add(key, "", "no table is named")
		case n.Schema == "":
			add(key, "write schema.table", "%q has no schema", n.Table)
		case slices.Contains(s.Cascades[:i], n):
			add(key, "keep one of them", "%s stands twice", n)
		case slices.Contains(below, n):
			add(key, "leave it out: its rows are removed and counted", "%s is in children already", n)
		}
	}
}

// same reports whether both are reached by the same columns, so that one of them finds nothing.
func (c Child) same(o Child) bool {
	return !c.Table.IsZero() && c.Table == o.Table && len(c.Key) > 0 && len(c.Key) == len(o.Key) &&
		!slices.ContainsFunc(c.Key, func(k ChildKey) bool { return !slices.Contains(o.Key, k) })
}

// referenceProblems are those of a table that refers to another, and of the columns by which it does.
func referenceProblems(add adder, key string, table Name, columns []ChildKey) {
	switch {
	case table.Table == "":
		add(key+".table", "", "no table is named")
	case table.Schema == "":
		add(key+".table", "write schema.table", "%q has no schema", table.Table)
	}
	if len(columns) == 0 {
		add(key+".key", "map the columns that it refers to, to its own", "no key leads to the table")
	}
	for i, k := range columns {
		switch {
		case k.Parent == "" || k.Child == "":
			add(key+".key", "", "a column of the key has no name")
		case slices.ContainsFunc(columns[:i], func(o ChildKey) bool { return o.Parent == k.Parent || o.Child == k.Child }):
			add(key+".key", "", "a column stands twice in the key")
		}
	}
}
