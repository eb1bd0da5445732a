package policy

import (
	"fmt"
	"time"
)

// Row is what a decision needs to know of a row.
type Row struct {
	Age     *time.Time       // nil: null
	Columns map[string]Value // the columns that Only, the state guard and the hold name
	Own     *int64           // its own window in seconds, nil where it has none; read only where the sweep has an Own
	Owner   OwnerState       // read only where the guard has an owner
	Owed    bool             // a row that refers to it protects it; read only where the guard has an Owed
}

// OwnerState is what is known of a row's owner.
type OwnerState struct {
	Exists bool // false also where the key to it is null
	State  Value
}

// Verdict is what a right sweep does with a row. Only Due removes it.
type Verdict int

// The verdicts. The zero Verdict keeps.
const (
	Young    Verdict = iota // inside its window, without an age because it lives, or without an expiry
	Outside                 // not matched by Only
	Undated                 // it has no usable age
	Unusable                // past the floor, and its own window is nonsense
	Held                    // past its window, protected by the guard
	Orphan                  // past its window, and its owner does not exist
	Due                     // past its window and let go by the guard
)

func (v Verdict) String() string {
	return [...]string{"young", "outside", "undated", "unusable", "held", "orphan", "due"}[v]
}

// Decision is a verdict and its reason in words.
type Decision struct {
	Verdict Verdict
	Reason  string
}

// Decide says what a right sweep at this now does with the row, and why. It is the definition that every implementation
// is held against.
func (s Sweep) Decide(now time.Time, r Row) Decision {
	s = s.WithDefaults()
	for _, m := range s.Only {
		if v := r.Columns[m.Column]; !m.Matches(v) {
			return Decision{Outside, fmt.Sprintf("%s is %s, which only does not match", m.Column, v)}
		}
	}
	state, terminal := Null, true
	if g := s.Guard.State; g != nil {
		state = r.Columns[g.Column]
		terminal = g.Lets(state)
	}
	if s.Expires && r.Age == nil {
		return Decision{Young, fmt.Sprintf("%s is null: no expiry, kept for ever", s.Age)}
	}
	if r.Age == nil || r.Age.Before(s.Since) {
		// Where the guard can tell that such a row lives, it is alive; only what should have an age can lack one.
		if s.Guard.Ended || !terminal {
			return Decision{Young, fmt.Sprintf("%s is not set: the row is live", s.Age)}
		}
		null := "null or "
		if s.Expires {
			null = ""
		}
		return Decision{Undated, fmt.Sprintf("%s is %sbefore %s", s.Age, null, s.Since.Format(time.DateOnly))}
	}
	w := s.WindowOf(state)
	if s.Own != nil && r.Own != nil {
		floor := CutoffAt(now.Add(-s.Floor))
		switch own, ok := s.OwnWindow(*r.Own); {
		case !ok && floor.Past(*r.Age):
			return Decision{Unusable, fmt.Sprintf("%s is %d seconds, which is no window", s.Own.Column, *r.Own)}
		case !ok:
			return Decision{Young, fmt.Sprintf("%s is not before the cutoff %s (floor %s)", s.Age, floor, FormatDuration(s.Floor))}
		default:
			w = own
		}
	}
	cutoff := w.Cutoff(now)
	if !cutoff.Past(*r.Age) {
		return Decision{Young, fmt.Sprintf("%s is not before the cutoff %s (%s)", s.Age, cutoff, s.keeps(w))}
	}
	if !terminal {
		return Decision{Held, fmt.Sprintf("%s is %s, which is not terminal", s.Guard.State.Column, state)}
	}
	if h := s.Guard.Hold; h != "" && r.Columns[h] == Bool(true) {
		return Decision{Held, fmt.Sprintf("%s is true", h)}
	}
	if g := s.Guard.Owed; g != nil && r.Owed {
		return Decision{Held, fmt.Sprintf("a row of %s refers to it that is not terminal", g.Table)}
	}
	if g := s.Guard.Owner; g != nil {
		if !r.Owner.Exists {
			return Decision{Orphan, fmt.Sprintf("no row of %s owns it", g.Table)}
		}
		if !g.Lets(r.Owner.State) {
			return Decision{Held, fmt.Sprintf("%s of its owner in %s is %s, which is not terminal", g.Column, g.Table, r.Owner.State)}
		}
	}
	return Decision{Due, fmt.Sprintf("before the cutoff %s (%s) and not protected", cutoff, s.keeps(w))}
}
