package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// openArms opens the one sweep of a policy on a pool.
func openArms(ctx context.Context, pool *pgxpool.Pool, sweep string) ([]*postgres.Arm, policy.Sweep, error) {
	file, err := policyfile.Parse("prunectl.yaml", []byte(fileOf(sweep)))
	if err != nil {
		return nil, policy.Sweep{}, err
	}
	s := file.Sweeps[0].WithDefaults()
	a, err := postgres.Open(ctx, postgres.Pool(pool), s, postgres.Options{})
	return a, s, err
}

// sweepAll drains the one arm of a sweep through the library.
func sweepAll(t *testing.T, pool *pgxpool.Pool, sweep string) drain.Report {
	t.Helper()
	a, s, err := openArms(t.Context(), pool, sweep)
	if err != nil || len(a) != 1 {
		t.Fatalf("%d arms, %v", len(a), err)
	}
	server, err := postgres.Identify(t.Context(), postgres.Pool(pool))
	if err != nil {
		t.Fatal(err)
	}
	r, err := drain.Run(t.Context(), a[0], s.Window.Cutoff(server.Now), boundsOf(s))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLimitBelowOne: as a library, a limit that is no limit is answered without a query: there is not even a connection.
func TestLimitBelowOne(t *testing.T) {
	t.Parallel()
	db := load(t, "limit-zero-or-nonsense")
	pool := db.Pool(t)
	a, s, err := openArms(t.Context(), pool, jobsSweep)
	if err != nil {
		t.Fatal(err)
	}
	server, err := postgres.Identify(t.Context(), postgres.Pool(pool))
	if err != nil {
		t.Fatal(err)
	}
	cutoff := s.Window.Cutoff(server.Now)
	pool.Close()
	for _, limit := range []int{0, -5, pruner.MaxLimit + 1} {
		res, err := a[0].Prune(t.Context(), pruner.Batch{Cutoff: cutoff, Limit: limit})
		if !errors.Is(err, pruner.ErrLimit) || res.Removed != 0 || res.End {
			t.Errorf("limit %d: %+v, %v", limit, res, err)
		}
	}
	for _, b := range []drain.Bounds{{Limit: -5}, {Limit: 3_000_000_000}, {Limit: 10, Batches: -1}, {Limit: 10, Rows: -1}, {Limit: 10, Duration: -1}} {
		r, err := drain.Run(t.Context(), a[0], cutoff, b)
		if !errors.Is(err, drain.ErrBounds) || r.Stop != drain.StopRefused || r.Drained() {
			t.Errorf("%+v: %+v, %v", b, r, err)
		}
	}
	// A limit that is one does reach for a connection.
	if _, err := a[0].Prune(t.Context(), pruner.Batch{Cutoff: cutoff, Limit: 1}); err == nil || errors.Is(err, pruner.ErrLimit) {
		t.Errorf("limit 1 on a closed pool: %v", err)
	}
	if n := db.Int(t, countJobs); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}

// TestLabelAddedWhileConnected: a process that lives long learns of a label that an enum gets, without a restart.
func TestLabelAddedWhileConnected(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			db := load(t, "enum-states")
			pool := db.Pool(t, func(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.DefaultQueryExecMode = 1, mode })
			if r := sweepAll(t, pool, enums); r.Removed != 20 || !r.Drained() {
				t.Fatalf("%+v", r)
			}
			withCancelled := with(enums, "guard: {state: state, terminal: [done, failed, cancelled]}")
			var refused *postgres.RefusedError
			if _, _, err := openArms(t.Context(), pool, withCancelled); !errors.As(err, &refused) {
				t.Fatalf("a label that does not exist: %v", err)
			}
			db.Exec(t, "alter type st add value 'cancelled'")
			db.Exec(t, "insert into j_enum select 100 + g, 'cancelled', now() - interval '90 days' from generate_series(1, 5) g")
			if r := sweepAll(t, pool, withCancelled); r.Removed != 5 || r.Held != 20 || !r.Drained() {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestEachBatchOfEqualAges: no batch is larger than its limit, and none of them begins anew.
func TestEachBatchOfEqualAges(t *testing.T) {
	t.Parallel()
	db := load(t, "equal-ages-at-the-batch-edge")
	pool := db.Pool(t)
	a, s, err := openArms(t.Context(), pool, jobsSweep)
	if err != nil {
		t.Fatal(err)
	}
	server, err := postgres.Identify(t.Context(), postgres.Pool(pool))
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	var at pruner.Cursor
	for range 10 {
		res, err := a[0].Prune(t.Context(), pruner.Batch{Cutoff: s.Window.Cutoff(server.Now), Limit: 100, After: at})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, res.Removed)
		if at = res.Next; res.End {
			break
		}
	}
	sum := 0
	for _, n := range sizes {
		if sum += n; n > 100 {
			t.Errorf("a batch of %d", n)
		}
	}
	if sum != 250 || len(sizes) > 5 || db.Int(t, countJobs) != 0 {
		t.Errorf("batches of %v", sizes)
	}
}

// TestSettingsEndWithTheBatch: what a sweep sets for a trigger is gone from the connection, which others use next.
func TestSettingsEndWithTheBatch(t *testing.T) {
	t.Parallel()
	db := load(t, "append-only-trigger")
	pool := db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
	if r := sweepAll(t, pool, with(jobsSweep, `set: {app.retention: "on"}`)); r.Removed != 5 {
		t.Fatalf("%d rows were removed", r.Removed)
	}
	var is string
	if err := pool.QueryRow(t.Context(), "select coalesce(current_setting('app.retention', true), '')").Scan(&is); err != nil || is != "" {
		t.Errorf("app.retention is %q afterwards, %v", is, err)
	}
}
