package inboxoutbox

import "errors"

var (
	// ErrSettings says that settings can not be used: see [Settings.Problems].
	ErrSettings = errors.New("unusable settings")

	// ErrEvent says that an event can not be received or added: no handler, id or topic,
	// or a body that is no JSON. Nothing was written.
	ErrEvent = errors.New("unusable event")

	// ErrClaim says that a lock, claim or lease can not be taken as asked for: a time
	// under a millisecond, or no holder.
	ErrClaim = errors.New("unusable claim")

	// ErrClaimLost says that a lock, claim or lease is not held any more: it lapsed and
	// somebody else took it, it was given back, or what it was for is finished. Nothing
	// was changed. In a transaction of your own, roll it back: somebody else does, or
	// did, the same work.
	ErrClaimLost = errors.New("the claim is lost")

	// ErrConflict says that another transaction was in the way (a deadlock, a
	// serialization failure) and that nothing was done. Make the call again; in a
	// transaction of your own, roll it back and run the whole of it again.
	ErrConflict = errors.New("conflict with another transaction; do it again")

	// ErrLimit says that a limit is out of its range. There is no number that stands
	// for "all".
	ErrLimit = errors.New("limit out of range")
)
