package explaintest

import "fmt"

// PlanRule is made by [MaxBuffers] and [NoJIT].
type PlanRule struct {
	words string
	check func(*Plan) []Fault
}

// MaxBuffers holds that the statement looks at no more than n shared buffers, as [Plan.Buffers] counts them. It must have been
// executed. Unlike a time it is the same on every machine; what one reads first in a session, or after many dead rows, may
// differ by a few.
func MaxBuffers(n int) PlanRule {
	return PlanRule{fmt.Sprintf("at most %d shared buffers", n), func(p *Plan) []Fault {
		switch got := p.Buffers(); {
		case !p.Analyzed:
			return []Fault{notExecuted}
		case !p.Buffered:
			return []Fault{{Problem: "buffers were not counted", Look: "explain the statement with BUFFERS"}}
		case got <= int64(n):
			return nil
		default:
			most := p.Root
			p.Walk(func(m *Node, _ []*Node) {
				if m.own() > most.own() {
					most = m
				}
			})
			return []Fault{{most, fmt.Sprintf("%d shared buffers, %d of them here", got, most.own()),
				"does this node read more than the statement needs: rows removed by a filter, an unbounded index, dead rows that vacuum has not taken, heap fetches of an index-only scan, a table not vacuumed since it was filled"}}
		}
	}}
}

// NoJIT holds that the plan is not compiled. With jit on, as the server ships, that takes half a second for each execution of
// a statement whose estimated cost is high enough, whatever it really costs.
func NoJIT() PlanRule {
	return PlanRule{"no JIT compilation", func(p *Plan) []Fault {
		if !p.JIT {
			return nil
		}
		return []Fault{{p.Root, fmt.Sprintf("the plan is compiled, since its estimated cost is %.0f", p.Root.TotalCost),
			"SET LOCAL jit = off in the statement's transaction, or an estimate below jit_above_cost"}}
	}}
}

// String is the rule in words.
func (r PlanRule) String() string { return r.words }

// Check is a Rule's.
func (r PlanRule) Check(p *Plan) []Fault { return r.check(p) }
