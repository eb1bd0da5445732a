package pgtest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

var (
	endMu sync.Mutex
	ends  []func() error
)

// atEnd has f called when the test binary ends, the last one first.
func atEnd(f func() error) {
	endMu.Lock()
	defer endMu.Unlock()
	ends = append(ends, f)
}

// Main runs a package's tests, ends the server if one was started, and exits.
// Goroutines that the tests have left running are a failure, with their stacks.
// Where a test binary ends otherwise, by a panic or go test's timeout, the
// server and its folder go too, but what was made on the server of
// PRUNECTL_TEST_DSN stays there.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	defer func() {
		endMu.Lock()
		defer endMu.Unlock()
		for i := len(ends) - 1; i >= 0; i-- {
			if err := ends[i](); err != nil {
				fmt.Fprintln(os.Stderr, "pgtest:", err)
				if code == 0 {
					code = 1
				}
			}
		}
	}()
	if code = m.Run(); code != 0 {
		return code // a test that failed may have left anything
	}
	if left := leakedGoroutines(leakPatience); left != "" {
		fmt.Fprintln(os.Stderr, "pgtest:", errLeak(left))
		return 1
	}
	return 0
}
