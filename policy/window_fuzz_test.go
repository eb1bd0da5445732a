package policy_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prunectl/prunectl/policy"
)

// FuzzParseWindow: a window is one of the two words or whole seconds in range, is written back so that it reads the same,
// and cuts at an instant that PostgreSQL holds; what is refused keeps for ever, and says on one line what it was.
func FuzzParseWindow(f *testing.F) {
	for _, s := range []string{"never", "at_once", "90d", "1s", "36500d", "3153600000s", "2000ms", "1w", "0", "forever", " 7d", "7d\x00", "１d", "at once", "3153600001s", "9223372036854775807s"} {
		f.Add(s)
	}
	now := time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.FixedZone("", 5*3600+1800))
	f.Fuzz(func(t *testing.T, text string) {
		w, err := policy.ParseWindow(text)
		if again, e := policy.ParseWindow(text); again != w || (e == nil) != (err == nil) || err != nil && e.Error() != err.Error() {
			t.Fatalf("%q is %s, %v, and then %s, %v", text, w, err, again, e)
		}
		if err != nil {
			if w != policy.Never {
				t.Errorf("%q: %s beside an error", text, w)
			}
			if m := err.Error(); strings.ContainsFunc(m, unicode.IsControl) {
				t.Errorf("%q: not one printable line: %q", text, m)
			}
			return
		}
		if strings.HasSuffix(text, "ms") {
			t.Errorf("%q was read as a window; they are of whole seconds", text)
		}
		if again, err := policy.ParseWindow(w.String()); err != nil || again != w {
			t.Errorf("%q is written %s, which reads as %s, %v", text, w, again, err)
		}
		switch cut := w.Cutoff(now); {
		case w.IsNever():
			if text != "never" || !cut.IsZero() {
				t.Errorf("%q keeps for ever, and cuts at %s", text, cut)
			}
		case w.IsAtOnce():
			if text != "at_once" || !cut.Time().Equal(now.Truncate(time.Microsecond)) {
				t.Errorf("%q is at once, and cuts at %s", text, cut)
			}
		default:
			d, err := policy.ParseDuration(text)
			if err != nil || d != w.Duration() || d < policy.MinWindow || d > policy.MaxWindow || d%time.Second != 0 {
				t.Errorf("%q is a window of %s, and a duration of %s, %v", text, w.Duration(), d, err)
			}
			if cut.Past(now.Add(-d)) || !cut.Past(now.Add(-d-time.Microsecond)) {
				t.Errorf("%q cuts at %s, seen from %s", text, cut, now)
			}
			if year := cut.Time().Year(); year < 1900 || year > 2024 {
				t.Errorf("%q cuts in the year %d", text, year)
			}
		}
	})
}

// FuzzFormatDuration: a duration that the language has is written so that it reads the same, in one unit; any other is
// written as Go writes it. A window of it is given or refused, and never another one.
func FuzzFormatDuration(f *testing.F) {
	for _, d := range []time.Duration{0, 1, -1, time.Microsecond, time.Millisecond, time.Second, 90 * time.Minute, 36 * time.Hour, 7 * day, policy.MaxWindow, policy.MaxWindow + 1, policy.MaxWindow + time.Second, 1<<63 - 1, -1 << 63} {
		f.Add(int64(d))
	}
	f.Fuzz(func(t *testing.T, nanoseconds int64) {
		d := time.Duration(nanoseconds)
		text := policy.FormatDuration(d)
		got, err := policy.ParseDuration(text)
		switch in := d > 0 && d <= policy.MaxWindow && d%time.Millisecond == 0; {
		case in && (err != nil || got != d):
			t.Errorf("%d ns are written %s, which reads as %d ns, %v", d, text, got, err)
		case !in && err == nil:
			t.Errorf("%d ns are written %s, which is taken for %d ns", d, text, got)
		}
		if d <= 0 || d%time.Millisecond != 0 {
			if text != d.String() {
				t.Errorf("%d ns are written %s; Go writes %s", d, text, d)
			}
		}
		w, err := policy.NewWindow(d)
		if in := d >= policy.MinWindow && d <= policy.MaxWindow && d%time.Second == 0; in != (err == nil) || in && w.Duration() != d || !in && w != policy.Never {
			t.Errorf("%s is a window of %s, %v", d, w, err)
		}
	})
}
