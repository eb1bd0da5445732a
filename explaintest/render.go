package explaintest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String prints the plan much as EXPLAIN does.
func (p *Plan) String() string { return p.render(nil) }

// render prints the plan with the numbers of the faults before the nodes that have them.
func (p *Plan) render(marks map[*Node][]int) string {
	var s strings.Builder
	margin := ""
	for _, ns := range marks {
		for _, n := range ns {
			margin = strings.Repeat(" ", max(len(margin), len(mark(n))))
		}
	}
	line := func(numbers []int, text string) {
		if len(numbers) == 0 {
			fmt.Fprintf(&s, "%s%s\n", margin, text)
			return
		}
		for i, n := range numbers {
			if i == len(numbers)-1 {
				fmt.Fprintf(&s, "%-*s%s\n", len(margin), mark(n), text)
			} else {
				fmt.Fprintf(&s, "%s\n", strings.TrimSpace(mark(n)))
			}
		}
	}
	p.Walk(func(n *Node, above []*Node) {
		indent := strings.Repeat("      ", len(above))
		arrow := "->  "
		if len(above) == 0 {
			arrow = ""
		}
		if n.SubplanName != "" {
			line(nil, strings.TrimPrefix(indent, "    ")+n.SubplanName)
		}
		line(marks[n], strings.TrimPrefix(indent, "    ")+arrow+n.title(p))
		for _, d := range n.details(p) {
			line(nil, indent+"  "+d)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		line(nil, fmt.Sprintf("Setting: %s = %s", name, p.Settings[name]))
	}
	return strings.TrimRight(s.String(), "\n")
}

func mark(n int) string { return fmt.Sprintf("[%d]> ", n) }

// title is the node's line.
func (n *Node) title(p *Plan) string {
	var s strings.Builder
	switch {
	case n.Type == "ModifyTable" && n.Operation != "":
		s.WriteString(n.Operation)
	case n.Type == "Aggregate":
		s.WriteString(map[string]string{"Hashed": "HashAggregate", "Sorted": "GroupAggregate", "Mixed": "MixedAggregate"}[n.Strategy])
		if s.Len() == 0 {
			s.WriteString("Aggregate")
		}
	default:
		if n.Parallel {
			s.WriteString("Parallel ")
		}
		s.WriteString(n.Type)
	}
	if n.JoinType != "" && n.JoinType != "Inner" {
		fmt.Fprintf(&s, " (%s)", n.JoinType)
	}
	if n.Index != "" {
		word := "using"
		if n.Type == "Bitmap Index Scan" {
			word = "on"
		}
		fmt.Fprintf(&s, " %s %s", word, n.Index)
	}
	on := cmp.Or(n.name().String(), n.CTEName, n.Function, n.Alias)
	if on != "" {
		s.WriteString(" on " + on)
	}
	if n.Alias != n.Relation && n.Alias != on && n.Alias != "" {
		s.WriteString(" " + n.Alias)
	}
	fmt.Fprintf(&s, "  (cost=%.2f rows=%.0f)", n.TotalCost, n.PlanRows)
	switch {
	case p.Analyzed && n.Loops == 0:
		s.WriteString(" (never executed)")
	case p.Analyzed:
		fmt.Fprintf(&s, " (actual rows=%s loops=%.0f)", strings.TrimSuffix(fmt.Sprintf("%.2f", n.ActualRows), ".00"), n.Loops)
	}
	return s.String()
}

// details are the lines below a node.
func (n *Node) details(p *Plan) (lines []string) {
	for _, d := range []struct{ name, text string }{
		{"Index Cond", n.IndexCond}, {"Recheck Cond", n.RecheckCond}, {"TID Cond", n.TIDCond}, {"Hash Cond", n.HashCond}, {"Merge Cond", n.MergeCond},
		{"Join Filter", n.JoinFilter}, {"Filter", n.Filter}, {"One-Time Filter", n.OneTimeFilter}, {"Sort Key", strings.Join(n.SortKey, ", ")},
	} {
		if d.text != "" {
			lines = append(lines, d.name+": "+d.text)
		}
	}
	for _, d := range []struct {
		name string
		rows float64
	}{{"Filter", n.RemovedByFilter}, {"Join Filter", n.RemovedByJoinFilter}, {"Index Recheck", n.RemovedByRecheck}} {
		if d.rows > 0 {
			lines = append(lines, fmt.Sprintf("Rows Removed by %s: %.0f", d.name, d.rows))
		}
	}
	if p.Buffered && n.buffers() > 0 {
		lines = append(lines, fmt.Sprintf("Buffers: shared hit=%d read=%d", n.SharedHit, n.SharedRead))
	}
	return lines
}
