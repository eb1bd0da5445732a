package policyfile

import (
	"strconv"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// version is that of the language read here.
const version = 1

// defaults are what sweeps and purges are read with where they are silent.
type defaults struct {
	schema       string
	schemaBroken bool // it is written, and wrong: a table without a schema is no fault of its own
	sweep        policy.Sweep
}

// top reads the whole file.
func (r *reader) top(root *node) {
	if !r.version(root) {
		return
	}
	f, ok := r.fields(root, place{1, 1}, path{}, "")
	if !ok {
		return
	}
	d := r.defaults(f)
	if b, ok := f.sub("budget"); ok {
		b.duration("time", true, &r.file.Budget.Time)
		b.count("rows", policy.NoCeiling, true, &r.file.Budget.Rows)
		b.duration("turn", false, &r.file.Budget.Turn)
	}
	if n, ok := f.found["sweeps"]; ok {
		r.sweeps(n, d)
	}
	if n, ok := f.found["purges"]; ok {
		r.purges(n, d)
	}
}

// version reports whether the file is of a version that is read here. Of a newer one nothing else is said: its keys are
// not ours to judge.
func (r *reader) version(root *node) bool {
	if root.kind != mapping {
		return true
	}
	for _, e := range root.entries {
		if e.key.text != "version" {
			continue
		}
		p := path{key: "version"}
		if e.value.kind != scalar || e.value.typ() != integer {
			r.wrong(e.value, p, "a whole number, as in version: 1")
			return true
		}
		n, _ := strconv.Atoi(e.value.text) // what is out of range comes back as the nearest that is not
		switch {
		case n > version:
			r.errs = nil
			r.fail(e.value.at, p, "the file is of version %s, and this prunectl reads version %d; use a newer prunectl", e.value.text, version)
			return false
		case n < version:
			r.fail(e.value.at, p, "there is no version %d; write version: %d", n, version)
		}
	}
	return true
}

func (r *reader) defaults(f fields) defaults {
	var d defaults
	df, ok := f.sub("defaults")
	if !ok {
		d.schemaBroken = r.broken.has(path{key: "defaults"})
		return d
	}
	df.name("schema", &d.schema)
	d.schemaBroken = r.broken.has(path{key: "defaults.schema"})
	df.floor(&d.sweep)
	if d.sweep.Floor != 0 && d.sweep.Floor < policy.DefaultFloor && !r.broken.has(df.path.child("floor")) {
		r.fail(df.found["floor"].at, df.path.child("floor"), "a floor below %s is written in each sweep that needs it, and not for all; move it there",
			policy.FormatDuration(policy.DefaultFloor))
	}
	df.bounds(&d.sweep)
	return d
}

// floor reads the floor. Where it is wrong, windows are not measured by another.
func (f fields) floor(s *policy.Sweep) {
	n, ok := f.found["floor"]
	if !ok {
		return
	}
	p := f.path.child("floor")
	s.Floor = policy.MinWindow
	if w, ok := f.r.window(n, p, f.due("floor")); ok {
		if w.IsNever() || w.IsAtOnce() {
			f.r.fail(n.at, p, "%s is no floor; write the shortest window that is right here, as in floor: 1h", w)
			return
		}
		s.Floor = w.Duration()
	}
}

// bounds reads what a sweep and `defaults` have in common; a purge has some of it.
func (f fields) bounds(s *policy.Sweep) {
	if b, ok := f.sub("batch"); ok {
		b.count("limit", policy.MaxLimit, false, &s.Batch.Limit)
		b.duration("target", false, &s.Batch.Target)
	}
	if c, ok := f.sub("ceiling"); ok {
		c.count("batches", policy.NoCeiling, true, &s.Ceiling.Batches)
		c.count("rows", policy.NoCeiling, true, &s.Ceiling.Rows)
		c.duration("time", true, &s.Ceiling.Time)
	}
	if t, ok := f.sub("timeouts"); ok {
		t.duration("statement", false, &s.Timeouts.Statement)
		t.duration("lock", false, &s.Timeouts.Lock)
	}
	if n, ok := f.found["pause"]; ok && n.isNone() {
		s.Pause = 0
	} else {
		f.duration("pause", false, &s.Pause)
	}
	if w, ok := f.word("commit"); ok {
		switch w {
		case "async", "sync":
			s.Sync = w == "sync"
		default:
			f.r.fail(f.found["commit"].at, f.path.child("commit"), "%q is not known; write async or sync", w)
		}
	}
}

// duration reads a duration above zero; none, where it is taken, is policy.NoCeiling.
func (f fields) duration(name string, none bool, out *time.Duration) {
	n, ok := f.found[name]
	if !ok {
		return
	}
	p := f.path.child(name)
	if none && n.isNone() {
		*out = policy.NoCeiling
		return
	}
	s, ok := f.r.literal(n, p, f.due(name))
	if !ok {
		return
	}
	d, err := policy.ParseDuration(s)
	if err != nil {
		f.r.fail(n.at, p, "%s", err)
		return
	}
	*out = d
}

// window reads a duration that a row is kept, or never, or at_once.
func (r *reader) window(n *node, p path, due string) (policy.Window, bool) {
	s, ok := r.literal(n, p, due)
	if !ok {
		return policy.Never, false
	}
	w, err := policy.ParseWindow(s)
	if err != nil {
		r.fail(n.at, p, "%s", err)
		return policy.Never, false
	}
	return w, true
}
