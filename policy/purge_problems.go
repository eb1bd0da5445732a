package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Problems lists every fault of the purge that can be seen without a database; none means that it may be used.
func (p Purge) Problems() []Problem {
	p = p.WithDefaults()
	var ps []Problem
	add := func(key, fix, format string, args ...any) {
		ps = append(ps, Problem{Key: key, What: fmt.Sprintf(format, args...), Fix: fix})
	}
	if !sweepName.MatchString(p.Name) {
		add("", "write a lower-case letter, then letters, digits and _, 48 at most", "%q is no name of a purge", p.Name)
	}
	p.tableProblems(add)
	p.childProblems(add)
	p.excludeProblems(add)
	p.setProblems(add)
	ps = append(ps, p.boundProblems()...)
	slices.SortStableFunc(ps, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return ps
}

// tableProblems are those of the tables themselves. A table may stand twice: a message has a sender and a receiver.
func (p Purge) tableProblems(add adder) {
	if len(p.Tables) == 0 {
		add("tables", "list the tables that hold the rows of a tenant", "there is no table")
	}
	var ownerless []string
	for i, t := range p.Tables {
		key := fmt.Sprintf("tables.%d", i)
		switch {
		case t.Table.Table == "":
			add(key+".table", "", "no table is named")
			continue
		case t.Table.Schema == "":
			add(key+".table", "write schema.table", "%q has no schema", t.Table.Table)
		}
		switch {
		case t.Column == "":
			if name := t.Table.String(); !slices.Contains(ownerless, name) {
				ownerless = append(ownerless, name)
			}
		case slices.ContainsFunc(p.Tables[:i], func(o PurgeTable) bool { return o.Table == t.Table && o.Column == t.Column }):
			add(key, "keep one of them", "%s stands twice with column %s", t.Table, t.Column)
		}
	}
	if len(ownerless) > 0 {
		add("key", "name it here for all tables, or as the column of each", "no column says whose the rows of %s are", strings.Join(ownerless, ", "))
	}
}

// childProblems are those of the tables below others.
func (p Purge) childProblems(add adder) {
	p.eachChild(func(key string, before []Child, c Child) {
		referenceProblems(add, key, c.Table, c.Key)
		if p.hasTable(c.Table) {
			add(key+".table", "keep one of them: a row goes by a column of its own, or else by the row that it refers to", "%s is in tables already", c.Table)
		}
		if slices.ContainsFunc(before, c.same) {
			add(key, "keep one of them", "%s stands twice with this key", c.Table)
		}
	})
}

// eachChild goes through the children of all tables; before are those that stand beside the child and before it.
func (p Purge) eachChild(f func(key string, before []Child, c Child)) {
	var walk func(prefix string, children []Child)
	walk = func(prefix string, children []Child) {
		for i, c := range children {
			key := fmt.Sprintf("%s.%d", prefix, i)
			f(key, children[:i], c)
			walk(key+".children", c.Children)
		}
	}
	for i, t := range p.Tables {
		walk(fmt.Sprintf("tables.%d.children", i), t.Children)
	}
}

// hasTable reports whether the rows of a table go by a column of its own.
func (p Purge) hasTable(n Name) bool {
	return n.Table != "" && slices.ContainsFunc(p.Tables, func(t PurgeTable) bool { return t.Table == n })
}

// excludeProblems are those of the tables that keep their rows.
func (p Purge) excludeProblems(add adder) {
	var below []Name
	p.eachChild(func(_ string, _ []Child, c Child) { below = append(below, c.Table) })
	for i, e := range p.Exclude {
		key := "exclude." + e.Table.String()
		switch {
		case e.Table.Table == "":
			add("exclude", "", "no table is named")
			continue
		case e.Table.Schema == "":
			add(key, "write schema.table", "%q has no schema", e.Table.Table)
		case slices.ContainsFunc(p.Exclude[:i], func(o Exclusion) bool { return o.Table == e.Table }):
			add(key, "keep one of them", "%s stands twice", e.Table)
		case p.hasTable(e.Table):
			add(key, "keep one of them: its rows go, or they stay", "%s is in tables already", e.Table)
		case slices.Contains(below, e.Table):
			add(key, "keep one of them: its rows go, or they stay", "%s is in children already", e.Table)
		}
		if strings.TrimSpace(e.Reason) == "" {
			add(key, "write why its rows stay; the receipt repeats it", "no reason is given")
		}
	}
}

// setProblems are what a sweep may set and a purge may not.
func (p Purge) setProblems(add adder) {
	for _, s := range p.Set {
		if s.Name == "row_security" {
			add("set."+s.Name, "leave it out", "a purge has to see every row, so row_security is set by prunectl in each batch")
		}
	}
}

// boundProblems are those of a batch, which is bounded as that of a sweep is.
func (p Purge) boundProblems() []Problem {
	s := Sweep{Batch: p.Batch, Timeouts: p.Timeouts, Pause: p.Pause, Set: p.Set}
	return slices.DeleteFunc(s.Problems(), func(pr Problem) bool {
		key, _, _ := strings.Cut(pr.Key, ".")
		return !slices.Contains([]string{"batch", "timeouts", "pause", "set"}, key)
	})
}
