package pgserver

// Options says how to start a server. The zero value is a fast server for
// tests: not durable, trusting local users, superuser "postgres".
type Options struct {
	// BinDir is the folder with initdb and postgres. Empty: FindBinDir.
	BinDir string
	// Download allows fetching server programs over the network where BinDir
	// is empty and none are found.
	Download bool
	// Template is a data folder of NewTemplate to copy. Empty: initdb is run.
	// Superuser and Password must be those that it was made with.
	Template string
	// InitArgs are further arguments of initdb.
	InitArgs []string
	// Superuser is the name of the first role. Empty: "postgres".
	Superuser string
	// Password is asked of everyone who connects. Empty: every local user of
	// the machine may connect as any role, which is for tests only: a
	// superuser can run programs as the user who started the server.
	Password string
	// Settings are "name=value" and go before what this package sets itself.
	Settings []string
	// Durable leaves fsync and full_page_writes on. Without it a crash of the
	// machine, but not a kill of the server, damages the data.
	Durable bool
	// StandbyOf starts a streaming standby of that server; both must come from
	// one Template.
	StandbyOf *Server

	repository string // where Download fetches from; empty: the library's default
}
