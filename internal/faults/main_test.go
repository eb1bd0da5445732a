package faults

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/proctest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// table is every fault of the command, one list a kind.
var table = slices.Concat(guards, parents, outboxes, races, bounds, windows, instants, catalogs, rights, costs, exits, signals, poolers)

// TestFaults carries the table out, each fault on a database of its own, by runs of the real command.
func TestFaults(t *testing.T) {
	bin := proctest.Build(t, "prunectl", "github.com/prunectl/prunectl/cmd/prunectl")
	for _, f := range table {
		t.Run(f.name(), func(t *testing.T) {
			t.Parallel()
			f.carryOut(t, bin)
		})
	}
}

// TestEveryFileIsUsed: a state without an entry is a fault that nobody looks for. An entry whose file is not there fails by
// itself.
func TestEveryFileIsUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, f := range table {
		if seen[f.name()] {
			t.Errorf("two entries are named %s", f.name())
		}
		seen[f.name()], seen[f.file] = true, true
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".sql"); !seen[name] {
			t.Errorf("%s has no entry in the table", file)
		}
	}
}
