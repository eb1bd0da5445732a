package postgres

import (
	"fmt"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// classes are the conditions of a row, by itself: outside, held, and candidate for removal (by its own state; its owner
// has its say later). "true" and "false" where the arm has no such test.
func (r *renderer) classes(alias string) (outside, held, candidate string) {
	inside := r.inside(alias)
	outside, held, candidate = "false", "false", inside
	if inside != "true" {
		outside = "NOT " + inside
	}
	if st := r.arm.State; st != nil {
		var all []policy.Value
		var due []string
		col := alias + "." + ident(st.Column)
		for _, g := range st.Groups {
			all = append(all, g.States...)
			in := in(col, g.States, r.col(st.Column))
			switch {
			case g.Never:
			case g.Longer > 0:
				// exact: an interval of seconds means the same in every zone
				due = append(due, fmt.Sprintf("%s AND %s.%s < %s - interval '%d seconds'", in, alias, ident(r.sweep.Age), r.arg(argCutoff, "timestamptz"), int64(g.Longer.Seconds())))
			default:
				due = append(due, in)
			}
		}
		held = "NOT coalesce(" + in(col, all, r.col(st.Column)) + ", false)"
		candidate = "coalesce(" + strings.Join(due, " OR ") + ", false)"
		if len(due) == 0 {
			candidate = "false"
		}
		if inside != "true" {
			held = inside + " AND " + held
			candidate = inside + " AND " + candidate
		}
	}
	return outside, held, candidate
}

// inside is the condition that `only` matches, never null.
func (r *renderer) inside(alias string) string {
	var cs []string
	for _, m := range r.arm.Only {
		cs = append(cs, matches(alias+"."+ident(m.Column), m, r.col(m.Column)))
	}
	if len(cs) == 0 {
		return "true"
	}
	return "(" + strings.Join(cs, " AND ") + ")"
}

// matches is a condition of `only`, never null: `not` lets null pass.
func matches(col string, m policy.Match, c column) string {
	var vs []policy.Value
	null := false
	for _, v := range m.Values {
		if v.IsNull() {
			null = true
		} else {
			vs = append(vs, v)
		}
	}
	cond := "false"
	if len(vs) > 0 {
		cond = "coalesce(" + in(col, vs, c) + ", false)"
	}
	if null {
		cond = "(" + cond + " OR " + col + " IS NULL)"
	}
	if m.Not {
		return "NOT " + cond
	}
	return cond
}

// in is a test against typed literals; a single one as =, which finds a partial index that a list of one does not.
func in(col string, vs []policy.Value, c column) string {
	if len(vs) == 1 {
		return col + " = " + typed(vs[0], c)
	}
	ls := make([]string, len(vs))
	for i, v := range vs {
		ls[i] = typed(v, c)
	}
	return col + " IN (" + strings.Join(ls, ", ") + ")"
}

func countIf(cond string) string {
	if cond == "false" {
		return "0"
	}
	return "count(*)" + filter(cond)
}

func filter(cond string) string {
	if cond == "true" {
		return ""
	}
	return " FILTER (WHERE " + cond + ")"
}
