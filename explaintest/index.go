package explaintest

import (
	"fmt"
	"slices"
	"strings"
)

// IndexRule is made by [UsesIndex].
type IndexRule struct {
	scope   scope
	index   Name
	columns []string
	want    []wanted
	whole   bool
}

// wanted is a bound that a rule asks for.
type wanted struct {
	column string
	both   bool
}

// UsesIndex holds that each scan of a relation finds its rows through this index, in an index scan or a bitmap scan, and that
// a condition bounds what is read of it. Of a partitioned relation and index it holds for each partition's own.
//
// An index in a plan may still be read from end to end: say with BoundOn or RangeOn which column bounds it. A Tid Scan goes to
// rows whose address is known and finds none, so it is passed over; NodeType is the rule for it.
func UsesIndex(relation, index string) IndexRule {
	return IndexRule{scope: scope{relation: ParseName(relation)}, index: ParseName(index)}
}

// BoundOn asks for a condition on each of these columns that bounds the range of the index that is read: a comparison or an
// equality on its first column, or on a later one where all before it are fixed by equalities. Any condition on a column will
// do where the index is not a B-tree. For an index on an expression the column is that expression, as the server prints it.
func (r IndexRule) BoundOn(columns ...string) IndexRule {
	for _, c := range columns {
		r.want = append(slices.Clone(r.want), wanted{c, false})
	}
	return r
}

// RangeOn is BoundOn with a bound at both ends, or an equality.
func (r IndexRule) RangeOn(columns ...string) IndexRule {
	for _, c := range columns {
		r.want = append(slices.Clone(r.want), wanted{c, true})
	}
	return r
}

// Columns tells the key columns of the index, in order, where the plan has no catalog that does.
func (r IndexRule) Columns(columns ...string) IndexRule { r.columns = columns; return r }

// Whole lets the index be read from end to end: of a small partial index, or in its order up to a LIMIT.
func (r IndexRule) Whole() IndexRule { r.whole = true; return r }

// DeleteSide narrows the rule to the scans that find the rows which a DELETE, UPDATE or MERGE changes.
func (r IndexRule) DeleteSide() IndexRule { r.scope.side = deleteSide; return r }

// ReadSide narrows the rule to the other scans.
func (r IndexRule) ReadSide() IndexRule { r.scope.side = readSide; return r }

// As narrows the rule to an alias of the statement.
func (r IndexRule) As(alias string) IndexRule { r.scope.alias = alias; return r }

// In narrows the rule to the plan of a WITH query.
func (r IndexRule) In(cte string) IndexRule { r.scope.cte = cte; return r }

// String is the rule in words.
func (r IndexRule) String() string {
	s := fmt.Sprintf("%s is read through the index %s", r.scope, r.index)
	for i, w := range r.want {
		s += map[bool]string{true: ", bounded on ", false: " and "}[i == 0] + w.column
		if w.both {
			s += " at both ends"
		}
	}
	return s
}

// Check is a Rule's.
func (r IndexRule) Check(p *Plan) (fs []Fault) {
	found := false
	for _, n := range r.scope.scans(p) {
		if n.Type == "Tid Scan" && n.TIDCond != "" {
			continue
		}
		found = true
		if f := r.scan(p, n, n); f != nil {
			fs = append(fs, *f)
		}
	}
	if !found {
		f := r.scope.none(p)
		if len(r.scope.scans(p)) > 0 {
			f.Problem = fmt.Sprintf("%s is only gone to by address; nothing finds rows of it", r.scope)
			f.Look = "in which part of the statement should the index be used"
		}
		return []Fault{f}
	}
	return fs
}

// scan checks one scan of a table; n is that node, or one of the bitmap nodes below it.
func (r IndexRule) scan(p *Plan, table, n *Node) *Fault {
	switch n.Type {
	case "Index Scan", "Index Only Scan", "Bitmap Index Scan":
		return r.read(p, table, n)
	case "BitmapAnd": // one of its indexes bounds what is read
		var first *Fault
		for _, c := range n.Children {
			f := r.scan(p, table, c)
			if f == nil {
				return nil
			}
			if first == nil {
				first = f
			}
		}
		return first
	case "Bitmap Heap Scan", "BitmapOr":
		for _, c := range n.Children {
			if f := r.scan(p, table, c); f != nil {
				return f
			}
		}
		if len(n.Children) > 0 {
			return nil
		}
	}
	return &Fault{n, fmt.Sprintf("%s is read by a %s", table.name(), n.Type), p.whyNot(table, r.index)}
}

