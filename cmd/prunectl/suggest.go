package main

import (
	"strings"

	"github.com/xrash/smetrics"
)

// nearest is the word that was most likely meant, "" where none is near.
func nearest(word string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		edits := smetrics.WagnerFischer(strings.ToLower(word), k, 1, 1, 1)
		if edits <= max(1, len(k)/2) && edits < len(k) && (best == "" || edits < least) {
			best, least = k, edits
		}
	}
	return best
}

// suggestion is "; did you mean X?", or what else to do.
func suggestion(word string, known []string, prefix, otherwise string) string {
	if near := nearest(word, known); near != "" {
		return "; did you mean " + prefix + near + "?"
	}
	return "; " + otherwise
}

// shown is an argument as a message repeats it. One that may hold a password is not repeated.
func shown(arg string) string {
	if secretive(arg) {
		return "a connection string"
	}
	return `"` + printable(arg) + `"`
}

// secretive reports whether an argument looks like a connection string.
func secretive(arg string) bool {
	return strings.Contains(arg, "://") || strings.Contains(arg, "@") || strings.Contains(strings.ToLower(arg), "password")
}

// printable keeps a text from elsewhere on one line and from driving the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
