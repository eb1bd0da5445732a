package policyfile

import "github.com/prunectl/prunectl/policy"

// expires reads when a row expires, which stands in the place of its age and of the window.
func (f fields) expires(s *policy.Sweep) {
	s.Expires, s.Window, s.Floor = true, policy.AtOnce, 0 // the floor of all sweeps is about windows
	e, ok := f.instant("expires", s)
	if ok {
		e.grace(s)
	}
	f.floor(s)
	f.besides("age", "expires stands in the place of age; keep one of them")
	f.besides("window", "expires stands in the place of window; leave it out, and write grace in expires to keep rows for longer")
}

// besides refuses a key that has no place beside another.
func (f fields) besides(name, message string) {
	if _, ok := f.found[name]; ok {
		p := f.path.child(name)
		f.r.fail(f.r.file.places[p].key, p, "%s", message)
	}
}

// grace reads how long a row is kept after it expired.
func (e fields) grace(s *policy.Sweep) {
	n, ok := e.found["grace"]
	if !ok {
		return
	}
	p := e.path.child("grace")
	w, ok := e.r.window(n, p, e.due("grace"))
	switch {
	case !ok:
	case w.IsNever():
		e.r.fail(n.at, p, "never would keep what has expired for ever; write a duration, as in grace: 1d")
	case w.IsAtOnce():
		e.r.fail(n.at, p, "at_once is no duration; leave the key out: a row then goes as soon as it has expired")
	default:
		s.Window = w
	}
}
