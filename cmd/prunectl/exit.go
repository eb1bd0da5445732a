package main

import (
	"errors"
	"fmt"
)

// The exit codes. Where several are due, the signal's comes first, then failed, refused, busy, more.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitMore    = 3
	exitRefused = 4
	exitBusy    = 5
	exitSignal  = 128 // and the signal's number
)

// exitCodes is the table in every long help text.
const exitCodes = `Exit codes:
  0    done: every sweep is drained, or stopped at its ceiling, its budget or rows that are locked;
       a purge is done when nothing of the tenant is left
  1    failed: a sweep failed, rows are stuck, a commit is unknown, a purge left rows, no server, a read-only
       server, or the report could not be written; what was removed is reported all the same
  2    wrong usage or policy file: nothing was touched
  3    more is due, or may be (only with --detailed-exitcode)
  4    a sweep or purge was refused because the catalog, or the recorded policy, or who was asked, disagrees:
       it was not touched, the others ran
  5    busy: another run holds a sweep, or purges the tenant
  129, 130, 143  SIGHUP, SIGINT, SIGTERM: the batch in hand ended, the report is exact
Several at once: the signal's, then 1, 4, 5, 3. Treat a code that is not listed as a failure.`

// codeError is an error with its exit code.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

// codeOf is the exit code of an error: what is not marked otherwise is a failure.
func codeOf(err error) int {
	var ce *codeError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &ce):
		return ce.code
	}
	return exitFailed
}
