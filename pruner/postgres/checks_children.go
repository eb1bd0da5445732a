package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// The oids of the types that these checks are about.
const (
	boolOID     = 16
	int8OID     = 20
	int2OID     = 21
	int4OID     = 23
	intervalOID = 1186
)

// references lists guard.owed and the children: all that refers to the target, or to one that does.
func (i *Inspection) references() []*child {
	cs := slices.Clone(i.target.children)
	if i.target.owed != nil {
		cs = append(cs, i.target.owed)
	}
	return cs
}

// parentTable is the table that the child's rows refer to.
func (i *Inspection) parentTable(c *child) *table {
	if c.parent != nil {
		return c.parent.table
	}
	return i.target.table
}

// checkRowColumns looks for the columns of rows' own windows and holds, and at their types.
func (i *Inspection) checkRowColumns() {
	f, s, t := &i.findings, &i.Sweep, i.target.table
	if c, ok := t.column(s.Guard.Hold); ok && s.Guard.Hold != "" && c.base != boolOID {
		f.refuse("column", "guard.hold", "name a boolean column", "%s.%s is %s; a hold is true or not", t.name, c.name, c.typname)
	}
	o := s.Own
	if o == nil {
		return
	}
	c, ok := t.column(o.Column)
	whole := c.base == int2OID || c.base == int4OID || c.base == int8OID
	switch {
	case !ok:
	case whole && o.Unit == 0:
		f.refuse("column", "row_window.unit", "write unit: s, min, h or d", "%s.%s is %s, which says no unit", t.name, c.name, c.typname)
	case c.base == intervalOID && o.Unit != 0:
		f.refuse("column", "row_window.unit", "leave the unit out", "%s.%s is %s, which has units of its own", t.name, c.name, c.typname)
	case !whole && c.base != intervalOID:
		f.refuse("column", "row_window.column", "name an interval or a whole number", "%s.%s is %s, which is no window", t.name, c.name, c.typname)
	default:
		f.ok("column", "row_window.column", "%s is %s", c.name, c.typname)
	}
}

// checkKeys refuses a key that compares unlike values, and reports whether there is none.
func (i *Inspection) checkKeys() (sound bool) {
	f := &i.findings
	sound = true
	for _, c := range i.references() {
		parent := i.parentTable(c)
		for _, k := range c.key {
			pc, _ := parent.column(k.Parent)
			cc, _ := c.table.column(k.Child)
			if pc.base != cc.base || pc.collation != cc.collation {
				f.refuse("column", c.path+".key", "", "%s.%s is %s and %s.%s is %s; a key is compared in one type and collation", parent.name, k.Parent, pc.typname, c.table.name, k.Child, cc.typname)
				sound = false
			}
		}
	}
	return sound
}

// notNulls is a predicate that leaves out nothing but nulls.
var notNulls = regexp.MustCompile(`^\(+("[^"]+"|\w+) IS NOT NULL\)+$`)

// checkReferences asks for the index by which the rows that refer to one row are found, and for one that walks them in
// chunks.
func (i *Inspection) checkReferences(ctx context.Context, q query) error {
	f := &i.findings
	for _, c := range i.references() {
		by, err := i.indexOf(ctx, q, c)
		if err != nil {
			return err
		}
		tiny := small(c.table.rows, c.table.bytes)
		what := fmt.Sprintf("no index of %s leads with (%s); each row of %s scans it", c.table.name, strings.Join(c.childColumns(), ", "), i.parentTable(c).name)
		switch {
		case by != "":
			f.ok("index", c.path, "%s of %s finds what refers to a row", by, c.table.name)
		case tiny:
			f.warn("index", c.path, createIndex(c.table.name, c.childColumns()), "%s, which is small now", what)
		default:
			f.refuse("index", c.path, createIndex(c.table.name, c.childColumns()), "%s", what)
		}
		if c != i.target.owed && len(c.keyset) == 0 && !tiny && by != "" && !c.table.unique(c.childColumns(), c.childColumns()...) {
			fix := ""
			if key := c.table.uniqueKey(); key != nil {
				fix = createIndex(c.table.name, append(c.childColumns(), slices.DeleteFunc(key, func(k string) bool { return slices.Contains(c.childColumns(), k) })...))
			}
			f.warn("index", c.path, fix, "no index walks the rows of %s that refer to one row in the order of a unique key; a row with more of them than a batch removes costs more with each batch", c.table.name)
		}
	}
	return nil
}

// indexOf names an index that finds the rows of the child by their key. The predicate of one for guard.owed may follow
// from what is asked, which is the planner's to prove.
func (i *Inspection) indexOf(ctx context.Context, q query, c *child) (string, error) {
	partial := ""
	for _, x := range c.table.indexes {
		switch {
		case x.method == "brin" || !x.valid || !leads(x, c.childColumns()):
		case x.predicate == "" || notNulls.MatchString(x.predicate):
			return x.name, nil
		default:
			partial = x.name
		}
	}
	f := &i.findings
	if partial == "" || c != i.target.owed || !i.mayProbe(c) || f.refused("rls") || f.refused("server") {
		return "", nil
	}
	r := &renderer{target: &i.target}
	if err := q.exec(ctx, r.readSettingsSQL()); err != nil {
		return "", err
	}
	var plan string
	sql := fmt.Sprintf("EXPLAIN (FORMAT JSON) SELECT w.owed FROM ONLY %s e LEFT JOIN LATERAL (SELECT true AS owed%s LIMIT 1) w ON true", tableName(i.target.table.name), strings.TrimPrefix(r.owedProbe("e"), "SELECT"))
	if err := q.row(ctx, sql).Scan(&plan); err != nil {
		return "", fmt.Errorf("explain the probe of %s: %w", c.table.name, err)
	}
	return probed(plan, c.table), nil
}

// mayProbe reports whether the role may read what a probe of the child reads: the planner is asked in its name.
func (i *Inspection) mayProbe(c *child) bool {
	t := i.target.table
	return t.canUse && t.canSelect && c.table.canUse && !slices.ContainsFunc(append(c.childColumns(), c.state.Column), func(name string) bool {
		col, ok := c.table.column(name)
		return ok && !col.canSelect
	})
}

// probed is the index of the table by a condition on which the plan finds its rows.
func probed(plan string, t *table) (name string) {
	var doc any
	if json.Unmarshal([]byte(plan), &doc) != nil {
		return ""
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if x, ok := v["Index Name"].(string); ok && v["Index Cond"] != nil && slices.ContainsFunc(t.indexes, func(i index) bool { return i.name == x }) {
				name = x
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(doc)
	return name
}

// uniqueKey are the columns of a unique index without nulls, nil where the table has none.
func (t *table) uniqueKey() []string {
	for _, x := range t.indexes {
		if x.unique && x.valid && x.immediate && x.predicate == "" && t.unique(x.columns) {
			return slices.Clone(x.columns)
		}
	}
	return nil
}

// createIndex is the statement that makes an index on these columns.
func createIndex(n policy.Name, columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = ident(c)
	}
	return fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s);", tableName(n), strings.Join(quoted, ", "))
}
