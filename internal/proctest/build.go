package proctest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const buildTimeout = 5 * time.Minute

// Build builds a Go program, which go build is told as pkg, and returns its
// path: name, in a folder that goes with the test.
func Build(t testing.TB, name, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	if err := build(bin, pkg); err != nil {
		t.Fatal(err)
	}
	return bin
}

// build leaves out what a debugger needs, which halves the work of the linker.
func build(bin, pkg string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", bin, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Shared is a program that the tests of a package share; see [Build] for its
// fields. It must not be copied.
type Shared struct {
	Name, Package string

	mu    sync.Mutex
	users int
	dir   string
}

// Path is the path of the program. It is built for the first test that asks,
// and removed after the last one that is under way: tests that ask before they
// call t.Parallel share it with all others.
func (s *Shared) Path(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	bin := filepath.Join(s.dir, s.Name)
	if s.users == 0 {
		dir, err := os.MkdirTemp("", "proctest-")
		if err != nil {
			t.Fatal(err)
		}
		bin = filepath.Join(dir, s.Name)
		if err := build(bin, s.Package); err != nil {
			_ = os.RemoveAll(dir)
			t.Fatal(err)
		}
		s.dir = dir
	}
	s.users++
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users == 0 {
			_ = os.RemoveAll(s.dir)
		}
	})
	return bin
}
