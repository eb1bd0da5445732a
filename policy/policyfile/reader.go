package policyfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// reader collects what a file says and every fault of it.
type reader struct {
	file   *File
	errs   Errors
	broken faults
}

// faults are the keys with a fault, by sweep: what follows from one is not worth a second message.
type faults map[string]map[string]bool

func (fs faults) add(p path) {
	if fs[p.sweep] == nil {
		fs[p.sweep] = map[string]bool{}
	}
	fs[p.sweep][p.key] = true
}

func (fs faults) has(p path) bool { return fs[p.sweep][p.key] }

// fail reports a fault of a key.
func (r *reader) fail(at place, p path, format string, args ...any) {
	r.broken.add(p)
	r.report(at, p, format, args...)
}

// report adds a message; the key that it names is not broken by it.
func (r *reader) report(at place, p path, format string, args ...any) {
	r.errs = append(r.errs, Error{File: r.file.Path, Line: at.line, Column: at.column, Key: p.String(), Message: fmt.Sprintf(format, args...)})
}

// wrong reports that a value is of another kind than the key takes.
func (r *reader) wrong(n *node, p path, due string) {
	switch {
	case n.kind == refused:
	case n.missing():
		r.fail(n.at, p, "there is no value; write %s", due)
	default:
		r.fail(n.at, p, "found %s; write %s", n.found(), due)
	}
}

// fields are the keys of one mapping that the language knows.
type fields struct {
	r     *reader
	path  path
	scope string // the mapping in the table of keys
	at    place  // of the key that holds the mapping
	found map[string]*node
}

// fields reads a mapping whose keys stand in the table, and reports the others. at is where the key of the mapping
// stands; the second result is false where it is no mapping.
func (r *reader) fields(n *node, at place, p path, scopeName string) (fields, bool) {
	f := fields{r: r, path: p, scope: scopeName, at: at, found: map[string]*node{}}
	switch {
	case n.kind != mapping:
		r.wrong(n, p, "a mapping of "+names(scope(scopeName)))
		return f, false
	case len(n.entries) == 0 && scopeName != "sweep.guard":
		r.fail(n.at, p, "the mapping is empty; write one of %s, or leave the key out", names(scope(scopeName)))
		return f, false
	}
	for _, e := range n.entries {
		name := e.key.text
		r.record(p.child(name), e)
		if k, ok := lookup(join(scopeName, name)); ok && !k.planned() {
			f.found[name] = e.value
			continue
		}
		message, meant := unknown(scopeName, name)
		r.report(e.key.at, p, "%s", message)
		r.broken.add(p.child(name))
		for _, m := range meant {
			r.broken.add(p.child(m))
		}
	}
	for _, k := range scope(scopeName) {
		if _, ok := f.found[k.name()]; k.required && !ok && !f.replaced(k) && !r.broken.has(p.child(k.name())) {
			r.report(at, p, "%s is missing; write %s: %s", k.name(), k.name(), k.example)
			r.broken.add(p.child(k.name()))
		}
	}
	return f, true
}

// replaced reports whether another key of the mapping stands in the place of this one.
func (f fields) replaced(k key) bool {
	for by, keys := range inPlaceOf {
		by, _ := lookup(by)
		if _, ok := f.found[by.name()]; ok && by.scope() == f.scope && slices.Contains(keys, k.name()) {
			return true
		}
	}
	return false
}

func join(scope, name string) string {
	if scope == "" {
		return name
	}
	return scope + "." + name
}

// record remembers where a key and its value stand.
func (r *reader) record(p path, e entry) { r.file.places[p] = span{e.key.at, e.value.at} }

// sub is a mapping inside a mapping.
func (f fields) sub(name string) (fields, bool) {
	n, ok := f.found[name]
	if !ok {
		return fields{}, false
	}
	p := f.path.child(name)
	return f.r.fields(n, f.r.file.places[p].key, p, join(f.scope, name))
}

// due is what the table says of a key.
func (f fields) due(name string) string {
	k, _ := lookup(join(f.scope, name))
	return k.due + ", as in " + name + ": " + k.example
}

// name reads a name of the catalog: one identifier, never split.
func (f fields) name(name string, out *string) {
	if n, ok := f.found[name]; ok {
		*out = f.r.name(n, f.path.child(name), f.due(name))
	}
}

// word reads a text that is a word of the language or of PostgreSQL and no name.
func (f fields) word(name string) (string, bool) {
	n, ok := f.found[name]
	if !ok {
		return "", false
	}
	if !f.r.isText(n, f.path.child(name), f.due(name)) {
		return "", false
	}
	return n.text, true
}

