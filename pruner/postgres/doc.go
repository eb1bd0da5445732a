// Package postgres is the engine: it carries out the arms of a [policy.Sweep] on PostgreSQL 14 and later.
//
// [Open] (or [Inspect], then [Inspection.Arms]) reads the catalog, refuses what would be slow or wrong, and returns one
// [Arm] an index range; each is a [pruner.Pruner]. A batch is one round trip and one READ COMMITTED transaction: it
// examines a half-open range of ages, locks what decides, asks it again under the lock, and deletes by physical address
// within that range only. No session state is used, so it works behind a transaction pooler, in every pgx exec mode and
// under any session default.
//
// The package brings pgx and the standard library, nothing else. It refuses to run inside a caller's transaction (a batch
// is a transaction), to sweep anything but an ordinary table, and to guess: what the catalog contradicts is an error
// before the first row.
package postgres
