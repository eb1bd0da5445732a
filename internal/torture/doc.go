// Package torture lets sweeps run beside everything that programs do to their rows, and then proves from what the database
// itself wrote down that nothing went wrong. The short form is a test, the long one the command in folder run.
//
// In one database stand the three forms of a sweep: events whose run protects them, jobs that their own state protects,
// and events with deliveries and attempts that go with them. Several sweepers a form, with limits far apart, with the lock
// of one sweeper and without it, in several modes of the protocol, some canceled in mid-batch, drain them again and again
// while users insert, finish, reopen, requeue, touch, move in age, put on hold, delete, hold locks for longer than a sweep
// waits, take locks in the order opposite to the sweep's, and keep old snapshots open. All that is random comes from one
// number, which is printed; with it the same actors do the same things, in whatever order the machine lets them.
//
// # What is proved
//
// No row was removed that was not due when it was committed. Every deletion is written to a ledger by an AFTER DELETE row
// trigger of the same transaction, together with what made the row due, as two different witnesses say it:
//
//   - The trigger looks for itself. It is VOLATILE, so that each of its queries has a snapshot younger than the delete.
//     What it sees of the row (age, state, hold, kind) is the version that was deleted: nobody can change that one any more.
//     What it sees of others holds until the commit where the sweep has locked it: the run FOR SHARE, so that nobody
//     changes or deletes it; the event FOR UPDATE, so that nobody who takes the lock of the event, or shares it as the key
//     of a new delivery does, changes what is owed on it. An age only becomes older by waiting.
//   - The history does not believe in those locks. Every change of a run's state, and of whether an event is owed, is
//     written down by its own transaction, and the server keeps when each was committed (track_commit_timestamp). After the
//     run the state at the moment of each deletion's commit is computed from these. A sweep that holds the lock until it
//     has committed has every change either before its lock or after its commit; one that only looked is found here.
//
// Events marked as loose are requeued without the lock of the event. The contract promises less for those, and they are
// judged by less: no delivery that is owed goes, and no event goes before its deliveries.
//
// What the sweepers say is what happened: for each sweeper the sums of its reports are the lines of the ledger in its name.
// A trigger makes the engine count by RETURNING; where nothing is in the way it counts by the statistics. So two of the
// families have twins without triggers, and for all of them the rows that were put in, less what users deleted, less what
// was reported, are the rows that are left.
//
// Once all users have gone, one drain a sweep takes all that is due, by conditions written anew here, and counts what it
// keeps as they do. Nobody, user or sweeper, met a deadlock or a serialization failure: users take their locks in one
// order among themselves, and a sweep gives way before the server looks for deadlocks.
//
// # What is not
//
// How long users waited behind a sweep is measured and reported, and not judged: on a busy machine it says little. Sweepers
// that do without the lock of one sweeper share a run in turns, and whoever reopens it waits for as long as they find events
// of it. A sweep gives way after its lock timeout, but the lock that another waits for may be older: where a batch, or
// several sweepers in turns, keep it for about the server's deadlock_timeout, somebody who takes locks in the opposite order can
// be found in a deadlock. So that timeout is three seconds here, and whoever takes the opposite order has rows of their own.
//
// The torture is itself tortured: the tests put wrong sweepers beside the right ones, and each must be found.
package torture
