package explaintest

import "strings"

// Plan is one statement's plan.
type Plan struct {
	Root     *Node
	Analyzed bool              // the statement was executed: rows, loops and what filters removed are counted
	Buffered bool              // buffers were counted too
	JIT      bool              // expressions of the plan are compiled
	Settings map[string]string // planner settings that differ from the defaults, where EXPLAIN was asked for them
	Triggers []Trigger
	Catalog  Catalog // what the plan's text does not say; a plan parsed from text alone has none
}

// Trigger is a trigger that the statement fired. What it reads is in no node of the plan.
type Trigger struct {
	Name       string  `json:"Trigger Name"`
	Constraint string  `json:"Constraint Name"`
	Relation   string  `json:"Relation"`
	Calls      float64 `json:"Calls"`
}

// Node is one node of a plan. Texts are as the server writes them; a field that it left out is zero.
// Rows are a mean over the loops, and fractions from PostgreSQL 18 on. Buffers are in blocks and include those below.
type Node struct {
	Type         string   `json:"Node Type"` // "Index Scan"; "ModifyTable" for DELETE and its like
	Operation    string   `json:"Operation"` // of a ModifyTable: "Delete"
	Strategy     string   `json:"Strategy"`
	Relationship string   `json:"Parent Relationship"` // "Outer", "Inner", "Member", "Subquery", "InitPlan", "SubPlan"
	JoinType     string   `json:"Join Type"`
	Schema       string   `json:"Schema"` // only where EXPLAIN was VERBOSE
	Relation     string   `json:"Relation Name"`
	Alias        string   `json:"Alias"`
	Targets      []Target `json:"Target Tables"` // of a ModifyTable on partitions
	Index        string   `json:"Index Name"`
	CTEName      string   `json:"CTE Name"` // of a CTE Scan: what it reads
	Function     string   `json:"Function Name"`
	SubplanName  string   `json:"Subplan Name"` // differs between versions: see Subplan
	Parallel     bool     `json:"Parallel Aware"`

	IndexCond     string   `json:"Index Cond"`
	RecheckCond   string   `json:"Recheck Cond"`
	TIDCond       string   `json:"TID Cond"`
	Filter        string   `json:"Filter"`
	JoinFilter    string   `json:"Join Filter"`
	HashCond      string   `json:"Hash Cond"`
	MergeCond     string   `json:"Merge Cond"`
	OneTimeFilter string   `json:"One-Time Filter"`
	SortKey       []string `json:"Sort Key"`

	StartupCost         float64 `json:"Startup Cost"`
	TotalCost           float64 `json:"Total Cost"`
	PlanRows            float64 `json:"Plan Rows"`
	ActualRows          float64 `json:"Actual Rows"`
	Loops               float64 `json:"Actual Loops"` // zero: never executed
	RemovedByFilter     float64 `json:"Rows Removed by Filter"`
	RemovedByJoinFilter float64 `json:"Rows Removed by Join Filter"`
	RemovedByRecheck    float64 `json:"Rows Removed by Index Recheck"`
	SharedHit           int64   `json:"Shared Hit Blocks"`
	SharedRead          int64   `json:"Shared Read Blocks"`
	WALBytes            float64 `json:"WAL Bytes"`

	Children []*Node `json:"Plans"`
}

// Target is a table that a ModifyTable changes.
type Target struct {
	Schema   string `json:"Schema"`
	Relation string `json:"Relation Name"`
	Alias    string `json:"Alias"`
}

// Walk calls f for each node, from the root down, with the nodes above it, the root first. The slice is f's only until it returns.
func (p *Plan) Walk(f func(n *Node, above []*Node)) { p.Root.walk(nil, f) }

func (n *Node) walk(above []*Node, f func(*Node, []*Node)) {
	if n == nil {
		return
	}
	f(n, above)
	above = append(above, n)
	for _, c := range n.Children {
		c.walk(above, f)
	}
}

// Relation lists the scans of a relation and of its partitions: nodes that find rows of it, so not a ModifyTable, and of a
// bitmap scan the node on the heap. The name is as for [ParseName].
func (p *Plan) Relation(relation string) []*Node {
	return scope{relation: ParseName(relation)}.scans(p)
}

// CTE is the root of the plan of a WITH query that was not folded into the rest, else nil.
func (p *Plan) CTE(name string) (cte *Node) {
	p.Walk(func(n *Node, _ []*Node) {
		if kind, of := n.Subplan(); cte == nil && kind == "CTE" && of == name {
			cte = n
		}
	})
	return cte
}

// Subplan is what a subplan's root is called, the same in every version: ("CTE", its name), ("InitPlan", its number) or
// ("SubPlan", its number). Other nodes have none.
func (n *Node) Subplan() (kind, name string) {
	kind, rest, _ := strings.Cut(n.SubplanName, " ")
	if kind == "CTE" {
		return kind, rest // the name of a CTE may hold anything
	}
	name, _, _ = strings.Cut(rest, " ") // up to 16: InitPlan 1 (returns $0)
	return kind, name
}

// scan says whether the node finds rows of a relation.
func (n *Node) scan() bool { return n.Relation != "" && n.Type != "ModifyTable" }

// buffers are the shared blocks that the node looked at, with those below it.
func (n *Node) buffers() int64 { return n.SharedHit + n.SharedRead }

// own is what the node itself looked at.
func (n *Node) own() int64 {
	b := n.buffers()
	for _, c := range n.Children {
		if kind, _ := c.Subplan(); kind != "CTE" { // a CTE runs within its readers
			b -= c.buffers()
		}
	}
	return max(b, 0)
}

// Buffers is the number of shared blocks that executing the statement looked at, in memory or not. It includes data-modifying
// WITH queries that nobody reads, which the root does not. Planning, triggers and foreign keys are not in a plan.
func (p *Plan) Buffers() int64 {
	return int64(p.total(func(n *Node) float64 { return float64(n.buffers()) }))
}

// WALBytes is what executing the statement wrote to the log, where EXPLAIN was asked for it, counted as by Buffers.
func (p *Plan) WALBytes() float64 { return p.total(func(n *Node) float64 { return n.WALBytes }) }

// total adds to the root what data-modifying WITH queries did after it: they run to their end, whether or not their rows
// are read, and only what their readers pulled is counted above.
func (p *Plan) total(of func(*Node) float64) float64 {
	sum := of(p.Root)
	p.Walk(func(n *Node, _ []*Node) {
		kind, name := n.Subplan()
		if kind != "CTE" || n.Type != "ModifyTable" {
			return
		}
		late := of(n)
		p.Walk(func(m *Node, _ []*Node) {
			if m.Type == "CTE Scan" && m.CTEName == name {
				late -= of(m)
			}
		})
		sum += max(late, 0)
	})
	return sum
}
