package policy

import (
	"fmt"
	"time"
)

// The bounds of a window: POLICY values are whole seconds from one second to 36500 days, so that a cutoff is always an
// instant that PostgreSQL can hold.
const (
	MinWindow = time.Second
	MaxWindow = 36500 * 24 * time.Hour
)

// NoCeiling lifts a ceiling of rows, batches or time. It has a name because neither zero (the documented default) nor a
// negative number (an error) may mean "unlimited".
const NoCeiling = 1<<63 - 1

// Window is how long a row is kept, in whole seconds. The zero Window keeps for ever.
type Window struct{ seconds int64 }

var (
	// Never keeps for ever. It is the zero Window, with a name.
	Never = Window{}
	// AtOnce keeps no longer than the guard does: a row goes with the first sweep after nothing is owed on it.
	AtOnce = Window{seconds: -1}
)

// NewWindow returns the window of d. It refuses anything but whole seconds from [MinWindow] to [MaxWindow]: zero and
// negative durations have no meaning as a window ("for ever" is [Never]).
func NewWindow(d time.Duration) (Window, error) {
	switch {
	case d < MinWindow || d > MaxWindow:
		return Window{}, fmt.Errorf("a window of %s is out of range; it is from 1s to 36500d, or never", d)
	case d%time.Second != 0:
		return Window{}, fmt.Errorf("a window of %s is not of whole seconds", d)
	}
	return Window{seconds: int64(d / time.Second)}, nil
}

// MustWindow is [NewWindow] for a constant of the program; it panics where NewWindow refuses.
func MustWindow(d time.Duration) Window {
	w, err := NewWindow(d)
	if err != nil {
		panic(err)
	}
	return w
}

// IsNever reports whether the window keeps for ever.
func (w Window) IsNever() bool { return w.seconds == 0 }

// IsAtOnce reports whether the window keeps no longer than the guard does.
func (w Window) IsAtOnce() bool { return w == AtOnce }

// Duration is the length of the window; 0 for [AtOnce] and for [Never], so ask IsNever first.
func (w Window) Duration() time.Duration { return time.Duration(w.Seconds()) * time.Second }

// Seconds is the length of the window in seconds; 0 for [AtOnce] and for [Never].
func (w Window) Seconds() int64 { return max(0, w.seconds) }

// String is the window in the policy file's grammar: "90d", "36h", "never", "at_once".
func (w Window) String() string {
	switch {
	case w.IsNever():
		return "never"
	case w.IsAtOnce():
		return "at_once"
	}
	return FormatDuration(w.Duration())
}

// Shorter reports whether w lets a row go sooner than o does; [Never] is the longest.
func (w Window) Shorter(o Window) bool {
	return !w.IsNever() && (o.IsNever() || w.seconds < o.seconds)
}

// Cutoff is now - window, cut down to the microsecond: PostgreSQL keeps microseconds, and rounding up would let a row go
// that is exactly as old as its window. The cutoff of [Never] is the zero Cutoff.
func (w Window) Cutoff(now time.Time) Cutoff {
	if w.IsNever() {
		return Cutoff{}
	}
	return CutoffAt(now.Add(-w.Duration()))
}

// Cutoff is the instant before which a row is past its window: a row strictly before it, never one exactly at it. The
// zero Cutoff finds nothing.
type Cutoff struct{ at time.Time }

// CutoffAt returns the cutoff at t, in UTC, cut down to the microsecond.
func CutoffAt(t time.Time) Cutoff {
	if t.IsZero() {
		return Cutoff{}
	}
	t = t.UTC().Round(0) // without the monotonic reading, so that equal cutoffs are ==
	return Cutoff{at: t.Add(-time.Duration(t.Nanosecond() % 1000))}
}

// IsZero reports whether the cutoff finds nothing.
func (c Cutoff) IsZero() bool { return c.at.IsZero() }

// Time is the instant, in UTC; the zero time for the zero Cutoff.
func (c Cutoff) Time() time.Time { return c.at }

// Past reports whether a row of this age is past its window.
func (c Cutoff) Past(age time.Time) bool { return !c.IsZero() && age.Before(c.at) }

// Earlier is the cutoff by d earlier, for rows that are kept longer; the zero Cutoff stays what it is.
func (c Cutoff) Earlier(d time.Duration) Cutoff {
	if c.IsZero() {
		return c
	}
	return CutoffAt(c.at.Add(-d))
}

// String is the instant in RFC 3339, in UTC, or "none".
func (c Cutoff) String() string {
	if c.IsZero() {
		return "none"
	}
	return c.at.Format(time.RFC3339Nano)
}
