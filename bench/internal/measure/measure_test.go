package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTrips(t *testing.T) {
	ctx := t.Context()
	config, err := pgx.ParseConfig(pgtest.New(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	var n trips
	n.count(&config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	b := &pgx.Batch{}
	for range 5 {
		b.Queue("SELECT 1")
	}
	for _, c := range []struct {
		name string
		do   func() error
		want int
	}{
		{"a simple query", func() error { return conn.PgConn().Exec(ctx, "SELECT 1; SELECT 2").Close() }, 1},
		{"a prepared query for the first time", func() error { _, err := conn.Exec(ctx, "SELECT $1::int", 1); return err }, 2},
		{"and again", func() error { _, err := conn.Exec(ctx, "SELECT $1::int", 2); return err }, 1},
		{"two of them", func() error {
			_, err1 := conn.Exec(ctx, "SELECT $1::int", 2)
			_, err2 := conn.Exec(ctx, "SELECT $1::int", 2)
			return errors.Join(err1, err2)
		}, 2},
		{"five in a batch", func() error {
			for range 2 { // the first prepares
				n.n = 0
				if err := conn.SendBatch(ctx, b).Close(); err != nil {
					return err
				}
			}
			return nil
		}, 1},
	} {
		n.n = 0
		if err := c.do(); err != nil || n.n != c.want {
			t.Errorf("%s: %d round trips and error %v; want %d", c.name, n.n, err, c.want)
		}
	}
}

// TestRun drains a small population with every subject: each removes the same rows, which are those that are due, and the
// batches say what the whole drain did.
func TestRun(t *testing.T) {
	ctx := t.Context()
	p, err := place.Open(ctx, place.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	events := workload.Events{Runs: 100, PerRun: 40, Head: 500, Note: 60}
	jobs := workload.Jobs{Waiting: 2000, Due: 1000}
	domain := workload.Domain{Own: 200, Held: 30, History: 300}
	sweep := workload.EventsSweep(false)
	sweep.Batch.Limit = 300
	for _, c := range []struct {
		pop      place.Population
		subjects []workload.Subject
		want     string // counts what a drain must leave, before it: the total less what is due
	}{
		{events.Population(), []workload.Subject{
			workload.Unbounded(), workload.CtidIn(300), workload.KeysFetched(300), workload.AgeRange(300),
			workload.Ours("ours", sweep, workload.Now, 300), workload.Ours("final", workload.EventsSweep(true), workload.Now, 300), workload.Drained("adapted", sweep, workload.Now),
		}, `SELECT count(*) FROM run_events e JOIN runs r ON (r.tenant_id, r.id) = (e.tenant_id, e.run_id)
			 WHERE e.created_at < '2024-12-02 UTC' AND r.status IN ('completed', 'failed', 'cancelled')`},
		{jobs.Population(), []workload.Subject{
			workload.JobsUnbounded(), workload.JobsIDIn(300), workload.JobsIDInByState(300), workload.JobsFetched(300), workload.Ours("ours", workload.JobsSweep(), workload.Now, 300),
		}, "SELECT count(*) FROM jobs WHERE finalized_at IS NOT NULL"},
		{domain.WithDue(400), []workload.Subject{workload.DomainByPolicy(300), workload.DomainORed(300), workload.DomainOurs(300, workload.Now)},
			`SELECT (SELECT count(*) FROM domain_events) + (SELECT count(*) FROM domain_event_deliveries) - 530 - 1990`},
	} {
		for _, s := range c.subjects {
			clone, err := p.Clone(ctx, c.pop)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := clone.Connect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			count := func() (n int) {
				if err := conn.QueryRow(ctx, c.want).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			due := count()
			d, err := Run(ctx, p, c.pop, s, Choice{Costs: true, Clone: clone})
			if err != nil {
				t.Fatal(err)
			}
			if left := count(); d.Removed != due || left != 0 || due < 900 {
				t.Errorf("%s on %s removed %d of %d due rows and left %d", s.Name, c.pop.Name, d.Removed, due, left)
			}
			var sum place.Cost
			removed := 0
			for _, b := range d.Batches {
				if b.Removed > max(s.Limit, 300) && s.Limit > 0 {
					t.Errorf("a batch of %s removed %d rows", s.Name, b.Removed)
				}
				removed, sum = removed+b.Removed, sum.Plus(b.Cost)
			}
			if removed != d.Removed || sum != d.Cost || sum.Buffers < int64(due) || sum.WAL < int64(50*due) || d.Trips < len(d.Batches) {
				t.Errorf("%s: %d rows and %+v in its batches, %d rows, %+v and %d round trips in all", s.Name, removed, sum, d.Removed, d.Cost, d.Trips)
			}
			if err := clone.Drop(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	d, err := Run(ctx, p, events.Population(), workload.CtidIn(100), Choice{Batches: 3})
	if err != nil || len(d.Batches) != 3 || d.Removed != 300 || d.Cost != (place.Cost{}) {
		t.Errorf("three batches, not counted: %+v, error %v", d, err)
	}

	t.Run("load", func(t *testing.T) {
		clone, err := p.Clone(ctx, WithLoad(events.Population()))
		if err != nil {
			t.Fatal(err)
		}
		const rate, over = 100, 2 * time.Second
		l, err := Beside(ctx, clone, rate, over, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		if l.Over < over*9/10 || l.Done != len(l.Latency) || l.Done < rate*2/4 || l.Done > rate*2*4 {
			t.Errorf("at %d transactions a second pgbench did %d in %s", rate, l.Done, l.Over)
		}
		broken := errors.New("broken")
		if _, err := Beside(ctx, clone, rate, over, func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("what failed beside it: %v", err)
		}
		if err := clone.Drop(ctx); err != nil {
			t.Error(err)
		}
	})

	t.Run("command", func(t *testing.T) {
		m, err := Command(ctx, p, workload.Log{Rows: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "linux" && (!m.OK || m.MB < 5 || m.MB > 40) {
			t.Errorf("the command's memory: %+v", m)
		}
	})
}

func TestReadLog(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tx.1":   "0 1 1500 0 1000 999999 20\n0 2 2500 0 1001 0 30\n0 3 skipped 0 1001 500000\n",
		"tx.1.1": "1 1 500 0 1001 750000 0\n1 2 9000 0 1003 0 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := readLog(dir, time.Unix(1001, 0), time.Unix(1002, 0))
	if err != nil || l.Done != 2 || l.Over != time.Second || l.Latency[0] != 0.5 || l.Latency[1] != 2.5 {
		t.Errorf("%+v, error %v; want the transactions of 2.5 and 0.5 ms, sorted", l, err)
	}
	if _, err := readLog(t.TempDir(), time.Now(), time.Now()); err == nil {
		t.Error("no log at all is no error")
	}
}

func TestQuantile(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]float64{0: 1, 0.5: 6, 0.99: 10, 1: 10} {
		if got := Quantile(ten, q); got != want {
			t.Errorf("quantile %v is %v; want %v", q, got, want)
		}
	}
	if Quantile(nil, 0.5) != 0 || Median(nil) != 0 || Median([]float64{3, 1, 2}) != 2 || Median([]float64{4, 1, 2, 3}) != 2.5 {
		t.Error("the medians are wrong")
	}
}
