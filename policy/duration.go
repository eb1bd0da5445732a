package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// units are those of the policy file and of the command's flags, longest first. A day is 24 hours, a week 7 days.
var units = []struct {
	name string
	d    time.Duration
}{{"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// ParseWindow reads a window of the policy file: a whole number and one of s, min, h, d, w, or "never", or "at_once". The
// error quotes the text and says what to write.
func ParseWindow(text string) (Window, error) {
	switch text {
	case "never":
		return Never, nil
	case "at_once":
		return AtOnce, nil
	case "now", "immediately", "at once":
		return Window{}, fmt.Errorf("%q is no window; write at_once to keep no longer than the guard does", text)
	case "forever", "none", "off", "infinite", "infinity":
		return Window{}, fmt.Errorf("%q is no window; write never to keep for ever", text)
	}
	d, err := parseDuration(text, ", which could mean at once or for ever; write a duration above zero, or never")
	if err != nil {
		return Window{}, err
	}
	if strings.HasSuffix(text, "ms") {
		return Window{}, fmt.Errorf("%q: a window has whole seconds; write it in s, min, h, d or w", text)
	}
	return NewWindow(d)
}

// ParseDuration reads a duration of the policy file or of a flag: a whole number above zero and one of ms, s, min, h, d,
// w, at most 36500d. The error quotes the text and says what to write.
func ParseDuration(text string) (time.Duration, error) {
	return parseDuration(text, "; write a duration above zero")
}

func parseDuration(text, zero string) (time.Duration, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	number, unit := text[:digits], text[digits:]
	switch {
	case strings.TrimSpace(text) == "":
		return 0, fmt.Errorf("%q is empty; write a number and a unit, as in 90d", text)
	case digits == 0 && strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("%q is negative; write a duration above zero, as in 90d", text)
	case digits == 0:
		return 0, fmt.Errorf("%q is no duration; write a whole number and a unit, as in 90d", text)
	case unit == "" && strings.Trim(number, "0") != "":
		return 0, fmt.Errorf("%q has no unit; write %sd, %sh or %smin", text, number, number, number)
	case unit == "":
		return 0, fmt.Errorf("%q is zero%s", text, zero)
	case strings.ContainsAny(unit[:1], ".,_eE"):
		return 0, fmt.Errorf("%q is not a whole number; write a smaller unit, as in 36h for a day and a half", text)
	case unit == "m" || unit == "M" || unit == "mo" || unit == "month" || unit == "months":
		return 0, fmt.Errorf("%q: months have no fixed length and m is read both ways; write min for minutes or count days", text)
	case unit == "y" || unit == "Y" || unit == "year" || unit == "years":
		return 0, fmt.Errorf("%q: years have no fixed length; count days, as in 365d", text)
	}
	one, ok := unitOf(unit)
	if !ok {
		if trimmed := strings.TrimSpace(unit); trimmed != unit {
			if _, ok := unitOf(trimmed); ok {
				return 0, fmt.Errorf("%q has blanks in it; write %s%s", text, number, trimmed)
			}
		}
		return 0, fmt.Errorf("%q has no known unit; write one whole number and one of ms, s, min, h, d, w, as in 90d", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || n > int64(MaxWindow/one):
		return 0, fmt.Errorf("%q is over the longest duration; it is 36500d", text)
	case n == 0:
		return 0, fmt.Errorf("%q is zero%s", text, zero)
	}
	return time.Duration(n) * one, nil
}

func unitOf(name string) (time.Duration, bool) {
	for _, u := range units {
		if u.name == name {
			return u.d, true
		}
	}
	return 0, false
}

// FormatDuration writes d as [ParseDuration] reads it, in the longest unit that leaves no rest; weeks are written as
// days. What is no multiple of a millisecond is written as Go does.
func FormatDuration(d time.Duration) string {
	for _, u := range units[1:] {
		if d > 0 && d%u.d == 0 {
			return strconv.FormatInt(int64(d/u.d), 10) + u.name
		}
	}
	return d.String()
}
