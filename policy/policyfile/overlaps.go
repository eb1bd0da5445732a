package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// overlaps holds sweeps on one table against each other. Two of them are an accident as often as a plan, so the later
// names each earlier one, unless both go by states of one column that have none in common.
func (r *reader) overlaps(sweeps []sweepAt) {
	for i, s := range sweeps {
		var missing, lines []string
		for _, before := range sweeps[:i] {
			if s.Table.IsZero() || before.Table != s.Table || slices.Contains(s.Overlaps, before.Name) ||
				r.disjoint(s.Sweep, before.Sweep) {
				continue
			}
			missing = append(missing, before.Name)
			lines = append(lines, fmt.Sprintf("%s (line %d)", before.Name, before.at.line))
		}
		r.overlapNames(s, sweeps, i)
		p := path{sweep: s.Name}
		if len(missing) == 0 || r.broken.has(p.child("overlaps")) {
			continue
		}
		verb, which := "sweep %s removes", "either"
		if len(missing) > 1 {
			verb, which = "sweeps %s remove", "any of them"
		}
		r.fail(s.at, p, verb+" from the same table; say overlaps: [%s] if a row may go by %s",
			strings.Join(lines, ", "), strings.Join(append(slices.Clone(s.Overlaps), missing...), ", "), which)
	}
}

// overlapNames checks the names that a sweep gives in overlaps.
func (r *reader) overlapNames(s sweepAt, sweeps []sweepAt, i int) {
	p := path{s.Name, "overlaps"}
	if s.overlaps == nil {
		return
	}
	for k, item := range s.overlaps.items {
		if item.kind != scalar || item.typ() != text {
			continue
		}
		name := item.text
		j := slices.IndexFunc(sweeps, func(o sweepAt) bool { return o.Name == name })
		switch {
		case slices.ContainsFunc(s.overlaps.items[:k], func(o *node) bool { return o.text == name }):
			r.fail(item.at, p, "%q stands twice", name)
		case name == s.Name:
			r.fail(item.at, p, "a sweep does not overlap itself; name earlier sweeps on the same table")
		case j < 0:
			r.fail(item.at, p, "there is no sweep %q%s", name, suggestion(name, sweeps[:i]))
		case j > i:
			r.fail(item.at, p, "sweep %s comes later; say overlaps: [%s] there", name, s.Name)
		case !s.Table.IsZero() && !sweeps[j].Table.IsZero() && s.Table != sweeps[j].Table:
			r.fail(item.at, p, "sweep %s removes from another table, %s; leave it out", name, sweeps[j].Table)
		}
	}
}

func suggestion(name string, sweeps []sweepAt) string {
	var all []string
	for _, s := range sweeps {
		all = append(all, s.Name)
	}
	if near, ok := closest(name, all); ok {
		return "; did you mean " + near + "?"
	}
	return "; name earlier sweeps on the same table"
}

// disjoint reports whether no row can go by both: they go by states of one column that have none in common. A guard that
// could not be read is left to the message that says so.
func (r *reader) disjoint(a, b policy.Sweep) bool {
	for _, key := range []string{"guard", "guard.state", "guard.terminal"} {
		if r.broken.has(path{a.Name, key}) || r.broken.has(path{b.Name, key}) {
			return true
		}
	}
	ga, gb := a.Guard.State, b.Guard.State
	if ga == nil || gb == nil || ga.Column == "" || ga.Column != gb.Column {
		return false
	}
	return !slices.ContainsFunc(ga.Terminal, func(v policy.Value) bool {
		return slices.ContainsFunc(gb.Terminal, func(o policy.Value) bool { return o.String() == v.String() })
	})
}
