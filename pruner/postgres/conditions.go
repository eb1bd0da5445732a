package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// classes are the conditions of a row, by itself; its owner, and the rows that refer to it, have their say later. No row is
// in two of outside, held, unusable and candidate (for removal); raised ones are in another too. A row of another part of
// the sweep is in none, nor is one that is not yet past a longer window. "true" and "false" where the arm has no such test.
type classes struct {
	outside, held, unusable, raised, candidate string

	byState, byHold string // the reasons for held
}

func (r *renderer) classes(alias string) classes {
	part, inside := r.part(alias), r.inside(alias)
	if r.arm.Expiry {
		// The range is one of expiries: what is no age may have one.
		part = and(part, alias+"."+ident(r.sweep.Age)+" >= "+r.since())
	}
	terminal, settled := r.states(alias)
	hold, free := "false", "true"
	if h := r.arm.Hold; h != "" {
		hold, free = alias+"."+ident(h)+" IS TRUE", alias+"."+ident(h)+" IS NOT TRUE"
	}
	in := and(part, inside)
	own := r.own(alias)
	due := and(in, own.due)
	return classes{
		outside:   and(part, not(inside)),
		unusable:  and(in, own.unusable),
		raised:    and(in, own.raised),
		held:      and(due, or(not(terminal), and(settled, hold))),
		candidate: and(due, settled, free),
		byState:   and(due, not(terminal)),
		byHold:    and(due, settled, hold),
	}
}

// since is the earliest instant that is an age.
func (r *renderer) since() string {
	return literal(timestamptz(r.sweep.Since.UnixMicro())) + "::timestamptz"
}

// part is the condition of the part of the sweep that the arm is for, never null, where the index does not settle it.
func (r *renderer) part(alias string) string {
	var cs []string
	for _, m := range r.arm.Part {
		cs = append(cs, within(alias, m, r.col(m.Column)))
	}
	return and(cs...)
}

// states says which rows are in a terminal state, and which of them are past the window of their state.
func (r *renderer) states(alias string) (terminal, settled string) {
	st := r.arm.State
	if st == nil {
		return "true", "true"
	}
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
	terminal = "coalesce(" + in(col, all, r.col(st.Column)) + ", false)"
	if len(due) == 0 {
		return terminal, "false"
	}
	return terminal, "coalesce(" + strings.Join(due, " OR ") + ", false)"
}

// ownWindow are the conditions of a row that goes by a window of its own.
type ownWindow struct{ due, unusable, raised string }

// own tests the age and the window before it adds them up: nothing else keeps nonsense from an overflow, which would end
// the batch. In UTC a day has 24 hours, so the sum is exact in every zone.
func (r *renderer) own(alias string) ownWindow {
	o := r.arm.Own
	if o == nil {
		return ownWindow{due: "true", unusable: "false", raised: "false"}
	}
	col, age, cutoff := alias+"."+ident(o.Column), alias+"."+ident(r.sweep.Age), r.arg(argCutoff, "timestamptz")
	now, past := cutoff, age+" < "+cutoff
	if w := r.arm.Window.Seconds(); w > 0 {
		now = fmt.Sprintf("(%s + interval '%d seconds')", cutoff, w)
	}
	if more := int64(o.Floor.Seconds()) - r.arm.Window.Seconds(); more > 0 {
		past += fmt.Sprintf(" - interval '%d seconds'", more)
	}
	usable, zero := r.usable(col)
	bad := "NOT (" + usable + ")"
	if o.ZeroNever {
		bad += " AND " + col + " <> " + zero
	}
	return ownWindow{
		due:      fmt.Sprintf("CASE WHEN %s AND %s THEN %s < %s ELSE false END", past, usable, r.sum(alias), now),
		unusable: fmt.Sprintf("(%s AND %s) IS TRUE", past, bad),
		raised:   fmt.Sprintf("CASE WHEN %s AND %s THEN %s < interval '%d seconds' ELSE false END", past, usable, interval(alias, r.sweep.Own), int64(o.Floor.Seconds())),
	}
}

// usable is the condition of an own window between one second and the longest that there is, and the zero of its type.
func (r *renderer) usable(col string) (cond, zero string) {
	unit := r.arm.Own.Unit
	if unit == 0 {
		return fmt.Sprintf("%s >= interval '1 second' AND %s <= interval '%d days'", col, col, int64(policy.MaxWindow/(24*time.Hour))), "interval '0'"
	}
	return fmt.Sprintf("%s > '0'::bigint AND %s <= '%d'::bigint", col, col, int64(policy.MaxWindow/unit)), "'0'::bigint"
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

// within is a condition as a planner proves the predicate of an index from it. Both of its forms are never null where the
// index settles them.
func within(alias string, m policy.Match, c column) string {
	col := alias + "." + ident(m.Column)
	switch {
	case !m.Values[0].IsNull():
		return in(col, m.Values, c)
	case m.Not:
		return col + " IS NOT NULL"
	default:
		return col + " IS NULL"
	}
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

// and, or and not put conditions together that are never null, and leave out what says nothing.
func and(cs ...string) string {
	var kept []string
	for _, c := range cs {
		switch c {
		case "false":
			return "false"
		case "true":
		default:
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		return "true"
	}
	return strings.Join(kept, " AND ")
}

func or(a, b string) string {
	switch {
	case a == "false":
		return b
	case b == "false":
		return a
	}
	return "(" + a + " OR " + b + ")"
}

func not(c string) string {
	switch c {
	case "true":
		return "false"
	case "false":
		return "true"
	}
	return "NOT " + c
}
