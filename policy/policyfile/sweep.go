package policyfile

import (
	"strings"
	"time"

	"github.com/prunectl/prunectl/policy"
)

func (r *reader) sweeps(n *node, d defaults) {
	p := path{key: "sweeps"}
	switch {
	case n.kind != mapping:
		r.wrong(n, p, "a mapping of names to sweeps, as in sweeps: {old_jobs: {table: public.jobs, ...}}")
		return
	case len(n.entries) == 0:
		r.fail(n.at, p, "there is no sweep; write at least one")
		return
	}
	var read []sweepAt
	for _, e := range n.entries {
		r.record(path{sweep: e.key.text}, entry{e.key, e.key})
		read = append(read, r.sweep(e, d))
	}
	r.overlaps(read)
	for _, s := range read {
		r.file.Sweeps = append(r.file.Sweeps, s.Sweep)
	}
}

// sweepAt is a sweep and where its name stands.
type sweepAt struct {
	policy.Sweep
	at       place
	overlaps *node
}

func (r *reader) sweep(e entry, d defaults) sweepAt {
	s := d.sweep
	s.Name = e.key.text
	p := path{sweep: s.Name}
	f, ok := r.fields(e.value, e.key.at, p, "sweep")
	if !ok {
		return sweepAt{Sweep: policy.Sweep{Name: s.Name}, at: e.key.at}
	}
	s.Table = f.table("table", d)
	if _, ok := f.found["expires"]; ok {
		f.expires(&s)
	} else {
		f.instant("age", &s)
		f.floor(&s)
		f.windows(&s)
	}
	f.rowWindow(&s)
	f.only(&s)
	f.guard(&s, d)
	s.Children = f.children("sweep.children", d)
	f.cascades(&s, d)
	f.name("index", &s.Index)
	f.bounds(&s)
	f.set(&s)
	f.overlaps(&s)
	r.problems(s)
	return sweepAt{s, e.key.at, f.found["overlaps"]}
}

// problems reports what the policy itself finds wrong, unless it follows from what was reported already.
func (r *reader) problems(s policy.Sweep) {
	for _, pr := range s.Problems() {
		p := path{s.Name, pr.Key}
		if r.follows(p, pr, s) {
			continue
		}
		r.fail(r.file.place(p, pr.AtKey), p, "%s", policy.Problem{What: pr.What, Fix: pr.Fix})
	}
}

// follows reports whether a problem follows from a fault that was reported: one of the same key, of a key in it or above
// it, for the windows by state one of the states that they are held against, and for at_once one of what stands beside it.
func (r *reader) follows(p path, pr policy.Problem, s policy.Sweep) bool {
	if p.key == "" {
		return false
	}
	states := len(s.ByState) > 0 && (pr.AtKey || pr.Key == "window")
	atOnce := s.Window.IsAtOnce() && pr.Key == "window"
	if atOnce && r.broken.has(path{key: "defaults.floor"}) {
		return true
	}
	for b := range r.broken[p.sweep] {
		switch {
		case b == "":
		case b == p.key, strings.HasPrefix(b, p.key+"."), strings.HasPrefix(p.key, b+"."):
			return true
		case states && (b == "guard" || b == "guard.state" || b == "guard.terminal"):
			return true
		case atOnce && (b == "guard" || b == "guard.owner" || b == "guard.owed" || b == "floor"):
			return true
		}
	}
	return false
}

// instant reads the column of an age or an expiry: its name, or a mapping that says more, which is the result.
func (f fields) instant(name string, s *policy.Sweep) (fields, bool) {
	n, ok := f.found[name]
	if !ok {
		return fields{}, false
	}
	if n.kind != mapping {
		f.name(name, &s.Age)
		return fields{}, false
	}
	a, ok := f.sub(name)
	if !ok {
		return fields{}, false
	}
	a.name("column", &s.Age)
	if as, ok := a.word("as"); ok && as != "instant" {
		at, p := a.found["as"].at, a.path.child("as")
		if isPlanned, near := ageKind(as); isPlanned {
			f.r.fail(at, p, "%s is planned, not in this version; the age is a timestamptz column", as)
		} else {
			f.r.fail(at, p, "%q is no kind of age%s", as, near)
		}
	}
	a.since(s)
	return a, true
}

