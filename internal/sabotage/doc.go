// Package sabotage is for tests that take the clauses of SQL statements out, one by one, and have a named check notice.
//
// It reads the clauses out of a statement's text, so that a new one is missed by nobody; says which of them neither have
// an edit nor an exemption, and which edits and exemptions are of clauses that are not there any more; and keeps
// docs/sabotage.md, the report of clause, edit and victim. It knows neither a database nor a package's statements.
package sabotage
