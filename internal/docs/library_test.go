package docs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// library is the README's example of the library, word for word.
func library(ctx context.Context, dsn string, sweep policy.Sweep, now time.Time) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	arms, err := postgres.Open(ctx, postgres.Pool(pool), sweep, postgres.Options{OneSweeper: true}) // refuses what the catalog contradicts
	if err != nil {
		return err
	}
	report, err := drain.RunSweep(ctx, drain.SweepOf(sweep, arms, now))
	fmt.Printf("%d removed, %d held, %s\n", report.Removed, report.Held, report.Stop)
	return err
}

func TestLibraryExample(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE jobs (id bigint PRIMARY KEY, state text NOT NULL, finished_at timestamptz);
CREATE INDEX jobs_age ON jobs (finished_at, id);
INSERT INTO jobs SELECT g, CASE WHEN g % 4 = 0 THEN 'running' ELSE 'done' END, now() - interval '40 days' FROM generate_series(1, 20) g;`)
	sweep := policy.Sweep{
		Name: "jobs", Table: policy.Name{Schema: "public", Table: "jobs"}, Age: "finished_at", Window: policy.MustWindow(7 * 24 * time.Hour),
		Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}},
	}
	if err := library(t.Context(), db.DSN, sweep, time.Now()); err != nil {
		t.Fatal(err)
	}
	if n := db.Int(t, "SELECT count(*) FROM jobs"); n != 5 {
		t.Errorf("%d jobs are left; want the 5 that run", n)
	}
	src := read(t, "library_test.go")
	_, body, _ := strings.Cut(src, "now time.Time) error {\n")
	body, _, _ = strings.Cut(body, "\treturn err\n}\n\nfunc TestLibraryExample")
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")[1:]
	if !strings.Contains(read(t, "../../README.md"), "```go\n"+body+"```") {
		t.Errorf("the README's example of the library is not this one:\n%s", body)
	}
}
