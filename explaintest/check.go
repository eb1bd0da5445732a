package explaintest

import (
	"errors"
	"fmt"
	"strings"
)

// Rule is something that a plan must keep.
type Rule interface {
	String() string      // the rule in a few words, for messages
	Check(*Plan) []Fault // where the plan breaks it
}

// Fault is one place where a plan breaks a rule.
type Fault struct {
	Node    *Node  // nil for the plan as a whole
	Problem string // what is wrong there
	Look    string // what to look at
}

// Broken is the error for a plan that breaks rules.
type Broken struct {
	Plan  *Plan
	Rules []BrokenRule
}

// BrokenRule is a rule with its faults, of which there is at least one.
type BrokenRule struct {
	Rule   Rule
	Faults []Fault
}

// Check holds a plan to rules. The error is a [*Broken] that prints the plan with the nodes at fault marked; to check nothing
// is an error too.
func Check(p *Plan, rules ...Rule) error {
	if len(rules) == 0 {
		return errors.New("check of a plan: no rule is given")
	}
	if p == nil || p.Root == nil {
		return errors.New("check of a plan: there is no plan")
	}
	b := &Broken{Plan: p}
	for _, r := range rules {
		if fs := r.Check(p); len(fs) > 0 {
			b.Rules = append(b.Rules, BrokenRule{r, fs})
		}
	}
	if len(b.Rules) == 0 {
		return nil
	}
	return b
}

// TB is what [Assert] needs of a *testing.T.
type TB interface {
	Helper()
	Error(args ...any)
}

// Assert fails the test where the plan breaks a rule.
func Assert(t TB, p *Plan, rules ...Rule) {
	t.Helper()
	if err := Check(p, rules...); err != nil {
		t.Error(err)
	}
}

// Error names each broken rule with its faults, numbered, and prints the plan with these numbers before the nodes.
func (b *Broken) Error() string {
	var s strings.Builder
	marks := map[*Node][]int{}
	number := 0
	if len(b.Rules) == 1 {
		s.WriteString("the plan breaks a rule")
	} else {
		fmt.Fprintf(&s, "the plan breaks %d rules", len(b.Rules))
	}
	for _, r := range b.Rules {
		fmt.Fprintf(&s, "\n%s", r.Rule)
		for _, f := range r.Faults {
			number++
			fmt.Fprintf(&s, "\n  [%d] %s", number, f.Problem)
			if f.Look != "" {
				fmt.Fprintf(&s, "\n      look at this: %s", f.Look)
			}
			marks[f.Node] = append(marks[f.Node], number)
		}
	}
	s.WriteString("\n\n")
	s.WriteString(b.Plan.render(marks))
	return s.String()
}
