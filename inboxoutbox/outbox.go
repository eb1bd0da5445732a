package inboxoutbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// Draft is a record that is to be added to the outbox. The store gives it its id and time.
type Draft struct {
	// EventID is added once: a second record of the same id is not, for as long as the
	// first one is there. It must not be empty.
	EventID string
	// Topic says where it goes; it must not be empty.
	Topic string
	// Key is what the transport routes by, where it does; "" is none.
	Key string
	// Headers go with the body.
	Headers map[string]string
	// Body is a JSON value. The store may normalise it.
	Body json.RawMessage
	// AvailableAt is when it may first be claimed; zero: at once.
	AvailableAt time.Time
}

// Check is an error where a draft can not be added: [ErrEvent], with the reason.
func (d Draft) Check() error {
	switch {
	case d.EventID == "":
		return fmt.Errorf("%w: a record for topic %q has no event id", ErrEvent, d.Topic)
	case d.Topic == "":
		return fmt.Errorf("%w: event %q has no topic", ErrEvent, d.EventID)
	case !json.Valid(d.Body):
		return fmt.Errorf("%w: the body of event %q is no JSON", ErrEvent, d.EventID)
	}
	return nil
}

// Added is what became of a draft.
type Added struct {
	// Record is the id of the record; of the first one where this one was not added.
	Record int64
	// New is false where a record of the same event id is there already: nothing was added.
	New bool
}

// Record is an outbox record that a worker has claimed.
type Record struct {
	ID             int64
	EventID, Topic string
	Key            string
	Headers        map[string]string
	Body           json.RawMessage
	CreatedAt      time.Time // by the database's clock, in UTC
	Attempts       int32     // this one included
	Claim          Claim
}

// Claim is a worker's hold on a record, until it lapses and somebody else claims it. The
// token names one hold: an acknowledgement compares it.
type Claim struct {
	Record int64
	Token  Token
	Until  time.Time // by the database's clock, in UTC
}
