package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
)

// windowValue is the value of --window: a window of the policy file that is one duration.
func windowValue() *value[policy.Window] {
	return &value[policy.Window]{parse: func(s string) (policy.Window, error) {
		switch {
		case s == "never":
			return policy.Window{}, errors.New("never would keep all rows, and a sweep that removes nothing needs no run; write --skip NAME")
		case s == "at_once":
			return policy.Window{}, errors.New("at_once would take every row that nothing protects, however young; only the policy file may say that")
		case strings.HasSuffix(s, "ms"):
			return policy.Window{}, fmt.Errorf("%q: a window has whole seconds; write it in s, min, h, d or w", s)
		}
		d, err := policy.ParseDuration(s)
		if err != nil {
			return policy.Window{}, err
		}
		return policy.NewWindow(d)
	}}
}

func windowFlag(f *value[policy.Window]) cli.Flag {
	return flag(f, "take `DURATION` for the window of the one chosen sweep; windows by state, of rows, at_once and expiries stay", "window")
}

// oneWindow reports whether the sweep's window is one duration, which is what --window replaces. A grace is no window.
func oneWindow(sw policy.Sweep) bool {
	return !sw.Expires && len(sw.ByState) == 0 && !sw.Window.IsNever() && !sw.Window.IsAtOnce()
}

// replaceWindow puts the window of the flag in place of the file's, in the one chosen sweep that has such a window.
func (s *session) replaceWindow(f *value[policy.Window]) error {
	if !f.set {
		return nil
	}
	namesOf := func(sweeps []policy.Sweep) (fit []string) {
		for _, sw := range sweeps {
			if oneWindow(sw) {
				fit = append(fit, sw.Name)
			}
		}
		return fit
	}
	fit := namesOf(s.sweeps)
	switch all := namesOf(s.file.Sweeps); {
	case len(fit) > 1:
		return usagef("--window is for one sweep, and %s have a window that it would replace; write --only %s", strings.Join(fit, ", "), strings.Join(fit, " or --only "))
	case len(fit) == 0 && len(all) == 0:
		return usagef("--window: %s has no window that is one duration, and others are not replaced; leave it out", s.file.Path)
	case len(fit) == 0:
		return usagef("--window: no chosen sweep has a window that is one duration, and others are not replaced; write --only %s", strings.Join(all, " or --only "))
	}
	named := func(sw policy.Sweep) bool { return sw.Name == fit[0] }
	sw := &s.sweeps[slices.IndexFunc(s.sweeps, named)]
	before := sw.Window
	sw.Window = f.v
	for _, p := range sw.Problems() {
		return usagef("--%s", p) // its key is the flag's name
	}
	// What one sweep says of another's window is about the windows in force.
	s.file.Sweeps[slices.IndexFunc(s.file.Sweeps, named)].Window = f.v
	s.report.Window = &report.Window{Sweep: sw.Name, Seconds: f.v.Seconds(), Replaced: before.Seconds()}
	return nil
}
