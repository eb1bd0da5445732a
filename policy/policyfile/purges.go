package policyfile

import (
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// purgePath is the path of a key of a purge; "" is the purge itself.
func purgePath(purge, key string) path {
	p := path{key: "purges"}.child(purge)
	if key != "" {
		p = p.child(key)
	}
	return p
}

func (r *reader) purges(n *node, d defaults) {
	p := path{key: "purges"}
	const example = "as in purges: {tenant: {key: tenant_id, tables: [...]}}"
	switch {
	case n.kind != mapping:
		r.wrong(n, p, "a mapping of names to purges, "+example)
		return
	case len(n.entries) == 0:
		r.fail(n.at, p, "there is no purge; write at least one, or leave the key out")
		return
	case nameless(n):
		r.fail(n.at, p, "these are the keys of a purge, and it has no name; write one above them, %s", example)
		return
	}
	for _, e := range n.entries {
		r.record(p.child(e.key.text), entry{e.key, e.key})
		r.file.Purges = append(r.file.Purges, r.purge(e, d))
	}
}

// nameless reports whether the keys of a purge stand where its name is due.
func nameless(n *node) bool {
	for _, e := range n.entries {
		if e.key.text == "tables" && e.value.kind == list {
			return true
		}
	}
	return false
}

// purge reads one purge. What it has in common with a sweep is read as that of one.
func (r *reader) purge(e entry, d defaults) policy.Purge {
	u := policy.Purge{Name: e.key.text}
	f, ok := r.fields(e.value, e.key.at, purgePath(u.Name, ""), "purges")
	if !ok {
		return u
	}
	f.name("key", &u.Key)
	u.Tables = f.purgeTables(d)
	u.Exclude = f.exclude(d)
	s := policy.Sweep{Batch: d.sweep.Batch, Timeouts: d.sweep.Timeouts, Pause: d.sweep.Pause}
	f.bounds(&s)
	f.set(&s)
	u.Batch, u.Timeouts, u.Pause, u.Set = s.Batch, s.Timeouts, s.Pause, s.Set
	r.purgeProblems(u)
	return u
}

// purgeTables reads the tables in their order. One that could not be read has its place in the result, as with children.
func (f fields) purgeTables(d defaults) []policy.PurgeTable {
	items, p := f.items("tables")
	var out []policy.PurgeTable
	for i, item := range items {
		var table policy.PurgeTable
		at := f.r.item(p, i, item)
		if t, ok := f.r.tableItem(item, at); ok {
			table.Table = t.table("table", d)
			t.name("column", &table.Column)
			table.Children = t.children("purges.tables.children", d)
		}
		out = append(out, table)
	}
	return out
}

// tableItem reads one item of the tables. A name alone is what a list of tables is elsewhere, so its message shows the
// mapping.
func (r *reader) tableItem(item *node, at path) (fields, bool) {
	if item.kind == scalar && item.typ() == text {
		r.fail(item.at, at, "found %s; write {table: %s}", item.found(), item.source())
		return fields{}, false
	}
	return r.fields(item, item.at, at, "purges.tables")
}

// exclude reads the tables that keep their rows, and why, in the order of the file.
func (f fields) exclude(d defaults) []policy.Exclusion {
	n, ok := f.found["exclude"]
	if !ok {
		return nil
	}
	p := f.path.child("exclude")
	if n.kind != mapping || len(n.entries) == 0 {
		f.r.wrong(n, p, f.due("exclude"))
		return nil
	}
	var out []policy.Exclusion
	for _, e := range n.entries {
		written := p.child(e.key.text)
		f.r.record(written, e)
		name := f.r.table(e.key, written, "the name of a table", d)
		read := f.r.isText(e.value, written, `why its rows stay, as in {public.audit_log: "kept for ten years by law"}`)
		if name.IsZero() {
			continue
		}
		whole := p.child(name.String())
		f.r.record(whole, e)
		if !read {
			f.r.broken.add(whole)
		}
		reason := strings.Join(strings.Fields(e.value.text), " ") // it is printed on one line
		out = append(out, policy.Exclusion{Table: name, Reason: reason})
	}
	return out
}

// purgeProblems reports what the policy itself finds wrong, unless it follows from what was reported already.
func (r *reader) purgeProblems(u policy.Purge) {
	for _, pr := range u.Problems() {
		p := purgePath(u.Name, pr.Key)
		if r.followsInPurge(u, pr) {
			continue
		}
		r.fail(r.file.place(p, pr.AtKey), p, "%s", policy.Problem{What: pr.What, Fix: pr.Fix})
	}
}

// followsInPurge is follows for a purge: a problem follows from a fault of the same key, of a key in it or above it, and
// that a table has no column from one of a column.
func (r *reader) followsInPurge(u policy.Purge, pr policy.Problem) bool {
	if pr.Key == "" {
		return false
	}
	purge := purgePath(u.Name, "").key + "."
	for b := range r.broken[""] {
		switch b, ok := strings.CutPrefix(b, purge); {
		case !ok:
		case b == pr.Key, strings.HasPrefix(b, pr.Key+"."), strings.HasPrefix(pr.Key, b+"."):
			return true
		}
	}
	if pr.Key != "key" {
		return false
	}
	for i := range u.Tables {
		if r.broken.has(purgePath(u.Name, "tables."+strconv.Itoa(i)+".column")) {
			return true
		}
	}
	return false
}
