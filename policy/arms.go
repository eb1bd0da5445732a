package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Arm is the part of a sweep that one statement can carry out through one index: one cutoff, one cursor, at most one
// scalar state.
type Arm struct {
	Name   string  // the sweep's name, "own window" for rows with one of their own, and the state where the arm has one
	Window Window  // bounds what the arm examines: the shortest window in it
	Expiry bool    // the range is one of expiries, age and own window, and not of ages
	Equal  []Equal // scalar equalities of the range: the columns that the index leads with
	Within []Match // conditions of the range that the predicate of a partial index settles
	Only   []Match // conditions that are tested inside the range
	Part   []Match // the same, of which rows are another arm's: those are not counted
	Own    *OwnTest
	State  *StateTest
	Hold   string
	Owner  *OwnerGuard
	Owed   *OwedGuard

	Children []Child
}

// OwnTest lets a row of the range go by its own window, raised to the floor.
type OwnTest struct {
	RowWindow
	Floor time.Duration
}

// Equal is the equality of a column with one value that is not null.
type Equal struct {
	Column string
	Value  Value
}

// StateTest is the guard by the row's own state, where no equality settles it: rows in none of the groups are held.
type StateTest struct {
	Column string
	Groups []StateGroup
}

// StateGroup is a set of terminal states that share a window. Longer is how much longer than the arm's window theirs is;
// with Never they are kept for ever, and are neither held nor due.
type StateGroup struct {
	States []Value
	Longer time.Duration
	Never  bool
}

// CountsHeld reports whether the arm examines rows that the guard protects. An arm through an index that holds, or leads
// with, terminal states sees none, so its held is not zero but unknown.
func (a Arm) CountsHeld() bool {
	settled := func(m Match) bool { return a.State != nil && m.Column == a.State.Column }
	return a.Owner != nil || a.Owed != nil || a.Hold != "" || a.State != nil && !slices.ContainsFunc(a.Within, settled)
}

// Parents reports whether the arm examines parents: rows that can be kept by, or take along, rows of other tables that refer
// to them.
func (a Arm) Parents() bool { return a.Owed != nil || len(a.Children) > 0 }

// In reports whether a row with these columns is in the arm: its equalities and the conditions that the index settles.
// Rows outside of it are not examined.
func (a Arm) In(columns map[string]Value) bool {
	return !slices.ContainsFunc(a.Equal, func(e Equal) bool { return columns[e.Column] != e.Value }) &&
		!slices.ContainsFunc(a.Within, func(m Match) bool { return !m.Matches(columns[m.Column]) })
}

// Index is what the choice of arms needs to know of an index.
type Index struct {
	Name    string
	Columns []string // its key columns in order; an expression is ""
	Where   []string // the columns that the predicate of a partial index is about
	Expiry  int      // which of Columns, counted from 1, is a row's age and its own window added up; 0: none
}

// Arms cuts the sweep into arms through the index. An index serves when its first columns are scalar equalities, in any
// order, and then the age: equalities of Only give one arm (age-led); with the column of the state guard among them there
// is one arm a terminal state (state-led). It returns nil where the index does not serve. Whether the predicate of a
// partial index follows from what the arm asks for is the planner's to prove.
//
// A condition that the index does not settle is tested inside the range, like a guard: as part of the range it would have
// to be searched for, and a batch would read without a bound.
//
// Rows with a window of their own, where the sweep has an Own, are not in these arms but in those of [Sweep.OwnArms].
func (s Sweep) Arms(ix Index) []Arm {
	base := Arm{Name: s.Name, Window: s.Shortest()}
	var part []Match
	if s.Own != nil {
		part = []Match{{Column: s.Own.Column, Values: []Value{Null}}}
	}
	return s.armsFrom(ix, slices.Index(ix.Columns, s.Age), base, part)
}

// OwnArms cuts what Arms leaves out: the rows with a window of their own. They are examined from where the window of each
// ends, through an index that has that expiry, or from the floor on, through one that has the age.
func (s Sweep) OwnArms(ix Index) []Arm {
	if s.Own == nil {
		return nil
	}
	floor := s.WithDefaults().Floor
	base := Arm{Name: s.Name + " own window", Window: Window{int64(floor / time.Second)}, Own: &OwnTest{*s.Own, floor}}
	at := slices.Index(ix.Columns, s.Age)
	if ix.Expiry > 0 {
		at, base.Expiry, base.Window = ix.Expiry-1, true, AtOnce
	}
	return s.armsFrom(ix, at, base, []Match{{Column: s.Own.Column, Values: []Value{Null}, Not: true}})
}

