package domainevents

import "time"

// Count is a number that was read up to a bound.
type Count struct {
	N       int
	AtLeast bool // there are more than N
}

// Health is the state of the deliveries in a few numbers. Each was read through an
// index and up to a bound.
type Health struct {
	Owed   Count // deliveries pending, claimed or failed
	Dead   Count // dead letters
	Lapsed Count // claims whose lease has lapsed, and which nobody claimed since
	Parked Count // events that a dead letter keeps, see PolicySucceeded
	// OldestOwed is when the oldest event was recorded on which something is owed, in
	// UTC; zero where nothing is. Where Owed is AtLeast, it is the oldest of those that
	// are due longest, and there may be an older one.
	OldestOwed time.Time
	// Unknown counts the events by policy words that are not known: they go by the
	// default window. UnknownAtLeast says that there are more.
	Unknown        map[Policy]int
	UnknownAtLeast bool
}

// Receiver is a receiver and its newest success, also where that delivery is gone.
type Receiver struct {
	Name        string
	LastSuccess time.Time // in UTC
}
