package eventlog

import (
	"context"
	"encoding/json"
	"time"
)

// Draft is an event that is to be appended. The log gives it its place and its
// time.
type Draft struct {
	// Type says what happened; it must not be empty.
	Type string
	// Payload is a JSON value; none is stored as {}. The store may normalise it
	// (white space, the order of keys, of two equal keys the last).
	Payload json.RawMessage
}

// Event is an event as the log holds it.
type Event struct {
	// Sequence is the event's place in its run, from 1.
	Sequence int64
	Type     string
	Payload  json.RawMessage
	// CreatedAt is when the event was appended, by the database's clock, in UTC.
	// It does not run backwards within a run unless that clock does.
	CreatedAt time.Time
}

// Log is the append-only log of runs. A run is named by its tenant and its id.
//
// The sequence of a run starts at 1 and has no gaps, and a reader never sees an
// event before the ones in front of it. Sweeping removes events and leaves the
// sequence as it is: a number is never given twice, also in a run all of whose
// events are gone, so a reader that kept its place misses nothing that is still
// there.
//
// A Log may be used by several goroutines at once when what it was made from may.
// There is nothing here that removes an event, and nothing that changes one.
type Log interface {
	// Append puts the drafts at the end of the run, in their order, all of them
	// or none, and returns the sequence of the last one: the n drafts have the
	// sequences last-n+1 to last. Appenders to one run wait for each other.
	// Without drafts it returns 0 and does not ask the database.
	//
	// The error is [ErrUnknownRun] where the run does not exist, [ErrDraft] where
	// a draft has no type or its payload is no JSON, [ErrConflict] where the same
	// call may succeed when it is made again. Nothing was appended beside an
	// error, but for one: a connection that is lost while the answer is awaited
	// leaves it open whether the drafts are there; LatestSequence tells.
	Append(ctx context.Context, tenant, run string, drafts ...Draft) (last int64, err error)

	// ListAfter returns up to limit events of the run whose sequence is greater
	// than after, by rising sequence; 0 starts at the oldest event that is left.
	// Where the sweep has removed events, the first one returned is further on
	// than after+1. A run without such events and a run that does not exist give
	// none and no error. A limit below 1 is [ErrLimit].
	ListAfter(ctx context.Context, tenant, run string, after int64, limit int) ([]Event, error)

	// LatestSequence returns the sequence that was given last in the run, 0 where
	// none was. The event itself may have been swept. The error is [ErrUnknownRun]
	// where the run does not exist.
	LatestSequence(ctx context.Context, tenant, run string) (int64, error)
}
