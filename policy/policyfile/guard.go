package policyfile

import (
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

func (f fields) guard(s *policy.Sweep, d defaults) {
	g, ok := f.sub("guard")
	if !ok {
		return
	}
	s.Guard.None = g.reason()
	g.truth("ended", &s.Guard.Ended)
	if n, ok := g.found["ended"]; ok && n.kind == scalar && n.text == "false" {
		g.r.fail(n.at, g.path.child("ended"), "false guards nothing; write true, or leave the key out")
	}
	if g.any("state", "terminal", "live", "final") {
		st := &policy.StateGuard{}
		g.name("state", &st.Column)
		st.Terminal, st.Live = g.states()
		g.truth("final", &st.Final)
		s.Guard.State = st
	}
	if o, ok := g.sub("owner"); ok {
		og := &policy.OwnerGuard{Table: o.table("table", d)}
		o.pairs("the name of a column of the owner", func(target, owner string) {
			og.Key = append(og.Key, policy.KeyPair{Target: target, Owner: owner})
		})
		o.name("state", &og.Column)
		og.Terminal, og.Live = o.states()
		o.truth("final", &og.Final)
		o.keep("orphans")
		o.keep("ownerless")
		s.Guard.Owner = og
	}
	if o, ok := g.sub("owed"); ok {
		og := &policy.OwedGuard{Table: o.table("table", d), Key: o.reference()}
		o.name("state", &og.Column)
		og.Terminal, _ = o.states()
		s.Guard.Owed = og
	}
	g.name("hold", &s.Guard.Hold)
}

func (f fields) any(names ...string) bool {
	for _, n := range names {
		if _, ok := f.found[n]; ok {
			return true
		}
	}
	return false
}

// reason reads why nothing is owed.
func (f fields) reason() string {
	n, ok := f.found["none"]
	if !ok {
		return ""
	}
	p := f.path.child("none")
	if !f.r.isText(n, p, f.due("none")) {
		return ""
	}
	reason := strings.Join(strings.Fields(n.text), " ") // it is printed on one line
	if reason == "" {
		f.r.fail(n.at, p, "the reason is empty; write why nothing is owed, 10 characters or more")
	}
	return reason
}

// states reads the two lists of states. A state that stands twice is reported and kept once.
func (f fields) states() (terminal, live []policy.Value) {
	in := map[string]string{}
	read := func(name string) (out []policy.Value) {
		n, ok := f.found[name]
		p := f.path.child(name)
		if !ok || !f.r.filled(n, p, f.due(name)) {
			return nil
		}
		for _, item := range n.items {
			v, ok := f.r.listed(item, p)
			switch {
			case !ok:
			case v.IsNull():
				f.r.fail(item.at, p, "null is no state; leave it out: a null state always protects")
			case in[v.String()] != "":
				f.r.fail(item.at, p, "state %q is in %s already; keep one of them", v.String(), in[v.String()])
			default:
				in[v.String()] = name
				out = append(out, v)
			}
		}
		return out
	}
	return read("terminal"), read("live")
}

// listed reads an item of a list of values and remembers its place.
func (r *reader) listed(item *node, p path) (policy.Value, bool) {
	if item.kind == refused {
		r.broken.add(p)
		return policy.Null, false
	}
	v, problem := item.value()
	switch {
	case item.missing():
		r.fail(item.at, p, "an item of the list is empty; write a value, or leave the comma out")
		return policy.Null, false
	case problem != "":
		r.fail(item.at, p, "%s", problem)
		return policy.Null, false
	}
	if at := p.child(v.String()); r.file.places[at] == (span{}) {
		r.file.places[at] = span{item.at, item.at}
	}
	return v, true
}

// pairs reads a key: columns, and the columns of the other table that belong to them.
func (f fields) pairs(other string, add func(column, other string)) {
	n, ok := f.found["key"]
	if !ok {
		return
	}
	p := f.path.child("key")
	if n.kind != mapping || len(n.entries) == 0 {
		f.r.wrong(n, p, f.due("key"))
		return
	}
	for _, e := range n.entries {
		cp := p.child(e.key.text)
		f.r.record(cp, e)
		a := f.r.name(e.key, cp, "the name of a column")
		b := f.r.name(e.value, cp, other)
		if a != "" && b != "" {
			add(a, b)
		}
	}
}

// keep reads what happens to rows without an owner; only one answer is built.
func (f fields) keep(name string) {
	w, ok := f.word(name)
	if !ok || w == "keep" {
		return
	}
	at, p := f.found[name].at, f.path.child(name)
	if w == "due" {
		f.r.fail(at, p, "due is planned, not in this version; write keep, or leave the key out")
		return
	}
	f.r.fail(at, p, "%q is not known; write keep, or leave the key out", w)
}

// only reads the conditions that rows must meet to be looked at.
func (f fields) only(s *policy.Sweep) {
	n, ok := f.found["only"]
	if !ok {
		return
	}
	p := f.path.child("only")
	if n.kind != mapping || len(n.entries) == 0 {
		f.r.wrong(n, p, f.due("only"))
		return
	}
	for _, e := range n.entries {
		cp := p.child(e.key.text)
		f.r.record(cp, e)
		m := policy.Match{Column: f.r.name(e.key, cp, "the name of a column")}
		value := e.value
		if value.kind == mapping {
			if len(value.entries) != 1 || value.entries[0].key.text != "not" {
				f.r.fail(value.at, cp, "the only operator is not; write a value, a list of values, or {not: value}")
				continue
			}
			m.Not, value = true, value.entries[0].value
		}
		if m.Values, ok = f.r.matched(value, cp); ok && m.Column != "" {
			s.Only = append(s.Only, m)
		}
	}
}

// matched reads the values of a condition: one, or a list of them; null is one.
func (r *reader) matched(n *node, p path) ([]policy.Value, bool) {
	items := []*node{n}
	switch {
	case n.kind == list && len(n.items) == 0:
		r.fail(n.at, p, "the list is empty; write a value")
		return nil, false
	case n.kind == list:
		items = n.items
	case n.missing():
		r.fail(n.at, p, "there is no value; write null to match null")
		return nil, false
	}
	var out []policy.Value
	seen := map[string]bool{}
	for _, item := range items {
		v, ok := r.listed(item, p)
		if !ok {
			return nil, false
		}
		if name := strconv.FormatBool(v.IsNull()) + v.String(); !seen[name] {
			seen[name] = true
			out = append(out, v)
		}
	}
	return out, true
}
