package eventlog

// State is the state of a run, as the column runs.status holds it.
type State string

// The states of a run. Their order is that of a run's life, and of [States].
const (
	Queued             State = "queued"
	Running            State = "running"
	WaitingForQuestion State = "waiting-for-question"
	WaitingForApproval State = "waiting-for-approval"
	RetryPending       State = "retry-pending"
	Completed          State = "completed"
	Failed             State = "failed"
	Cancelled          State = "cancelled"
)

// declared is the one declaration of the states. The CHECK constraint of the
// table, the terminal set of the ready sweep and the list in the package's
// documentation follow it. A state that is not marked terminal protects.
var declared = []struct {
	state    State
	terminal bool
}{
	{Queued, false},
	{Running, false},
	{WaitingForQuestion, false},
	{WaitingForApproval, false},
	{RetryPending, false},
	{Completed, true},
	{Failed, true},
	{Cancelled, true},
}

// States returns every state of a run, in the order of a run's life. The slice
// is the caller's own.
func States() []State {
	all := make([]State, 0, len(declared))
	for _, d := range declared {
		all = append(all, d.state)
	}
	return all
}

// Terminal returns the states from which nothing is owed any more: the events
// of a run in one of them may be swept. The slice is the caller's own.
func Terminal() []State {
	var terminal []State
	for _, d := range declared {
		if d.terminal {
			terminal = append(terminal, d.state)
		}
	}
	return terminal
}

// Terminal reports whether nothing is owed any more in s. A state that is not
// declared is not terminal: it protects.
func (s State) Terminal() bool {
	for _, d := range declared {
		if d.state == s {
			return d.terminal
		}
	}
	return false
}

// Known reports whether s is a declared state.
func (s State) Known() bool {
	for _, d := range declared {
		if d.state == s {
			return true
		}
	}
	return false
}
