// Package retention sweeps an inbox, an outbox and leases by the one policy of their
// database: [Sweeps] are its sweeps as values, [Agree] records the policy or holds it to
// the one that is recorded, and [Cleanup] agrees and then drains the sweeps.
//
// Two programs over the same tables with different windows would each remove what the
// other one counts on. So the policy that is in force is written down in the database with
// its fingerprint, and a program that comes with another one is refused, with the
// difference by field, until somebody says that it takes the place of the recorded one.
//
// It is apart from inboxoutbox and its store, so that what receives and delivers has no way
// to remove a row.
package retention
