package river_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

func TestSweepByTheLibrary(t *testing.T) {
	db := pgtest.New(t)
	pool := db.Pool(t)
	proveSweep(t, db, func(t *testing.T, _ map[string]int) removal { return library(t, pool) })
}

// library is the sweep as a service would run it that imports prunectl. The file bounds nothing, so neither does it: the
// zero Bounds are the documented defaults.
func library(t *testing.T, pool *pgxpool.Pool) removal {
	t.Helper()
	ctx := t.Context()
	text, err := os.ReadFile("river.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := policyfile.Parse("river.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	policy := file.Sweeps[0]
	arms, err := postgres.Open(ctx, postgres.Pool(pool), policy, postgres.Options{OneSweeper: true})
	if err != nil {
		t.Fatal(err)
	}
	sweep, now := drain.Sweep{Name: policy.Name}, time.Now()
	r := removal{byState: map[string]int{}}
	for _, a := range arms {
		spec := a.Spec()
		sweep.Arms = append(sweep.Arms, drain.Arm{Name: spec.Name, Pruner: a, Cutoff: spec.Window.Cutoff(now), CountsHeld: spec.CountsHeld()})
		r.indexes = append(r.indexes, a.Index())
	}
	report, err := drain.RunSweep(ctx, sweep)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range report.Arms {
		r.byState[strings.TrimPrefix(a.Name, policy.Name+" ")] = a.Removed
	}
	r.examined, r.drained = report.Examined, report.Drained()
	return r
}
