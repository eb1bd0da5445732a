//go:build unix

package failures

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/proctest"
)

var (
	kills  = flag.Int("failures.kills", 24, "how often TestKilled kills the command")
	points = flag.Uint64("failures.random", 0, "where the random points come from; 0: each run has its own, and prints it")
)

func TestMain(m *testing.M) {
	// Most of what the tests do is to wait: for servers that start, and for the command's own patience.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// random is a source of points, and prints by what it can be had again.
func random(t *testing.T) *rand.Rand {
	n := *points
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-failures.random %d", n)
	return rand.New(rand.NewPCG(n, n))
}

// command is the built command, shared by the tests that are under way.
var command = proctest.Shared{Name: "prunectl", Package: "github.com/prunectl/prunectl/cmd/prunectl"}
