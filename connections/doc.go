// Package connections keeps what tenants connected to: an integration of a kind, with a name, settings, and a secret. A
// connection is its tenant's alone: each call names the tenant, and what is another's is not found, as if it were not there.
//
// There are two ways out. [Store.Revoke] is soft: from its return on the connection is found by nobody, and its row stays,
// with the time of the first revocation, so that the id is not given again; its secret is of no use any more and is removed
// at once. [Store.Purge] is hard: everything of a tenant goes, revoked connections too, and a look at the end proves it.
//
// # Secrets
//
// A secret is kept as it is given. Whoever has secrets to keep seals them first, with a key that is not in this database: the
// rows are in backups and replicas too, what a revocation or purge removed stays in those, and in the files of the server
// until a vacuum and in its write-ahead log. What a program prints by mistake is another matter, and taken care of here:
// [Secret] shows itself to no formatter, encoder or logger, no error of this package or of its stores has a secret in it, and
// only [Store.Get] returns one.
//
// Settings are no secret: they are listed, and printed.
//
// This package brings no driver. The store of tests is connections/memory, that for PostgreSQL connections/postgres over the
// table of the component connections of package migrations; connections/connectionstest holds both to one contract.
package connections