// ageKinds are the kinds of age that later versions read.
var ageKinds = []string{"wall", "epoch_s", "epoch_ms", "epoch_us", "date", "uuidv7", "ulid", "rfc3339"}

func ageKind(as string) (planned bool, hint string) {
	for _, k := range ageKinds {
		if k == as {
			return true, ""
		}
	}
	return false, "; write instant, or leave the key out"
}

func (a fields) since(s *policy.Sweep) {
	n, ok := a.found["since"]
	if !ok {
		return
	}
	p := a.path.child("since")
	text, ok := a.r.literal(n, p, a.due("since"))
	if !ok {
		return
	}
	t, err := time.Parse(time.DateOnly, text)
	switch {
	case err != nil:
		a.r.fail(n.at, p, "%q is no date; write year-month-day, as in 1990-01-01", text)
	case t.Year() < 2:
		a.r.fail(n.at, p, "%q is what a missing date looks like in many programs; write a later one", text)
	default:
		s.Since = t
	}
}

// windows reads the window: one for all rows, or one for each terminal state.
func (f fields) windows(s *policy.Sweep) {
	n, ok := f.found["window"]
	if !ok {
		return
	}
	p := f.path.child("window")
	if n.kind != mapping {
		if w, ok := f.r.window(n, p, f.due("window")); ok {
			s.Window = w
		}
		return
	}
	if len(n.entries) == 0 {
		f.r.fail(n.at, p, "the mapping is empty; write a window for each terminal state, or one for all")
		return
	}
	for _, e := range n.entries {
		sp := p.child(e.key.text)
		f.r.record(sp, e)
		state, problem := e.key.value()
		if problem == "" && state.IsNull() {
			problem = "null is no state; leave it out: a null state always protects"
		}
		if problem != "" {
			f.r.fail(e.key.at, sp, "%s", problem)
			continue
		}
		w, _ := f.r.window(e.value, sp, "a duration or never, as in 90d")
		s.ByState = append(s.ByState, policy.StateWindow{State: state, Window: w})
	}
}

// set reads the parameters of each batch's transaction.
func (f fields) set(s *policy.Sweep) {
	n, ok := f.found["set"]
	if !ok {
		return
	}
	p := f.path.child("set")
	if n.kind != mapping || len(n.entries) == 0 {
		f.r.wrong(n, p, f.due("set"))
		return
	}
	for _, e := range n.entries {
		sp := p.child(e.key.text)
		f.r.record(sp, e)
		if !f.r.isText(e.value, sp, `a text, as in {que.skip_notify: "true"}`) {
			continue
		}
		s.Set = append(s.Set, policy.Setting{Name: e.key.text, Value: e.value.text})
	}
}

// overlaps reads the names of sweeps; what they mean is asked when all sweeps are read.
func (f fields) overlaps(s *policy.Sweep) {
	n, ok := f.found["overlaps"]
	if !ok {
		return
	}
	p := f.path.child("overlaps")
	if !f.r.filled(n, p, f.due("overlaps")) {
		return
	}
	for _, item := range n.items {
		if !f.r.isText(item, p, "the name of a sweep") {
			continue
		}
		s.Overlaps = append(s.Overlaps, item.text)
	}
}

// filled reports whether the node is a list with something in it, and says so where not.
func (r *reader) filled(n *node, p path, due string) bool {
	switch {
	case n.kind == list && len(n.items) > 0:
		return true
	case n.kind == list:
		r.fail(n.at, p, "the list is empty; write %s", due)
	case n.kind == scalar && !n.missing() && n.typ() != null:
		r.fail(n.at, p, "found %s, and a list is due; write [%s]", n.found(), n.source())
	default:
		r.wrong(n, p, due)
	}
	return false
}
