package domainevents

// Status is the status of a delivery, as the column domain_event_deliveries.status
// holds it.
type Status string

// The statuses of a delivery. Their order is that of a delivery's life, and of
// [Statuses].
const (
	Pending   Status = "pending"
	Claimed   Status = "claimed"
	Failed    Status = "failed"
	Succeeded Status = "succeeded"
	Dead      Status = "dead"
	Orphaned  Status = "orphaned"
	Cancelled Status = "cancelled"
)

// declared is the one declaration of the statuses. The constraints, triggers and
// indexes of the tables, the statements, the terminal sets of the ready sweeps and
// the list in the package's documentation follow it.
var declared = []struct {
	status     Status
	terminal   bool
	deadLetter bool // came to its end undelivered, and may be requeued
}{
	{Pending, false, false},
	{Claimed, false, false},
	{Failed, false, false},
	{Succeeded, true, false},
	{Dead, true, true},
	{Orphaned, true, true},
	{Cancelled, true, false},
}

// Statuses returns every status of a delivery, in the order of a delivery's life.
// The slice is the caller's own.
func Statuses() []Status { return which(func(_, _ bool) bool { return true }) }

// Terminal returns the statuses in which nothing is owed any more. The slice is the
// caller's own.
func Terminal() []Status { return which(func(terminal, _ bool) bool { return terminal }) }

// Owed returns the statuses in which the delivery is still owed: under no rule does
// its event go. The slice is the caller's own.
func Owed() []Status { return which(func(terminal, _ bool) bool { return !terminal }) }

// DeadLetters returns the terminal statuses of deliveries that were not made and
// can be requeued. The slice is the caller's own.
func DeadLetters() []Status { return which(func(_, deadLetter bool) bool { return deadLetter }) }

// Done returns the terminal statuses that are no dead letters: what an event under
// [PolicySucceeded] waits for. The slice is the caller's own.
func Done() []Status {
	return which(func(terminal, deadLetter bool) bool { return terminal && !deadLetter })
}

func which(has func(terminal, deadLetter bool) bool) (all []Status) {
	for _, d := range declared {
		if has(d.terminal, d.deadLetter) {
			all = append(all, d.status)
		}
	}
	return all
}

// Terminal reports whether nothing is owed any more in s. A status that is not
// declared is not terminal: it is owed.
func (s Status) Terminal() bool {
	for _, d := range declared {
		if d.status == s {
			return d.terminal
		}
	}
	return false
}

// Owed reports whether the delivery is still owed in s.
func (s Status) Owed() bool { return !s.Terminal() }

// DeadLetter reports whether s is the end of a delivery that was not made.
func (s Status) DeadLetter() bool {
	for _, d := range declared {
		if d.status == s {
			return d.deadLetter
		}
	}
	return false
}

// Known reports whether s is a declared status.
func (s Status) Known() bool {
	for _, d := range declared {
		if d.status == s {
			return true
		}
	}
	return false
}
