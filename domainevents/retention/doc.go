// Package retention sweeps domain events: [Sweeps] are the sweeps of the ready policy
// domain_events as values, and [Run] drains them.
//
// It is apart from domainevents and its store, so that what records and delivers events
// has no way to remove one.
package retention
