package policy_test

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata" // zones are part of the tests, whatever the machine has

	"github.com/prunectl/prunectl/policy"
)

const day = 24 * time.Hour

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNewWindow(t *testing.T) {
	for _, d := range []time.Duration{time.Second, time.Minute + time.Second, day, policy.MaxWindow} {
		w, err := policy.NewWindow(d)
		if err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if w.Duration() != d || w.Seconds() != int64(d/time.Second) || w.IsNever() {
			t.Errorf("%s became %s, %ds, never %t", d, w.Duration(), w.Seconds(), w.IsNever())
		}
	}
	for _, d := range []time.Duration{0, 1, time.Second - 1, time.Second + time.Millisecond, -1, -day, policy.MaxWindow + time.Second, math.MaxInt64, math.MinInt64} {
		if w, err := policy.NewWindow(d); err == nil || !w.IsNever() {
			t.Errorf("%s became %s, error %v; it must be refused, and keep for ever beside the error", d, w, err)
		}
	}
}

// TestZeroKeeps: what nobody set keeps for ever and finds nothing.
func TestZeroKeeps(t *testing.T) {
	var w policy.Window
	now := at(t, "2026-03-01T00:00:00Z")
	if !w.IsNever() || w != policy.Never || w.String() != "never" {
		t.Errorf("the zero window is %s", w)
	}
	for _, c := range []policy.Cutoff{{}, w.Cutoff(now), policy.CutoffAt(time.Time{}), policy.Cutoff{}.Earlier(day)} {
		if !c.IsZero() || c.Past(time.Time{}) || c.Past(now.Add(-policy.MaxWindow)) || c.String() != "none" {
			t.Errorf("the zero cutoff finds something: %s", c)
		}
	}
}

func TestCutoff(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		window time.Duration
		now    time.Time
		want   string
	}{
		{"a plain month", 30 * day, at(t, "2026-03-01T00:00:00Z"), "2026-01-30T00:00:00Z"},
		{"half a microsecond late", 30 * day, at(t, "2026-03-01T00:00:00.0000005Z"), "2026-01-30T00:00:00Z"},
		{"one nanosecond before the full microsecond", 30 * day, at(t, "2026-03-01T00:00:00.000000999Z"), "2026-01-30T00:00:00Z"},
		{"a full microsecond", 30 * day, at(t, "2026-03-01T00:00:00.000001Z"), "2026-01-30T00:00:00.000001Z"},
		{"before the epoch it is cut down too", day, at(t, "1960-01-02T00:00:00.0000019Z"), "1960-01-01T00:00:00.000001Z"},
		{"a day is 24 hours when the clock goes forward", 7 * day, time.Date(2026, 4, 1, 12, 0, 0, 0, berlin), "2026-03-25T10:00:00Z"},
		{"and when it goes back", 7 * day, time.Date(2026, 10, 28, 12, 0, 0, 0, berlin), "2026-10-21T11:00:00Z"},
		{"over a leap day", 366 * day, at(t, "2025-01-01T00:00:00Z"), "2024-01-01T00:00:00Z"},
		{"the longest", policy.MaxWindow, at(t, "2026-11-30T02:17:04Z"), "1926-12-25T02:17:04Z"},
	} {
		got := policy.MustWindow(c.window).Cutoff(c.now)
		if got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got.Time().Location() != time.UTC {
			t.Errorf("%s: not in UTC but %s", c.name, got.Time().Location())
		}
	}
}

// TestEdge: a row of exactly the window's age is kept; one microsecond older is past, whatever the nanoseconds of now.
func TestEdge(t *testing.T) {
	w := policy.MustWindow(30 * day)
	for _, now := range []string{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00.0000005Z", "2026-03-01T01:00:00.000000999+01:00"} {
		cutoff := w.Cutoff(at(t, now))
		for age, want := range map[string]bool{
			"2026-01-30T00:00:00Z":             false,
			"2026-01-30T00:00:00.000001Z":      false,
			"2026-01-29T23:59:59.999999Z":      true,
			"2026-01-30T00:59:59.999999+01:00": true,
			"2026-01-30T01:00:00+01:00":        false,
		} {
			if got := cutoff.Past(at(t, age)); got != want {
				t.Errorf("now %s: a row of %s is past: %t, want %t", now, age, got, want)
			}
		}
	}
}

func TestEarlier(t *testing.T) {
	now := at(t, "2026-03-01T00:00:00.0000005Z")
	short, long := policy.MustWindow(day), policy.MustWindow(7*day)
	if got, want := short.Cutoff(now).Earlier(6*day), long.Cutoff(now); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAtOnce: of all windows the shortest, which is not the one that keeps for ever.
func TestAtOnce(t *testing.T) {
	w, now := policy.AtOnce, at(t, "2026-03-01T00:00:00.0000015Z")
	if !w.IsAtOnce() || w.IsNever() || w.Seconds() != 0 || w.Duration() != 0 || w.String() != "at_once" {
		t.Errorf("%s: never %t, %d seconds", w, w.IsNever(), w.Seconds())
	}
	for _, o := range []policy.Window{policy.Never, policy.MustWindow(time.Second)} {
		if o.IsAtOnce() || !w.Shorter(o) || o.Shorter(w) {
			t.Errorf("%s is at once, or not longer than it", o)
		}
	}
	if w.Shorter(w) {
		t.Error("it is shorter than itself")
	}
	if got := w.Cutoff(now); got != policy.CutoffAt(now) || got.String() != "2026-03-01T00:00:00.000001Z" {
		t.Errorf("the cutoff is %s", got)
	}
	s := policy.Sweep{ByState: []policy.StateWindow{{State: policy.Text("a"), Window: policy.MustWindow(time.Second)}, {State: policy.Text("b"), Window: w}}}
	if s.Shortest() != w {
		t.Errorf("the shortest is %s", s.Shortest())
	}
}

func TestShorter(t *testing.T) {
	one, two := policy.MustWindow(day), policy.MustWindow(2*day)
	for _, c := range []struct {
		a, b policy.Window
		want bool
	}{{one, two, true}, {two, one, false}, {one, one, false}, {one, policy.Never, true}, {policy.Never, one, false}, {policy.Never, policy.Never, false}} {
		if got := c.a.Shorter(c.b); got != c.want {
			t.Errorf("%s shorter than %s: %t", c.a, c.b, got)
		}
	}
}

func TestMustWindowPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a window of zero was made")
		}
	}()
	policy.MustWindow(0)
}

// TestEqualCutoffs holds that cutoffs of one instant are ==, whichever clock the instant was read from.
func TestEqualCutoffs(t *testing.T) {
	now := time.Now() // it carries a monotonic reading
	if policy.CutoffAt(now) != policy.CutoffAt(now.Round(0)) {
		t.Error("a monotonic reading tells equal cutoffs apart")
	}
}
