package explaintest

import (
	"slices"
	"strings"
)

// side is a part of a statement that changes rows.
type side int

const (
	bothSides side = iota
	deleteSide
	readSide
)

// scope says which scans a rule is about.
type scope struct {
	relation Name // of any relation if zero
	alias    string
	cte      string
	side     side
}

// scans lists the scans in the scope.
func (s scope) scans(p *Plan) (scans []*Node) {
	p.Walk(func(n *Node, above []*Node) {
		switch {
		case !n.scan():
		case s.relation != Name{} && !p.Catalog.isTable(s.relation, n.name()):
		case s.alias != "" && !sameAlias(s.alias, n.Alias):
		case s.cte != "" && !within(n, above, s.cte):
		case s.side == deleteSide && !changed(n, above), s.side == readSide && changed(n, above):
		default:
			scans = append(scans, n)
		}
	})
	return scans
}

func (n *Node) name() Name { return Name{n.Schema, n.Relation} }

// sameAlias takes d_1 for d: EXPLAIN numbers an alias that is used twice, as partitions use it.
func sameAlias(want, is string) bool {
	rest, ok := strings.CutPrefix(is, want)
	if ok && rest != "" {
		rest, ok = strings.CutPrefix(rest, "_")
		ok = ok && rest != "" && strings.Trim(rest, "0123456789") == ""
	}
	return ok
}

// within says whether the node is in the plan of a WITH query.
func within(n *Node, above []*Node, cte string) bool {
	in := func(n *Node) bool {
		kind, name := n.Subplan()
		return kind == "CTE" && name == cte
	}
	return in(n) || slices.ContainsFunc(above, in)
}

// changed says whether the node finds the rows that a DELETE, UPDATE or MERGE above it changes. EXPLAIN gives each use of a
// table in a statement an alias of its own.
func changed(n *Node, above []*Node) bool {
	return slices.ContainsFunc(above, func(m *Node) bool {
		if m.Type != "ModifyTable" || m.Operation == "Insert" {
			return false
		}
		if len(m.Targets) == 0 {
			return m.Relation == n.Relation && m.Alias == n.Alias
		}
		return slices.ContainsFunc(m.Targets, func(t Target) bool { return t.Relation == n.Relation && t.Alias == n.Alias })
	})
}

// String is the scope in words.
func (s scope) String() string {
	words := s.relation.String()
	if s.alias != "" {
		words += " " + s.alias
	}
	if s.cte != "" {
		words += " in WITH " + s.cte
	}
	switch s.side {
	case deleteSide:
		words += " on the delete side"
	case readSide:
		words += " on the read side"
	}
	return strings.TrimSpace(words)
}

// none is the fault of a rule about scans that are not there.
func (s scope) none(p *Plan) Fault {
	f := Fault{Problem: "the plan does not read " + s.String()}
	var there []string
	p.Walk(func(n *Node, _ []*Node) {
		if n.scan() && !slices.Contains(there, n.name().String()) {
			there = append(there, n.name().String())
		}
	})
	f.Look = "it reads " + strings.Join(there, ", ") + ": is the name right, and does the statement have the part that is meant"
	if len(there) == 0 {
		f.Look = "it reads no table at all: a condition that is known to be false, or partitions that are all pruned, leave nothing to read"
	}
	return f
}
