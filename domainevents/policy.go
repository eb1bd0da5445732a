package domainevents

import "slices"

// Policy is the word in the column domain_events.retention_policy. No word means
// the default window, or the event's own.
//
// A word that is none of [Policies] is no error where a row is read: such an event
// goes by the default window, and [Health] counts it.
type Policy string

const (
	// PolicySucceeded lets an event go at the first sweep after every delivery
	// succeeded or was cancelled. A dead letter keeps the whole event for the default
	// window, so that it can be looked at and requeued.
	PolicySucceeded Policy = "SUCCEEDED"
	// PolicySettled lets an event go at the first sweep after every delivery is
	// terminal.
	PolicySettled Policy = "SETTLED"
)

// Policies returns the known words. The slice is the caller's own.
func Policies() []Policy { return []Policy{PolicySucceeded, PolicySettled} }

// Known reports whether p is one of [Policies].
func (p Policy) Known() bool { return slices.Contains(Policies(), p) }
