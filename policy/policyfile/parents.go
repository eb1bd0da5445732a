package policyfile

import (
	"strconv"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// ownUnits are the units of a row's own window.
var ownUnits = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// rowWindow reads where a row's own window is.
func (f fields) rowWindow(s *policy.Sweep) {
	w, ok := f.sub("row_window")
	if !ok {
		return
	}
	own := &policy.RowWindow{}
	w.name("column", &own.Column)
	if unit, ok := w.choice("unit"); ok {
		own.Unit = ownUnits[unit]
		at, p := w.found["unit"].at, w.path.child("unit")
		switch {
		case own.Unit != 0:
		case unit == "m":
			w.r.fail(at, p, "%q is read both ways; write min for minutes: months have no fixed length", unit)
		default:
			w.r.fail(at, p, "%q is no unit of a window; write s, min, h or d, or leave the key out where the column is an interval", unit)
		}
	}
	if zero, ok := w.choice("zero"); ok {
		own.ZeroNever = zero == "never"
		if !own.ZeroNever {
			w.r.fail(w.found["zero"].at, w.path.child("zero"), "%q is not known; write never, or leave the key out: a window of 0 is then unusable, and its row kept", zero)
		}
	}
	s.Own = own
}

// choice reads a word of the language, where a number in quotes would be as wrong as one without.
func (f fields) choice(name string) (string, bool) {
	n, ok := f.found[name]
	switch {
	case !ok:
		return "", false
	case n.kind != scalar || n.typ() != text:
		f.r.wrong(n, f.path.child(name), f.due(name))
		return "", false
	}
	return n.text, true
}

// reference reads the key by which the rows of another table refer to the rows of this one.
func (f fields) reference() (key []policy.ChildKey) {
	f.pairs("the name of the column that refers to it", func(parent, child string) {
		key = append(key, policy.ChildKey{Parent: parent, Child: child})
	})
	return key
}

// children reads the tables whose rows go with a row; their keys stand in the table of keys in scopeName. One that could not
// be read has its place in the result, so that places and problems are counted alike.
func (f fields) children(scopeName string, d defaults) []policy.Child {
	items, p := f.items("children")
	var out []policy.Child
	for i, item := range items {
		var child policy.Child
		if c, ok := f.r.fields(item, item.at, f.r.item(p, i, item), scopeName); ok {
			child = policy.Child{Table: c.table("table", d), Key: c.reference(), Children: c.children(scopeName, d)}
		}
		out = append(out, child)
	}
	return out
}

// cascades reads the tables whose rows the database may remove by itself.
func (f fields) cascades(s *policy.Sweep, d defaults) {
	items, p := f.items("cascades")
	for i, item := range items {
		s.Cascades = append(s.Cascades, f.r.table(item, f.r.item(p, i, item), "a name, or [schema, table], as in cascades: [public.job_tags]", d))
	}
}

// items are those of a list that is not empty.
func (f fields) items(name string) ([]*node, path) {
	p := f.path.child(name)
	if n, ok := f.found[name]; ok && f.r.filled(n, p, f.due(name)) {
		return n.items, p
	}
	return nil, p
}

// item is the path of an item that has no name of its own: its number, from 0.
func (r *reader) item(p path, i int, n *node) path {
	at := p.child(strconv.Itoa(i))
	r.file.places[at] = span{n.at, n.at}
	return at
}
