package workload

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestEvents holds what the documents say of the population.
func TestEvents(t *testing.T) {
	e := Events{Runs: 500, PerRun: 40, Head: 2500, Note: 60}
	db := filled(t, e.Population().Fill)
	live, _ := States()
	for _, c := range []struct {
		what, sql string
		args      []any
		want      int64
	}{
		{"events", "SELECT count(*) FROM run_events", nil, 22_500},
		{"runs, those of the head too", "SELECT count(*) FROM runs", nil, 503},
		{"live runs", "SELECT count(*) FROM runs WHERE status = ANY ($1) AND tenant_id <> 'tenant-head'", []any{live}, 10},
		{"states", "SELECT count(DISTINCT status) FROM runs WHERE status <> ALL ($1)", []any{live}, 3},
		{"events past the window, the head aside", "SELECT count(*) FROM run_events WHERE created_at < $1 AND tenant_id <> 'tenant-head'", []any{EventsCutoff().Time()}, 11_000},
		{"events of the head that are not before all others", "SELECT count(*) FROM run_events WHERE tenant_id = 'tenant-head' AND created_at >= $1", []any{HeadEnd}, 0},
		{"others that are before the end of the head", "SELECT count(*) FROM run_events WHERE tenant_id <> 'tenant-head' AND created_at < $1", []any{HeadEnd}, 0},
		{"rows out of the order of their ages", "SELECT count(*) FROM (SELECT created_at < lag(created_at) OVER (ORDER BY ctid) AS bad FROM run_events) x WHERE bad", nil, 0},
		{"runs of 2000 neighbours", "SELECT count(DISTINCT (tenant_id, run_id)) FROM (SELECT * FROM run_events WHERE tenant_id <> 'tenant-head' ORDER BY created_at LIMIT 2000) x", nil, 50},
		{"orphans", "SELECT count(*) FROM run_events e WHERE NOT EXISTS (SELECT FROM runs r WHERE (r.tenant_id, r.id) = (e.tenant_id, e.run_id))", nil, 0},
	} {
		if got := db.Int(t, c.sql, c.args...); got != c.want {
			t.Errorf("%s: %d; want %d", c.what, got, c.want)
		}
	}
	if w := db.Int(t, "SELECT avg(pg_column_size(e.*))::bigint FROM run_events e"); w < 150 || w > 190 {
		t.Errorf("a row has %d bytes; want some 170", w)
	}
}

func TestJobs(t *testing.T) {
	j := Jobs{Waiting: 3000, Due: 10_000}
	db := filled(t, j.Population().On.Fill)
	for _, c := range []struct {
		what, sql string
		want      int64
	}{
		{"waiting jobs", "SELECT count(*) FROM jobs WHERE state = 'available' AND finalized_at IS NULL AND id <= 3000", 3000},
		{"finished jobs", "SELECT count(*) FROM jobs WHERE state <> 'available' AND finalized_at < '2024-12-05 UTC' AND id > 3000", 10_000},
		{"their states", "SELECT count(DISTINCT state) FROM jobs WHERE finalized_at IS NOT NULL", 3},
	} {
		if got := db.Int(t, c.sql); got != c.want {
			t.Errorf("%s: %d; want %d", c.what, got, c.want)
		}
	}
	if n := db.Int(t, "SELECT count(*) FROM (SELECT id < lag(id) OVER (ORDER BY finalized_at) AS bad FROM jobs WHERE finalized_at IS NOT NULL) x WHERE bad"); n == 0 {
		t.Error("jobs finish in the order in which they began")
	}
	if w := db.Int(t, "SELECT avg(pg_column_size(j.*))::bigint FROM jobs j"); w < 450 || w > 550 {
		t.Errorf("a row has %d bytes; want some 500", w)
	}
}

func filled(t *testing.T, fill func(context.Context, *pgx.ConnConfig) error) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	config, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	return db
}
