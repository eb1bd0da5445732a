package arch

// self is the path of the module.
const self = "github.com/prunectl/prunectl"

const (
	pgx      = "github.com/jackc/pgx/v5/..."
	embedded = "github.com/fergusstrange/embedded-postgres"
)

// A pattern is an import path in which "/..." at the end stands for the path
// and all below it, and "..." alone for everything. Where it has no dot in its
// first element it is one of our own packages, below the module's path.

// required are packages that must be there, so that a rule for one that was
// renamed does not hold for nothing.
var required = []string{
	"policy", "policy/policyfile",
	"pruner", "pruner/memory", "pruner/postgres", "pruner/prunertest",
	"pruner/tenant", "drain", "purge", "explaintest", "explaintest/pgxplan", "eventlog", "domainevents", "domainevents/postgres", "domainevents/retention", "inboxoutbox", "inboxoutbox/postgres", "inboxoutbox/retention", "connections", "connections/memory", "connections/postgres", "connections/connectionstest", "migrations", "migrations/preflight", "bench", "cmd/prunectl",
	"internal/pgserver", "internal/pgtest", "internal/proctest",
}

// mayImport says what a package imports beside the standard library, tests left
// aside. The first line that fits a package is the one that counts.
var mayImport = []struct {
	pkg     string
	imports []string
}{
	// The core, where imports point one way: policy <- pruner <- drain.
	{"policy", nil},
	{"policy/policyfile", []string{"policy", "github.com/goccy/go-yaml/...", "github.com/xrash/smetrics"}},
	{"pruner", []string{"policy"}},
	{"pruner/tenant", []string{"policy", "pruner"}},
	{"pruner/memory", []string{"policy", "pruner"}},
	{"pruner/prunertest", []string{"policy", "pruner", "pruner/memory"}},
	{"pruner/postgres/...", []string{"policy", "pruner", "pruner/tenant", "pruner/postgres/...", pgx}},
	{"drain", []string{"policy", "pruner"}}, // not pruner/tenant: what drains a sweep cannot reach a removal that no guard holds back
	{"purge", []string{"policy", "pruner", "pruner/tenant", "drain"}},

	// Plans are read without a driver; what runs EXPLAIN sits beside it.
	{"explaintest", nil},
	{"explaintest/internal/...", []string{"explaintest"}},
	{"explaintest/pgxplan", []string{"explaintest", pgx}},

	// Schemas and the small packages on them: no pruner, so that deletion is
	// out of their reach.
	{"eventlog/...", []string{"policy", "eventlog/...", pgx}},
	{"domainevents", []string{"policy"}},
	{"domainevents/postgres", []string{"domainevents", pgx}},
	{"domainevents/retention", []string{"policy", "pruner", "pruner/postgres", "drain", "domainevents", "domainevents/postgres", pgx}},
	{"inboxoutbox", []string{"policy"}},
	{"inboxoutbox/postgres", []string{"inboxoutbox", pgx}},
	{"inboxoutbox/retention", []string{"policy", "pruner/postgres", "drain", "inboxoutbox", "inboxoutbox/postgres", pgx}},
	{"connections/postgres", []string{"policy", "pruner/postgres", "purge", "connections", pgx}}, // the one store that removes: a tenant's connections, for good
	{"connections/...", []string{"connections/...", pgx}},
	{"migrations/preflight", []string{pgx}}, // a program checks at its start without the migrator
	{"migrations/...", []string{"policy", "policy/policyfile", "eventlog/...", "domainevents", "inboxoutbox", "connections/...", "migrations/...", pgx, "github.com/pressly/goose/v3/..."}},

	// What people and tests run.
	{"internal/pgserver", []string{embedded}},
	{"internal/pgtest", []string{"internal/pgserver", pgx}},
	{"internal/proctest", nil},
	{"internal/arch", nil},
	{"internal/...", []string{"policy/...", "pruner/...", "drain", "eventlog/...", "domainevents/...", "inboxoutbox/...", "migrations/...", "internal/...", pgx, "github.com/olekukonko/tablewriter/...", "golang.org/x/text/..."}},
	{"examples/consumer", []string{"policy", "drain", "inboxoutbox/...", "migrations", "migrations/preflight", pgx}},
	{"examples/worker", []string{"policy", "pruner/postgres", "drain", "domainevents/...", "migrations", pgx}},
	{"bench/...", []string{"policy", "policy/policyfile", "pruner", "pruner/postgres", "drain", "eventlog", "domainevents/...", "migrations", "internal/pgserver", "bench/...", pgx, "github.com/olekukonko/tablewriter/..."}},
	{"cmd/...", []string{
		"policy/...", "pruner/...", "drain", "purge", "eventlog/...", "domainevents/...", "inboxoutbox/...", "migrations/...", "connections/...", "bench/...", "internal/...", "cmd/...", pgx,
		"github.com/urfave/cli/v2", "github.com/olekukonko/tablewriter/...", "github.com/schollz/progressbar/v3", "github.com/xrash/smetrics",
		"github.com/mattn/go-isatty", "github.com/mattn/go-runewidth", "golang.org/x/term", "golang.org/x/text/...",
	}},
}

// light are the packages that a user's program imports: they bring pgx, with
// what pgx itself needs, and the standard library.
var light = []string{"drain", "pruner/postgres", "explaintest", "explaintest/pgxplan", "migrations/preflight"}

// command is linked from mustNotLink's packages on no way, however long.
const command = "cmd/prunectl"

var mustNotLink = []string{
	"internal/pgtest/...", "internal/proctest", "pruner/prunertest", "pruner/memory", "connections/memory", "connections/connectionstest",
	"github.com/testcontainers/...", "github.com/docker/...", "github.com/moby/...", "github.com/containerd/...",
	"github.com/riverqueue/...",
}

// mustNotRequire are modules that stay out of go.mod, and so out of the go.sum
// of our users: what needs them lives in modules of its own.
var mustNotRequire = []string{
	"github.com/testcontainers/...", "github.com/docker/...", "github.com/moby/...", "github.com/riverqueue/...",
}

// pure are packages that decide: the time is given to them, and they reach
// nothing outside. impure are the packages and calls of the standard library
// that would.
var (
	pure          = []string{"policy"}
	impureImports = []string{"os/...", "net/...", "database/...", "log/...", "syscall", "crypto/rand", "math/rand/..."}
	clockless     = []string{"policy", "policy/policyfile", "pruner", "pruner/memory"}
	clockCalls    = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}
)
