package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// child is a table whose rows refer to the target, or to another child.
type child struct {
	table    *table
	parent   *child            // nil: the target itself
	key      []policy.ChildKey // Parent is a column of the parent, Child one of the table
	keyset   []column          // further columns of an index that leads with the key, which with it make a unique key of NOT NULL columns; nil: no such index
	index    string            // that index
	state    *policy.OwedGuard // set where this table, by this key, is also guard.owed: rows not terminal must survive
	triggers []trigger         // that fire on delete

	path string // the key of the policy file
}

// refersTo is the condition by which the rows of the child, as alias, are those of the parent, as parent.
func (c *child) refersTo(parent, alias string) string {
	var cs []string
	for _, k := range c.key {
		cs = append(cs, alias+"."+ident(k.Child)+" = "+parent+"."+ident(k.Parent))
	}
	return strings.Join(cs, " AND ")
}

// owedProbe reads the rows that protect the row of this alias. The condition on their state is written so that the
// predicate of an index on nothing but such rows follows from it: a column that can be null has a condition of its own
// for that, and only where it can.
func (r *renderer) owedProbe(alias string) string {
	return "SELECT FROM ONLY " + tableName(r.owed.table.name) + " o WHERE " + and(r.owed.refersTo(alias, "o"), r.owed.owes("o"))
}

// owes is the condition of a row that protects; "true" where each does.
func (c *child) owes(alias string) string {
	g := c.state
	if g.Column == "" {
		return "true"
	}
	state, _ := c.table.column(g.Column)
	col := alias + "." + ident(g.Column)
	cond := col + " <> " + typed(g.Terminal[0], state)
	if len(g.Terminal) > 1 {
		cond = strings.Replace(in(col, g.Terminal, state), " IN (", " NOT IN (", 1)
	}
	if !state.notNull {
		cond = "(" + cond + " OR " + col + " IS NULL)"
	}
	return cond
}

// readChildren reads the tables of guard.owed and of children, in the order in which their rows go: the deepest first.
func (i *Inspection) readChildren(ctx context.Context, q query) error {
	f, s := &i.findings, &i.Sweep
	read := func(n policy.Name, path, what string) (*table, error) {
		t, err := readTable(ctx, q, n)
		switch {
		case err != nil:
			return nil, err
		case t == nil:
			f.refuse("kind", path+".table", "", "%s %s does not exist", what, n)
		default:
			f.checkKind(t, path+".table", what)
		}
		return t, nil
	}
	if g := s.Guard.Owed; g != nil {
		t, err := read(g.Table, "guard.owed", "owed table")
		if err != nil {
			return err
		}
		if t != nil {
			i.target.owed = &child{table: t, key: g.Key, state: g, path: "guard.owed"}
		}
	}
	var walk func(path string, parent *child, cs []policy.Child) error
	walk = func(path string, parent *child, cs []policy.Child) error {
		for n, pc := range cs {
			at := fmt.Sprintf("%s.%d", path, n)
			t, err := read(pc.Table, at, "child table")
			if err != nil {
				return err
			}
			if t == nil {
				continue // nothing can be said of what is below it
			}
			c := &child{table: t, parent: parent, key: pc.Key, path: at}
			if g := s.Guard.Owed; g != nil && parent == nil && g.Table == pc.Table && sameKey(g.Key, pc.Key) {
				c.state = g
			}
			if err := walk(at+".children", c, pc.Children); err != nil {
				return err
			}
			c.keyset, c.index = keysetOf(t, c.childColumns(), false)
			i.target.children = append(i.target.children, c)
		}
		return nil
	}
	return walk("children", nil, s.Children)
}

func sameKey(a, b []policy.ChildKey) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(k policy.ChildKey) bool { return !slices.Contains(b, k) })
}

// childColumns are the columns of the table by which it refers to its parent.
func (c *child) childColumns() []string {
	var cols []string
	for _, k := range c.key {
		cols = append(cols, k.Child)
	}
	return cols
}

// keysetOf finds an index that walks the rows with one value of the key in the order of a unique key. Of several it takes
// the shortest. sorted: the key too has the direction and the collations by which it can be a part of the order.
func keysetOf(t *table, key []string, sorted bool) (keyset []column, name string) {
	for _, x := range t.indexes {
		if sorted && (slices.Contains(x.desc[:min(len(key)+1, len(x.desc))], !x.desc[0]) || !collated(t, x)) {
			continue
		}
		if x.method != "btree" || !x.valid || x.predicate != "" || len(x.columns) <= len(key) || !leads(x, key) {
			continue
		}
		var further []column
		known := slices.Clone(key)
		for n := len(key); n < len(x.columns); n++ {
			col, ok := t.column(x.columns[n])
			if !ok || !col.notNull || x.desc[n] != x.desc[len(key)] || x.collations[n] != col.collation {
				break
			}
			further = append(further, col)
			known = append(known, col.name)
			if t.unique(known, key...) {
				break
			}
		}
		if len(further) > 0 && t.unique(known, key...) && (keyset == nil || len(further) < len(keyset)) {
			keyset, name = further, x.name
		}
	}
	return keyset, name
}

// leads reports whether the first columns of the index are these, in any order.
func leads(x index, key []string) bool {
	if len(x.columns) < len(key) {
		return false
	}
	have, want := slices.Clone(x.columns[:len(key)]), slices.Clone(key)
	slices.Sort(have)
	slices.Sort(want)
	return slices.Equal(have, want)
}

// unique reports whether no two rows have the same values in these columns. None of the values may be null but in those
// columns of which it is known.
func (t *table) unique(known []string, fixed ...string) bool {
	return slices.ContainsFunc(t.indexes, func(u index) bool {
		return u.unique && u.valid && u.immediate && u.predicate == "" && !slices.ContainsFunc(u.columns, func(name string) bool {
			col, ok := t.column(name)
			return !ok || !slices.Contains(known, name) || !col.notNull && !slices.Contains(fixed, name)
		})
	})
}
