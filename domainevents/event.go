package domainevents

import (
	"encoding/json"
	"fmt"
	"time"
)

// Draft is an event that is to be recorded. The store gives it its id and time.
type Draft struct {
	// Type says what happened; it must not be empty.
	Type string
	// Version is that of the payload's form, from 1; 0 is taken for 1.
	Version int32
	// Payload is a JSON value; none is stored as {}. The store may normalise it.
	Payload json.RawMessage
	// OccurredAt is when it happened; zero: when it is recorded.
	OccurredAt time.Time
	// DedupeKey, where given, is recorded once: a second event of the same key is not,
	// for as long as the first one is there.
	DedupeKey string
	// Suppressed, where given, is the reason why nobody is to receive the event: it is
	// recorded without deliveries.
	Suppressed string
	Retention  Retention
}

// Target is who is to receive an event. Receiver and Target together are there once
// for each event.
type Target struct {
	// Receiver is the key of what handles the delivery; it must not be empty.
	Receiver string
	// Target says to whom it delivers, where it has several.
	Target string
	// DueAt is when the delivery may first be claimed; zero: at once.
	DueAt time.Time
}

// Check is an error where a draft can not be recorded for these targets: [ErrEvent] or
// [ErrDedupe], with the reason.
func (d Draft) Check(targets ...Target) error {
	switch {
	case d.Type == "":
		return fmt.Errorf("%w: it has no type", ErrEvent)
	case d.Version < 0:
		return fmt.Errorf("%w: event %s has version %d; versions are from 1", ErrEvent, d.Type, d.Version)
	case len(d.Payload) > 0 && !json.Valid(d.Payload):
		return fmt.Errorf("%w: the payload of event %s is no JSON", ErrEvent, d.Type)
	case d.DedupeKey != "" && d.Retention.Policy() != "":
		return fmt.Errorf("%w: event %s has the key %q and the policy %s, under which the key would go with the event as soon as that is consumed, "+
			"and a late repetition be taken for new; give it a window of its own or no key", ErrDedupe, d.Type, d.DedupeKey, d.Retention.Policy())
	case d.Retention.Policy() != "" && !d.Retention.Policy().Known():
		return fmt.Errorf("%w: event %s has the policy %q, which is none of %q", ErrRetention, d.Type, d.Retention.Policy(), Policies())
	case d.Suppressed != "" && len(targets) > 0:
		return fmt.Errorf("%w: event %s is suppressed (%s) and has %d targets; leave out one or the other", ErrEvent, d.Type, d.Suppressed, len(targets))
	}
	type key struct{ receiver, target string }
	seen := make(map[key]bool, len(targets))
	for i, t := range targets {
		k := key{t.Receiver, t.Target}
		switch {
		case t.Receiver == "":
			return fmt.Errorf("%w: target %d of event %s has no receiver", ErrEvent, i+1, d.Type)
		case seen[k]:
			return fmt.Errorf("%w: event %s goes to receiver %q and target %q twice", ErrEvent, d.Type, t.Receiver, t.Target)
		}
		seen[k] = true
	}
	return nil
}

// Recorded is what became of a draft.
type Recorded struct {
	// Event is the id of the event; of the first one where this one was not recorded.
	Event int64
	// New is false where an event of the same dedupe key is there already: nothing was
	// recorded.
	New bool
}

// Event is an event as the store holds it.
type Event struct {
	ID         int64
	Type       string
	Version    int32
	Payload    json.RawMessage
	RecordedAt time.Time // by the database's clock, in UTC
	OccurredAt time.Time // in UTC
	DedupeKey  string
	Suppressed string
	Retention  Retention
}

// Delivery is an event that a worker has claimed for a receiver.
type Delivery struct {
	Event            Event
	Receiver, Target string
	DueAt            time.Time // when it was to be made, in UTC
	Attempts         int32     // this one included
	LastError        string    // of the attempt before
	Claim            Claim
}

// Claim is a worker's hold on a delivery, until its lease lapses and somebody else
// claims it. Delivery, By and At together name one claim: an acknowledgement
// compares them all.
type Claim struct {
	Delivery  int64
	By        string
	At, Until time.Time // by the database's clock, in UTC
}

// Filter chooses dead letters. Empty fields choose all.
type Filter struct {
	Event    int64
	Receiver string
	Type     string // of the event
	// Limit bounds what one call reopens, from 1 to MaxRequeue.
	Limit int
}

// MaxRequeue is the most that one call reopens: it is one transaction.
const MaxRequeue = 10_000

// Reopened is a delivery that became pending again.
type Reopened struct {
	Event, Delivery  int64
	Receiver, Target string
}

// Requeued is what a requeue did.
type Requeued struct {
	Reopened []Reopened // by event, receiver and target
	Gone     []int64    // events that were to be reopened and are not there any more
}

// Replayed is what a replay did.
type Replayed struct {
	Reopened []Reopened // by receiver and target
	// Underway counts the deliveries that a worker had claimed: they are owed, being
	// made, and were left to it.
	Underway int
}
