package inboxoutbox

import (
	"fmt"
	"time"
)

// Outcome says what became of the receipt of an event.
type Outcome string

const (
	// New: the event is the caller's to handle, under the lock it was given. It was never
	// received before, or not handled to its end: Receipt.Attempts says which.
	New Outcome = "new"
	// InProgress: somebody else handles it, until Receipt.Until at the latest.
	InProgress Outcome = "in progress"
	// CompletedBefore: it was handled, at Receipt.CompletedAt. There is nothing to do but to
	// acknowledge it to whoever sent it.
	CompletedBefore Outcome = "completed"
)

// Receipt is the answer to the receipt of an event by a handler.
type Receipt struct {
	Outcome     Outcome
	Lock        Lock      // where it is New
	Attempts    int32     // how often it was taken to be handled, this time included
	Until       time.Time // when the lock on it lapses, in UTC; zero where it is completed
	CompletedAt time.Time // in UTC; zero where it is not
}

// Lock is a handler's hold on an event, until it lapses and somebody else takes it. The
// token names one hold: a completion compares it.
type Lock struct {
	Handler, EventID string
	Token            Token
	Until            time.Time // by the database's clock, in UTC
}

// Token names one hold on a row: a UUID in its text form, made by the database.
type Token string

// CheckReceipt is an error where an event can not be received: [ErrEvent], with the reason.
func CheckReceipt(handler, eventID string) error {
	switch {
	case handler == "":
		return fmt.Errorf("%w: event %q has no handler", ErrEvent, eventID)
	case eventID == "":
		return fmt.Errorf("%w: an event for handler %q has no id", ErrEvent, handler)
	}
	return nil
}
