package domainevents

import "errors"

var (
	// ErrEvent says that an event can not be recorded: no type, a payload that is no
	// JSON, a target twice, or targets of a suppressed event. Nothing was recorded.
	ErrEvent = errors.New("unusable event")

	// ErrRetention says that a retention can not be declared.
	ErrRetention = errors.New("unusable retention")

	// ErrDedupe says that an event has a dedupe key and a policy that lets it go early:
	// with the event its key would be forgotten, and a late repetition be taken for a
	// new event. Nothing was recorded. Leave out one of the two, or give the event a
	// window of its own that is longer than repetitions can be late.
	ErrDedupe = errors.New("a dedupe key and a policy do not go together")

	// ErrClaim says that a worker, a lease or a retry is unusable.
	ErrClaim = errors.New("unusable claim")

	// ErrClaimLost says that a claim is not held any more: its lease lapsed and somebody
	// else claimed the delivery, it was acknowledged already, or reopened. Nothing was
	// changed.
	ErrClaimLost = errors.New("the claim is lost")

	// ErrGone says that an event is not there: it was swept, or never recorded.
	ErrGone = errors.New("no such event")

	// ErrConflict says that another transaction was in the way (a deadlock, a
	// serialization failure) and that nothing was done. Make the call again; in a
	// transaction of your own, roll it back and run the whole of it again.
	ErrConflict = errors.New("conflict with another transaction; do it again")

	// ErrLimit says that a limit is out of its range. There is no number that stands
	// for "all".
	ErrLimit = errors.New("limit out of range")
)