// truth reads true or false.
func (f fields) truth(name string, out *bool) {
	n, ok := f.found[name]
	switch {
	case !ok:
	case n.kind == scalar && n.typ() == boolean:
		*out = n.text == "true"
	default:
		f.r.wrong(n, f.path.child(name), f.due(name))
	}
}

// count reads a whole number from 1 to most; none, where it is taken, is policy.NoCeiling.
func (f fields) count(name string, most int, none bool, out *int) {
	n, ok := f.found[name]
	if !ok {
		return
	}
	p := f.path.child(name)
	switch {
	case none && n.isNone():
		*out = policy.NoCeiling
		return
	case n.kind != scalar || n.typ() != integer:
		f.r.wrong(n, p, f.due(name))
		return
	}
	i, err := strconv.Atoi(n.text)
	switch {
	case (err != nil || i > most) && none:
		f.r.fail(n.at, p, "%s is out of range; write a number from 1, or none for no ceiling", n.text)
	case err == nil && i < 1 && none:
		f.r.fail(n.at, p, "%s is out of range; write a number from 1, or none for no ceiling", n.text)
	case err != nil || i < 1 || i > most:
		f.r.fail(n.at, p, "%s is out of range; write a number from 1 to %d", n.text, most)
	default:
		*out = i
	}
}

// isNone reports whether none is written, the word that lifts a ceiling.
func (n *node) isNone() bool { return n.kind == scalar && n.text == "none" }

// literal is a scalar as it is written, for what has a grammar of its own; a number without quotes is still text there.
func (r *reader) literal(n *node, p path, due string) (string, bool) {
	if n.kind != scalar || n.missing() || n.typ() == null || n.typ() == boolean {
		r.wrong(n, p, due)
		return "", false
	}
	return n.text, true
}

// name reads one identifier.
func (r *reader) name(n *node, p path, due string) string {
	if !r.isText(n, p, due) || !r.named(n.text, n.at, p) {
		return ""
	}
	return n.text
}

// isText reports whether the node is a text, and says so where not.
func (r *reader) isText(n *node, p path, due string) bool {
	switch {
	case n.kind == scalar && n.typ() == text:
		return true
	case n.kind == scalar && !n.missing() && n.typ() != null:
		due = fmt.Sprintf("it in quotes, %q, if that is what is meant", n.text)
	}
	r.wrong(n, p, due)
	return false
}

// named checks a name: not empty, no blanks round it, no longer than PostgreSQL keeps.
func (r *reader) named(name string, at place, p path) bool {
	const most = 63 // NAMEDATALEN - 1
	trimmed := strings.TrimSpace(name)
	switch {
	case trimmed == "":
		r.fail(at, p, "the name is empty; write a name as it is in the catalog")
	case trimmed != name:
		r.fail(at, p, "%q has blanks round it; write %s", name, printable(trimmed))
	case len(name) > most:
		r.fail(at, p, "%q has %d bytes; PostgreSQL cuts names at %d, so write the name as it is in the catalog", name, len(name), most)
	default:
		return true
	}
	return false
}

// table reads a table's name: schema.table, split at the first dot, or [schema, table].
func (f fields) table(name string, d defaults) policy.Name {
	n, ok := f.found[name]
	if !ok {
		return policy.Name{}
	}
	return f.r.table(n, f.path.child(name), f.due(name), d)
}

func (r *reader) table(n *node, p path, due string, d defaults) policy.Name {
	if n.kind == list {
		if len(n.items) != 2 {
			r.fail(n.at, p, "found a list of %d; write [schema, table]", len(n.items))
			return policy.Name{}
		}
		return whole(policy.Name{Schema: r.name(n.items[0], p, "[schema, table]"), Table: r.name(n.items[1], p, "[schema, table]")})
	}
	if !r.isText(n, p, due) {
		return policy.Name{}
	}
	before, after, dotted := strings.Cut(n.text, ".")
	switch {
	case !dotted && !r.named(n.text, n.at, p):
		return policy.Name{}
	case !dotted && d.schema == "":
		if !d.schemaBroken {
			r.fail(n.at, p, "%q has no schema; write %s, or defaults: {schema: public} at the top", n.text, printable("public."+n.text))
		}
		r.broken.add(p)
		return policy.Name{}
	case !dotted:
		return policy.Name{Schema: d.schema, Table: n.text}
	case before == "" || after == "":
		r.fail(n.at, p, "%q has an empty part; write schema.table, or [schema, table] where a name has a dot", n.text)
		return policy.Name{}
	case !r.named(before, n.at, p) || !r.named(after, n.at, p):
		return policy.Name{}
	}
	return policy.Name{Schema: before, Table: after}
}

// whole is the name, or none at all where a part is missing.
func whole(n policy.Name) policy.Name {
	if n.Schema == "" || n.Table == "" {
		return policy.Name{}
	}
	return n
}
