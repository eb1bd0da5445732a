// Package pgserver starts a throw-away PostgreSQL server, 14 or later, from
// the server programs that a machine already has. The demo, the tests and the
// benches run on it.
//
// A server listens on 127.0.0.1 and on a Unix socket in a folder of its own.
// It is gone, folder and all, after [Server.Stop]; should this process end
// without calling that, by a panic, a second Ctrl-C or a SIGKILL, a watcher
// process ends the server and removes the folder (not on Windows).
//
// It refuses to run a database that anybody wants to keep: there is no fixed
// folder, no fixed port, and no way to start a server without removing it.
package pgserver