// read checks one reading of an index.
func (r IndexRule) read(p *Plan, table, n *Node) *Fault {
	name := Name{table.Schema, n.Index}
	if !p.Catalog.isIndex(r.index, name) {
		return &Fault{n, fmt.Sprintf("%s is read through the index %s", table.name(), n.Index), p.whyNot(table, r.index)}
	}
	if r.whole && len(r.want) == 0 {
		return nil
	}
	bs := bounds(n.IndexCond)
	if len(bs) == 0 {
		return &Fault{n, fmt.Sprintf("the index %s is read from end to end: there is no Index Cond", n.Index),
			"the statement has no condition that the index can use, or the condition is a Filter; if reading it whole is meant, say Whole()"}
	}
	x, known := p.Catalog.index(name)
	if r.columns != nil {
		x.Columns, known = r.columns, true
	}
	for _, w := range r.want {
		if !known {
			return &Fault{n, fmt.Sprintf("whether %s bounds the index %s cannot be seen: its columns are in no catalog of the plan", w.column, n.Index),
				"name them, in order, with Columns, or get the plan through pgxplan, which reads them"}
		}
		if problem, look := x.bounded(bs, w); problem != "" {
			return &Fault{n, fmt.Sprintf("the index %s is read by the condition %s: %s", n.Index, n.IndexCond, problem), look}
		}
	}
	return nil
}

// bounded says why conditions do not bound the index on a column, and what to look at.
func (x Index) bounded(bs []bound, w wanted) (problem, look string) {
	var on [][]bool // for each column, in order, the kinds of conditions on it
	columns := make([]string, len(x.Columns))
	for i, c := range x.Columns {
		columns[i] = key(c)
		on = append(on, make([]bool, below+1))
	}
	at := slices.Index(columns, key(w.column))
	if at < 0 {
		return "it has no column " + w.column, "its columns are " + strings.Join(x.Columns, ", ")
	}
	place := func(spellings []string) int {
		return slices.IndexFunc(columns, func(c string) bool { return slices.Contains(spellings, c) })
	}
	for _, b := range bs {
		if i := place(b.keys[0]); i >= 0 {
			on[i][b.kind] = true
		}
	}
	for _, b := range bs { // a row comparison bounds a further column where those before it are fixed
		for i, k := range b.keys[1:] {
			if before := place(b.keys[i]); before < 0 || !on[before][equal] {
				break
			}
			if i := place(k); i >= 0 {
				on[i][b.kind] = true
			}
		}
	}
	has := on[at]
	switch {
	case x.Method != "" && x.Method != "btree":
		if !slices.Contains(has, true) {
			return "it has nothing on " + w.column, "is the condition on " + w.column + " one that this kind of index can use"
		}
		return "", ""
	case !has[equal] && !has[above] && !has[below]:
		return "it does not bound " + w.column, "is " + w.column + " compared by <, <=, =, >= or > with something that is known before the scan begins, and of its own type"
	}
	for i := range at {
		if !on[i][equal] {
			return fmt.Sprintf("%s bounds nothing, since %s before it is not fixed by an equality", w.column, x.Columns[i]),
				fmt.Sprintf("all of the index is read within the bounds of %s; an index that begins with %s, or an equality on %[1]s, would bound it", x.Columns[i], w.column)
		}
	}
	if w.both && !has[equal] && !(has[above] && has[below]) {
		end := map[bool]string{true: "upper", false: "lower"}[has[above]]
		return fmt.Sprintf("%s has no %s bound", w.column, end), "without one the scan begins, or goes on, where nothing is wanted: among dead entries at the head, or rows that are kept"
	}
	return "", ""
}

// whyNot says why the planner may have left an index alone.
func (p *Plan) whyNot(scan *Node, index Name) string {
	if t, ok := p.Catalog.table(scan.name()); ok {
		if err := t.Enough(); err != nil {
			return err.Error()
		}
	}
	look := "is there a valid index"
	if index != (Name{}) {
		look += " " + index.String()
	}
	look += ", does the statement have a condition on its first column, does a partial index's predicate follow from the statement, and has the table enough rows and been analysed"
	for name := range p.Settings {
		if strings.HasPrefix(name, "enable_") {
			return look + "; and do the settings below the plan forbid it"
		}
	}
	return look
}
