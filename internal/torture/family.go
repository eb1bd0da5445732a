package torture

import (
	"context"
	_ "embed" // the tables and the policy are files of their own
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

//go:embed schema.sql
var schema string

//go:embed policy.yaml
var policyText string

// family is a sweep with its tables and everybody who works on them.
type family struct {
	name     string   // of the sweep and of its target
	children []string // tables that go with it
	ledger   bool     // its deletions are written down
	cap      int64    // rows of the target above which nothing is added
	acts     []act    // of an ordinary user
	holds    []act    // of one who does little but hold locks
	due      string   // FROM and WHERE of the rows that are due by the last drain: $1 is its now
	kept     []kept   // what the last drain's report counts

	users    []*user
	sweepers []*worker
	last     lastDrain

	// What must be left in the tables, by what users and sweepers say they did.
	rows, kids atomic.Int64
	// What users say they did, for the report.
	inserted, updated, deleted atomic.Int64
}

// kept is a class of rows that a sweep keeps and counts.
type kept struct{ class, from string }

// act is one thing that a user does, weight times as often as others.
type act struct {
	name   string
	weight int
	do     func(ctx context.Context, u *user) error
}

// user is one connection of a program that works beside the sweeps.
type user struct {
	name   string
	family *family
	conn   *pgx.Conn
	rand   *rand.Rand
	acts   []act
	world  *world
	done   map[string]int
	doing  string
}

// done is what a transaction did, in rows.
type done struct{ inserted, updated, deleted, rows, kids int64 }

// everyFamily is what is tortured.
func everyFamily() []*family {
	return []*family{
		owners("runs", "run_events", true), owners("bare_runs", "bare_run_events", false),
		jobs("jobs", true), jobs("bare_jobs", false), parents(),
	}
}

// people brings the users and the sweepers of a family together, each with a chance of its own.
func (w *world) people(ctx context.Context, f *family) error {
	index := uint64(0)
	for _, c := range f.name {
		index = index*31 + uint64(c)
	}
	random := func() *rand.Rand {
		index++
		return rand.New(rand.NewPCG(w.o.Random, index))
	}
	add := func(what string, acts []act) error {
		name := fmt.Sprintf("user %s %s %d", f.name, what, len(f.users))
		conn, err := w.connect(ctx, name, pgx.QueryExecModeCacheStatement)
		if err != nil {
			return err
		}
		f.users = append(f.users, &user{name: name, family: f, conn: conn, rand: random(), acts: acts, world: w, done: map[string]int{}})
		return nil
	}
	users := 2
	if f.ledger {
		users = 4
	}
	for range users {
		if err := add("works", f.acts); err != nil {
			return err
		}
	}
	if err := add("holds", f.holds); err != nil {
		return err
	}
	recruit := w.engines
	if w.o.wrong != nil {
		recruit = func(ctx context.Context, f *family) ([]sweeper, error) { return w.o.wrong(ctx, w, f) }
	}
	ones, err := recruit(ctx, f)
	if err != nil {
		return err
	}
	for _, s := range ones {
		f.sweepers = append(f.sweepers, &worker{sweeper: s, family: f, rand: random(), stops: map[string]int{}})
	}
	return nil
}

// between is a number from low to high, both included.
func (u *user) between(low, high int) int { return low + u.rand.IntN(high-low+1) }

// one in n times it is true.
func (u *user) one(n int) bool { return u.rand.IntN(n) == 0 }

// tables is a statement with the names of its tables.
func tables(pairs ...string) func(string) string {
	r := strings.NewReplacer(pairs...)
	return func(sql string) string { return r.Replace(sql) }
}
