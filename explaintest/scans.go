package explaintest

import (
	"fmt"
	"slices"
	"strings"
)

// ScanRule is made by [NodeType], [NoSeqScan], [NoSort] and [MaxRowsRemovedByFilter].
type ScanRule struct {
	scope scope
	words func(scope) string
	check func(*Plan, scope) []Fault
}

// NodeType holds that each scan of a relation is of one of these types, as EXPLAIN names them: "Tid Scan".
func NodeType(relation string, types ...string) ScanRule {
	return ScanRule{
		scope: scope{relation: ParseName(relation)},
		words: func(s scope) string { return fmt.Sprintf("%s is read by a %s", s, strings.Join(types, " or ")) },
		check: eachScan(func(p *Plan, n *Node) *Fault {
			if slices.Contains(types, n.Type) {
				return nil
			}
			return &Fault{n, fmt.Sprintf("%s is read by a %s", n.name(), n.Type), nodeLook(p, n, types)}
		}),
	}
}

func nodeLook(p *Plan, n *Node, types []string) string {
	if slices.Contains(types, "Tid Scan") {
		return "ctid IN (SELECT ...) is a join, which may read the table whole; ctid = ANY (ARRAY(SELECT ...)) goes to each row by its address"
	}
	return p.whyNot(n, Name{})
}

// NoSeqScan holds that nothing reads the relation, or one of its partitions, whole. An index may be read whole too: see
// [UsesIndex].
func NoSeqScan(relation string) ScanRule {
	return ScanRule{
		scope: scope{relation: ParseName(relation)},
		words: func(s scope) string { return fmt.Sprintf("no Seq Scan of %s", s) },
		check: eachScan(func(p *Plan, n *Node) *Fault {
			if n.Type != "Seq Scan" {
				return nil
			}
			return &Fault{n, fmt.Sprintf("%s is read whole", n.name()), p.whyNot(n, Name{})}
		}),
	}
}

// NoSort holds that nothing is sorted; narrowed to a relation, that none of its rows are. What an index gives in order is not
// sorted, and a LIMIT above it ends the reading.
func NoSort() ScanRule {
	return ScanRule{
		words: func(s scope) string { return strings.TrimSpace("no Sort " + about("of", s)) },
		check: func(p *Plan, s scope) (fs []Fault) {
			var in []*Node
			if s != (scope{}) {
				if in = s.scans(p); len(in) == 0 {
					return []Fault{s.none(p)}
				}
			}
			p.Walk(func(n *Node, _ []*Node) {
				if n.Type != "Sort" && n.Type != "Incremental Sort" {
					return
				}
				what := "rows are"
				if in != nil {
					i := slices.IndexFunc(in, func(scan *Node) bool { return p.feeds(scan, n, map[*Node]bool{}) })
					if i < 0 {
						return
					}
					what = in[i].name().String() + " is"
				}
				fs = append(fs, Fault{n, fmt.Sprintf("%s sorted by %s", what, strings.Join(n.SortKey, ", ")),
					"everything below is read before the first row comes out, whatever the LIMIT: does an index have this order, with equalities on the columns before, and the same directions and nulls"})
			})
			return fs
		},
	}
}

// feeds says whether rows of the scan come to n, through the WITH queries that are read on the way. Nodes in seen were
// looked at and led nowhere, or are being looked at: a recursive query reads itself.
func (p *Plan) feeds(scan, n *Node, seen map[*Node]bool) bool {
	if scan == n {
		return true
	}
	if seen[n] {
		return false
	}
	seen[n] = true
	if n.Type == "CTE Scan" {
		if cte := p.CTE(n.CTEName); cte != nil && p.feeds(scan, cte, seen) {
			return true
		}
	}
	return slices.ContainsFunc(n.Children, func(c *Node) bool { return c.SubplanName == "" && p.feeds(scan, c, seen) })
}

// MaxRowsRemovedByFilter holds that filters throw away at most n rows in all: rows that were read for nothing. Conditions on
// joins count too, and the statement must have been executed. The server prints a rounded mean over the loops of a node.
func MaxRowsRemovedByFilter(n int) ScanRule {
	return ScanRule{
		words: func(s scope) string {
			return strings.TrimSpace(fmt.Sprintf("at most %d rows removed by filters %s", n, about("on", s)))
		},
		check: func(p *Plan, s scope) (fs []Fault) {
			if !p.Analyzed {
				return []Fault{notExecuted}
			}
			var in []*Node
			if s != (scope{}) {
				if in = s.scans(p); len(in) == 0 {
					return []Fault{s.none(p)}
				}
			}
			sum := 0.0
			p.Walk(func(m *Node, _ []*Node) {
				if in != nil && !slices.Contains(in, m) {
					return
				}
				if rows := (m.RemovedByFilter + m.RemovedByJoinFilter) * m.Loops; rows > 0 {
					sum += rows
					filter := m.Filter
					if m.RemovedByFilter == 0 {
						filter = m.JoinFilter
					}
					fs = append(fs, Fault{m, fmt.Sprintf("%.0f rows were read and removed by %s", rows, filter), "could the index settle that condition, or the statement examine a bounded range"})
				}
			})
			if sum <= float64(n) {
				return nil
			}
			return fs
		},
	}
}

func about(word string, s scope) string {
	if s == (scope{}) {
		return ""
	}
	return word + " " + s.String()
}

var notExecuted = Fault{Problem: "the statement was not executed, so nothing was counted", Look: "explain it with ANALYZE and BUFFERS: in pgxplan that is Analyze: true"}

func eachScan(f func(*Plan, *Node) *Fault) func(*Plan, scope) []Fault {
	return func(p *Plan, s scope) (fs []Fault) {
		in := s.scans(p)
		if len(in) == 0 {
			return []Fault{s.none(p)}
		}
		for _, n := range in {
			if f := f(p, n); f != nil {
				fs = append(fs, *f)
			}
		}
		return fs
	}
}

// On narrows the rule to a relation.
func (r ScanRule) On(relation string) ScanRule { r.scope.relation = ParseName(relation); return r }

// DeleteSide narrows the rule to the scans that find the rows which a DELETE, UPDATE or MERGE changes.
func (r ScanRule) DeleteSide() ScanRule { r.scope.side = deleteSide; return r }

// ReadSide narrows the rule to the other scans.
func (r ScanRule) ReadSide() ScanRule { r.scope.side = readSide; return r }

// As narrows the rule to an alias of the statement.
func (r ScanRule) As(alias string) ScanRule { r.scope.alias = alias; return r }

// In narrows the rule to the plan of a WITH query.
func (r ScanRule) In(cte string) ScanRule { r.scope.cte = cte; return r }

// String is the rule in words.
func (r ScanRule) String() string { return r.words(r.scope) }

// Check is a Rule's.
func (r ScanRule) Check(p *Plan) []Fault { return r.check(p, r.scope) }
