package main

import (
	"fmt"

	"github.com/prunectl/prunectl/internal/report"
)

// outcome says in a few words why the exit code is not 0.
func (s *session) outcome(code int) string {
	of := func(what string, is func(report.Sweep) bool) string {
		n := 0
		for _, e := range s.report.Sweeps {
			if is(e) {
				n++
			}
		}
		purges := 0
		for _, p := range s.report.Purges {
			if is(report.Sweep{Stop: p.Stop}) {
				purges++
			}
		}
		switch {
		case n > 0 && purges > 0:
			return fmt.Sprintf("%s and %s %s", some(n, len(s.report.Sweeps), "sweep"), some(purges, len(s.report.Purges), "purge"), what)
		case purges > 0:
			return some(purges, len(s.report.Purges), "purge") + " " + what
		case n == 0 && len(s.report.Components) > 0:
			return s.unfit(what)
		}
		return some(n, len(s.report.Sweeps), "sweep") + " " + what
	}
	stopped := func(stops ...report.Stop) func(report.Sweep) bool {
		return func(e report.Sweep) bool {
			for _, stop := range stops {
				if e.Stop == stop {
					return true
				}
			}
			return false
		}
	}
	switch {
	case code > exitSignal:
		return "stopped by " + s.interrupt.name()
	case s.report.Purge != nil:
		return s.report.Purge.Outcome()
	case code == exitRefused:
		return of("refused", stopped(report.Refused))
	case code == exitBusy:
		return of("busy", stopped(report.Busy))
	case code == exitMore:
		return of("may have left more due", func(e report.Sweep) bool { return e.Stop != report.Drained && e.Stop != report.Busy })
	}
	return of("failed", failedEntry)
}

// some is "1 of 3 sweeps".
func some(n, of int, what string) string {
	if of != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d of %d %s", n, of, what)
}

// unfit says of how many components it is; where none is refused, it is of those with a warning.
func (s *session) unfit(what string) string {
	refused, warned := 0, 0
	for _, c := range s.report.Components {
		switch c.Result {
		case report.OK:
		case report.Warning:
			warned++
		default:
			refused++
		}
	}
	if refused == 0 {
		refused = warned
	}
	return some(refused, len(s.report.Components), "component") + " " + what
}
