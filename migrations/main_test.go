package migrations

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// installed and withEvents are databases with all of run_events and domain_events.
var (
	installed  = pgtest.NewTemplate("run_events", install("run_events"))
	withEvents = pgtest.NewTemplate("domain_events", install("domain_events"))
)

func install(component string) func(ctx context.Context, dsn string) error {
	return func(ctx context.Context, dsn string) error {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}
		m, err := New(config, Options{Component: component})
		if err != nil {
			return err
		}
		defer m.Close()
		_, err = m.Up(ctx)
		return err
	}
}

// bound is how long a test waits for what should come at once, on a busy machine.
const bound = 45 * time.Second

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

// migrator is one over db, closed when the test ends.
func migrator(t *testing.T, dsn string, change ...func(*Options)) *Migrator {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Component: "run_events", LockWait: bound}
	for _, f := range change {
		f(&o)
	}
	m, err := New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func ofEvents(o *Options) { o.Component = "domain_events" }

func inSchema(name string) func(*Options) { return func(o *Options) { o.Schema = name } }

// up runs Up and wants these versions applied.
func up(t *testing.T, m *Migrator, want ...string) []Applied {
	t.Helper()
	done, err := m.Up(bounded(t))
	if err != nil {
		t.Fatalf("up: %v", err)
	}
	var got []string
	for _, a := range done {
		got = append(got, a.String())
	}
	equal(t, "applied", got, want)
	return done
}

// down runs Down and wants this version taken down, "" for none.
func down(t *testing.T, m *Migrator, want string) {
	t.Helper()
	a, err := m.Down(bounded(t))
	if err != nil {
		t.Fatalf("down: %v", err)
	}
	got := ""
	if a != nil {
		got = a.String()
	}
	if got != want {
		t.Fatalf("down took down %q, want %q", got, want)
	}
}

func state(t *testing.T, m *Migrator, want string) Status {
	t.Helper()
	s, err := m.Status(bounded(t))
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	if s.State != want {
		t.Fatalf("state is %q, want %q", s.State, want)
	}
	if s.UpToDate() != (want == "up to date") {
		t.Fatalf("UpToDate is %t in state %q", s.UpToDate(), want)
	}
	return s
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}

// until asks until the answer is not 0.
func until(t *testing.T, conn *pgx.Conn, what, sql string, args ...any) int64 {
	t.Helper()
	ctx := bounded(t)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		var n int64
		if err := conn.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			t.Fatalf("wait until %s: %v", what, err)
		}
		if n != 0 {
			return n
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("wait until %s: it never came", what)
		}
	}
}

// validity of the retention index: -1 missing, 0 not valid, 1 valid.
const validity = `select coalesce((select max(i.indisvalid::int) from pg_index i where i.indexrelid = to_regclass('public.run_events_retention')), -1)`

const fill = `
insert into public.runs (tenant_id, id, status) select 't', 'r' || n, 'completed' from generate_series(1, 10) n;
insert into public.run_events (tenant_id, run_id, sequence, type, event)
select 't', 'r' || n, s, 'step', '{}' from generate_series(1, 10) n, generate_series(1, 20) s`
