package eventlog

import "errors"

var (
	// ErrUnknownRun says that the tenant has no run of that id: create the run
	// before its first event.
	ErrUnknownRun = errors.New("no such run")

	// ErrConflict says that another transaction was in the way (a deadlock, a
	// serialization failure, an event that was written past the log) and that
	// nothing was appended. Make the call again; in a transaction of your own,
	// roll it back and run the whole of it again.
	ErrConflict = errors.New("conflict with another writer; append again")

	// ErrDraft says that a draft can not be stored: no type, or a payload that is
	// no JSON.
	ErrDraft = errors.New("unusable draft")

	// ErrLimit says that a limit below 1 was given. There is no number that
	// stands for "all".
	ErrLimit = errors.New("limit must be 1 or more")
)