// armsFrom cuts a part of the sweep through the index whose range is in its column at.
func (s Sweep) armsFrom(ix Index, at int, base Arm, part []Match) []Arm {
	if at < 0 {
		return nil
	}
	leading := ix.Columns[:at]
	byState := false
	for _, c := range leading {
		switch {
		case slices.ContainsFunc(s.Only, func(m Match) bool { return m.Column == c && m.Scalar() }):
		case s.Guard.State != nil && s.Guard.State.Column == c:
			byState = true
		default:
			return nil
		}
	}
	base.Hold, base.Owner, base.Owed, base.Children = s.Guard.Hold, s.Guard.Owner, s.Guard.Owed, s.Children
	for _, m := range s.Only {
		switch {
		case m.Scalar() && slices.Contains(leading, m.Column):
			base.Equal = append(base.Equal, Equal{m.Column, m.Values[0]})
		case m.plain() && slices.Contains(ix.Where, m.Column):
			base.Within = append(base.Within, m)
		default:
			base.Only = append(base.Only, m)
		}
	}
	for _, m := range part {
		if slices.Contains(ix.Where, m.Column) {
			base.Within = append(base.Within, m)
		} else {
			base.Part = append(base.Part, m)
		}
	}
	if byState {
		return s.stateArms(base)
	}
	if g := s.Guard.State; g != nil {
		settled := slices.Contains(ix.Where, g.Column)
		if settled {
			base.Within = append(base.Within, Match{Column: g.Column, Values: g.Terminal})
		}
		switch {
		case base.Own != nil && !settled:
			base.State = &StateTest{Column: g.Column, Groups: []StateGroup{{States: g.Terminal}}}
		case base.Own == nil && (!settled || s.UnequalWindows()):
			base.State = &StateTest{Column: g.Column, Groups: s.groups()}
		}
	}
	return []Arm{base}
}

func (s Sweep) stateArms(base Arm) []Arm {
	var arms []Arm
	for _, v := range s.Guard.State.Terminal {
		a := base
		a.Name = fmt.Sprintf("%s %s", base.Name, v)
		if base.Own == nil {
			a.Window = s.WindowOf(v)
		}
		a.Equal = append(slices.Clone(base.Equal), Equal{s.Guard.State.Column, v})
		arms = append(arms, a)
	}
	return arms
}

// groups puts terminal states of one window together, in the order in which they are declared.
func (s Sweep) groups() []StateGroup {
	var gs []StateGroup
	shortest := s.Shortest()
	for _, v := range s.Guard.State.Terminal {
		w := s.WindowOf(v)
		g := StateGroup{States: []Value{v}, Never: w.IsNever()}
		if !g.Never {
			g.Longer = w.Duration() - shortest.Duration()
		}
		if i := slices.IndexFunc(gs, func(o StateGroup) bool { return o.Longer == g.Longer && o.Never == g.Never }); i >= 0 {
			gs[i].States = append(gs[i].States, v)
		} else {
			gs = append(gs, g)
		}
	}
	return gs
}

// WantedIndex lists the leading columns of the index that would serve the sweep best: the equalities of Only and the age,
// or the state and the age where states have windows of their own.
func (s Sweep) WantedIndex() []string {
	var cols []string
	for _, m := range s.Only {
		if m.Scalar() {
			cols = append(cols, m.Column)
		}
	}
	if s.UnequalWindows() {
		cols = append(cols, s.Guard.State.Column)
	}
	return append(cols, s.Age)
}

// UnequalWindows reports whether terminal states have windows that differ, so that a pass through an age-led index reads
// rows in vain.
func (s Sweep) UnequalWindows() bool {
	return s.Guard.State != nil && slices.ContainsFunc(s.ByState, func(w StateWindow) bool { return w.Window != s.ByState[0].Window })
}

// String is the arm for a log line.
func (a Arm) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (window %s", a.Name, a.Window)
	for _, e := range a.Equal {
		fmt.Fprintf(&b, ", %s = %s", e.Column, e.Value)
	}
	return b.String() + ")"
}
