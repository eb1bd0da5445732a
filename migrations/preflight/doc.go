// Package preflight compares the schemas that prunectl owns, as they are
// installed, with what the migrations make: for the start of a program, for its
// readiness, and for the command. It reads the catalog and the component's ledger
// in one read-only transaction and changes nothing.
//
// The ledger of a component says which scripts ran. A restore, or a change by
// hand, can make the tables something else than those scripts made, and the ledger
// does not know. So each version of a component has a contract here: a document,
// generated from a database that was really migrated, of everything that decides
// how the tables behave. [Check] holds the installed tables to the contract of the
// version that the ledger names:
//
//   - What is missing or different is refused. So is what is there beside the
//     contract and changes behaviour: a constraint, also a foreign key of another
//     table's that refers to ours, a trigger, a rule, a policy, row security, a
//     unique index, a column that must be filled or fills itself.
//   - A warning is given for what is there beside the contract and changes nothing:
//     an index, a nullable column without a default. So it is for a constraint that
//     has another name, and for columns in another order; our statements name
//     theirs, somebody's COPY may not.
//   - Indexes are compared by what they are. One of the same definition under another
//     name is the contract's.
//   - Owners, grants on tables, storage parameters, tablespaces, compression,
//     statistics and replica identities are left to those who run the database. The
//     one grant that counts is that not everybody may execute a trigger function
//     that runs with its owner's rights.
//   - Tables, views and functions beside the component's are nobody's business.
//
// No right on the component's tables is needed: USAGE on the schema and SELECT on
// the ledger are enough.
//
// The texts of the server depend on settings and, a little, on its version. Check
// sets what they depend on for its transaction, and takes apart what the versions
// print in different ways, so that one contract serves PostgreSQL 14 to 18.
package preflight
