// Package postgres is the store of connections on PostgreSQL, over the table of the component connections.
//
// All times are the database's. The statements work in every exec mode of pgx and behind a transaction pooler.
//
// # Secrets
//
// A secret goes to the server as a parameter, in a type that shows itself to no tracer of pgx. Errors of the server are not
// handed on as they are: their detail can have the whole row in it, and so can the words of a trigger. What is left is the
// SQLSTATE, the names of the constraint and of the table, and words of our own; the *pgconn.PgError that errors.As finds is
// such a copy.
//
// The server's own log is the server's. With log_statement = 'mod' or 'all', or where log_min_duration_statement makes it log
// a statement, it writes the parameters too, the secret among them, unless log_parameter_max_length is 0; under
// QueryExecModeSimpleProtocol the secret is in the statement's text, which nothing shortens. log_parameter_max_length_on_error
// is off unless somebody sets it. A row that a constraint refuses is logged with up to 64 characters of each column, unless
// log_error_verbosity is 'terse'. So seal secrets before they are given to this package, or to any.
package postgres
