//go:build unix

package failures

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
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
var command struct {
	sync.Mutex
	users int
	dir   string
}

// built is the path of the command. It is built for the first test that asks, and removed after the last.
func built(t *testing.T) string {
	t.Helper()
	command.Lock()
	defer command.Unlock()
	if command.users == 0 {
		dir, err := os.MkdirTemp("", "prunectl-failures-")
		if err != nil {
			t.Fatal(err)
		}
		command.dir = dir
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "prunectl"), "github.com/prunectl/prunectl/cmd/prunectl").CombinedOutput(); err != nil {
			_ = os.RemoveAll(dir)
			t.Fatalf("build the command: %v\n%s", err, out)
		}
	}
	command.users++
	t.Cleanup(func() {
		command.Lock()
		defer command.Unlock()
		if command.users--; command.users == 0 {
			_ = os.RemoveAll(command.dir)
		}
	})
	return filepath.Join(command.dir, "prunectl")
}
