package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1ms": time.Millisecond, "500ms": 500 * time.Millisecond, "1s": time.Second, "90min": 90 * time.Minute, "24h": day, "7d": 7 * day,
		"4w": 28 * day, "36500d": policy.MaxWindow, "5214w": 5214 * 7 * day, "007d": 7 * day, "3153600000s": policy.MaxWindow,
	} {
		if got, err := policy.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}

// TestRefusedDurations: each message quotes the text and says what to write.
func TestRefusedDurations(t *testing.T) {
	for text, says := range map[string]string{
		"":                       "is empty; write a number and a unit",
		"  ":                     "is empty; write a number and a unit",
		"-7d":                    "is negative; write a duration above zero",
		"0d":                     "is zero; write a duration above zero",
		"0":                      "is zero; write a duration above zero",
		"00s":                    "is zero; write a duration above zero",
		"90":                     "has no unit; write 90d, 90h or 90min",
		"7.5d":                   "is not a whole number",
		"7,5d":                   "is not a whole number",
		"1e3d":                   "is not a whole number",
		"1_000s":                 "is not a whole number",
		"7 d":                    "has blanks in it; write 7d",
		"7d ":                    "has blanks in it; write 7d",
		" 7d":                    "is no duration",
		"1m":                     "m is read both ways; write min for minutes",
		"1M":                     "m is read both ways; write min for minutes",
		"1mo":                    "months have no fixed length",
		"2months":                "months have no fixed length",
		"1y":                     "years have no fixed length",
		"P30D":                   "is no duration",
		"d":                      "is no duration",
		"+7d":                    "is no duration",
		"never":                  "is no duration",
		"none":                   "is no duration",
		"Infinity":               "is no duration",
		"NaN":                    "is no duration",
		"\u0667d":                "is no duration",
		"1h30min":                "has no known unit",
		"1D":                     "has no known unit",
		"1H":                     "has no known unit",
		"30 days":                "has no known unit",
		"1us":                    "has no known unit",
		"36501d":                 "is over the longest duration; it is 36500d",
		"5215w":                  "is over the longest duration",
		"2500000d":               "is over the longest duration",
		"99999999999999999999d":  "is over the longest duration",
		"9223372036854775807ms":  "is over the longest duration",
		"18446744073709551617ms": "is over the longest duration",
	} {
		d, err := policy.ParseDuration(text)
		if err == nil {
			t.Errorf("%q became %s", text, d)
			continue
		}
		if d != 0 {
			t.Errorf("%q: %s beside the error", text, d)
		}
		if message := err.Error(); !strings.Contains(message, says) || text != "" && !strings.Contains(message, "\""+text) || strings.ContainsRune(message, '\n') {
			t.Errorf("%q: %q does not quote it and say %q", text, message, says)
		}
	}
}

func TestParseWindow(t *testing.T) {
	if w, err := policy.ParseWindow("never"); err != nil || !w.IsNever() {
		t.Errorf("never: %s, %v", w, err)
	}
	if w, err := policy.ParseWindow("at_once"); err != nil || !w.IsAtOnce() {
		t.Errorf("at_once: %s, %v", w, err)
	}
	if w, err := policy.ParseWindow("90d"); err != nil || w != policy.MustWindow(90*day) {
		t.Errorf("90d: %s, %v", w, err)
	}
	for text, says := range map[string]string{
		"forever": "write never to keep for ever", "none": "write never to keep for ever", "off": "write never to keep for ever",
		"0": "could mean at once or for ever", "0d": "could mean at once or for ever", "500ms": "a window has whole seconds", "2000ms": "a window has whole seconds",
		"": "is empty", "At_once": "is no duration", "now": "write at_once", "immediately": "write at_once", "at once": "write at_once", "Never": "is no duration",
	} {
		if w, err := policy.ParseWindow(text); err == nil || !strings.Contains(err.Error(), says) || !w.IsNever() {
			t.Errorf("%q: %s, %v; it does not say %q", text, w, err, says)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		7 * day: "7d", 36 * time.Hour: "36h", 90 * time.Minute: "90min", 61 * time.Second: "61s", 1500 * time.Millisecond: "1500ms",
		0: "0s", 1500 * time.Microsecond: "1.5ms", -time.Hour: "-1h0m0s", policy.MaxWindow: "36500d",
	} {
		if got := policy.FormatDuration(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// FuzzParseDuration: what is read is in range and is written back so that it reads the same; what is not read is zero, and
// its message is one line.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"90d", "1ms", "36500d", "0d", "-1h", "1h30min", "7 d", "٧d", "1e3d", "", "\n", "9999999999999999999999w"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := policy.ParseDuration(text)
		if err != nil {
			if d != 0 || strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("%q: %s beside %q", text, d, err)
			}
			return
		}
		if d <= 0 || d > policy.MaxWindow || d%time.Millisecond != 0 {
			t.Errorf("%q became %s", text, d)
		}
		if again, err := policy.ParseDuration(policy.FormatDuration(d)); err != nil || again != d {
			t.Errorf("%q became %s, written %s, read again %s, %v", text, d, policy.FormatDuration(d), again, err)
		}
		w, err := policy.ParseWindow(text)
		switch {
		case strings.HasSuffix(text, "ms"):
			if err == nil {
				t.Errorf("a window of %q was read", text)
			}
		case err != nil || w.Duration() != d:
			t.Errorf("%q is a duration of %s, and a window of %s, %v", text, d, w, err)
		default:
			if again, err := policy.ParseWindow(w.String()); err != nil || again != w {
				t.Errorf("the window %s reads as %s, %v", w, again, err)
			}
		}
	})
}
