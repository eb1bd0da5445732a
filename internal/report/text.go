package report

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

var english = message.NewPrinter(language.English)

// Number writes 1234567 as 1,234,567.
func Number(n int) string { return english.Sprintf("%d", n) }

// number writes "-" for what was not counted.
func number(n *int) string {
	if n == nil {
		return "-"
	}
	return Number(*n)
}

// count writes "1 row", "2 rows".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Number(n) + " " + what + "s"
}

// Size writes how large something is: 512 B, 8.0 KiB, 118 MiB, 19 GiB.
func Size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	n, units := float64(bytes)/1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	for n >= 1023.5 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if n < 9.95 {
		return fmt.Sprintf("%.1f %s", n, units[0])
	}
	return english.Sprintf("%.0f %s", n, units[0])
}

// Took writes how long something took: 0.4s, 41.8s, 2m31s, 1h02m.
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return "0.0s"
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

const day = 24 * time.Hour

// Ago writes how old something is: 12s, 5min, 2h, 7d 20h, 402d.
func Ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dmin", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 10*day && d%day >= time.Hour:
		return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Stamp writes an instant as 2026-11-30 02:17:04Z.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// oneLine keeps a text that came from elsewhere from breaking the line or driving the terminal.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
}
