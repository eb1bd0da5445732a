package policy

// A row that expires says itself when it goes. Its sweep has no window but a grace, which may be [AtOnce] whatever the guard
// is, and no floor: who wrote the expiry has decided.

// AgeKey is the key of the policy file that names the column of the age.
func (s Sweep) AgeKey() string {
	if s.Expires {
		return "expires"
	}
	return "age"
}

// expiresProblems are what cannot stand beside an expiry. floorWritten is whether the sweep says a floor.
func (s Sweep) expiresProblems(add, atKey adder, floorWritten bool) {
	if len(s.ByState) > 0 {
		add("window", "write a sweep for each state, with its own grace", "windows by state do not stand beside an expiry")
	}
	if s.Own != nil {
		atKey("row_window", "leave it out, or write age and window in place of expires", "a row that says when it expires has no window beside it")
	}
	if floorWritten {
		atKey("floor", "leave it out", "an expiry has no floor: what wrote it has decided how long the row is kept")
	}
}

// keeps says for how long the rows of a window are kept, in the words of the sweep.
func (s Sweep) keeps(w Window) string {
	switch {
	case !s.Expires:
		return "window " + w.String()
	case w.IsAtOnce():
		return "no grace"
	}
	return "grace " + w.String()
}
