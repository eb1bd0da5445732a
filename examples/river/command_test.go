package river_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestSweepByTheCommand(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "prunectl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/prunectl")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	grants, err := os.ReadFile("role.sql")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	const role = "river_sweeper"
	pgtest.Role(t, role, "login")

	proveSweep(t, db, func(t *testing.T, due map[string]int) removal {
		db.Exec(t, string(grants))
		dsn := db.DSNAs(role)

		for _, c := range prunectl(t, bin, dsn, "check").Checks {
			if c.Result != "ok" {
				t.Errorf("check %s of River's own schema: %s: %s", c.Check, c.Result, c.Detail)
			}
		}

		planned := map[string]int{}
		for _, a := range prunectl(t, bin, dsn, "plan").Arms {
			planned[a.Arm] = a.Due
		}
		equal(t, "due by plan", planned, due)

		swept := prunectl(t, bin, dsn, "sweep")
		r := removal{byState: map[string]int{}, examined: swept.Examined, drained: swept.Drained}
		for _, a := range swept.Arms {
			r.byState[a.Arm] = a.Removed
			r.indexes = append(r.indexes, a.Index)
		}
		return r
	})
}

// sweepReport is the part of a sweep's report that this test reads.
type sweepReport struct {
	Name     string
	Drained  bool
	Examined int
	Checks   []struct{ Check, Result, Detail string }
	Arms     []struct {
		Arm          string
		Index        string
		Due, Removed int
	}
}

// prunectl runs the command as a person would, and returns its report on the one sweep of river.yaml.
func prunectl(t *testing.T, bin, dsn, verb string) sweepReport {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, verb, "--policy", "river.yaml", "-o", "json")
	// Nothing but DATABASE_URL says where to go and what to do.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "PRUNECTL_")
	}), "DATABASE_URL="+dsn)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("prunectl %s: %v\n%s%s", verb, err, stderr.String(), stdout.String())
	}
	t.Logf("prunectl %s\n%s", verb, stderr.String())
	var report struct{ Sweeps []sweepReport }
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("read the report of prunectl %s: %v\n%s", verb, err, stdout.String())
	}
	if len(report.Sweeps) != 1 || report.Sweeps[0].Name != "river" {
		t.Fatalf("prunectl %s reports on %+v; the policy file has one sweep, river", verb, report.Sweeps)
	}
	return report.Sweeps[0]
}
