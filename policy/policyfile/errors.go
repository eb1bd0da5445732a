package policyfile

import (
	"fmt"
	"strings"
)

// Error is one fault of a policy file.
type Error struct {
	File         string
	Line, Column int    // from 1; columns count characters
	Key          string // the sweep and the key in it ("run_events.window"), or the key at the top; "" for the file itself
	Message      string // what is wrong; what to write
}

// Error is the fault on one line, as compilers write them: file:line:column: key: what is wrong; what to write.
func (e Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.File, e.Line, e.Column, e.Key, e.Message)
}

// Errors are all faults of a policy file, in the order of the file. There is at least one.
type Errors []Error

// Error is one fault a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}
