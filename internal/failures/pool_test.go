//go:build unix

package failures

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// TestNothingLeaks lets a program's sweeps, by RunAll and from a Loop, lose their lines at random places of the wire, and
// their server's processes. After each pass the pool has all its connections back, and after the last there are neither
// connections on the server nor goroutines in the program.
func TestNothingLeaks(t *testing.T) { // not in parallel: it looks at goroutines
	const passes, most = 20, 3
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes connections that were forgotten
	rnd := random(t)
	s := onShared(t, 100*passes, 300*passes)
	p := s.through()
	ignore := goleak.IgnoreCurrent()
	pool, sweeps := s.program(most)

	loop, err := drain.NewLoop(drain.LoopConfig{Sweeps: func(context.Context) ([]drain.Sweep, error) { return sweeps, nil }, Interval: 1, Time: 10 * time.Second, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0 // with an error; one that asked has none
	for n := range passes {
		at, seen, kind := 1+rnd.IntN(500), 0, n%4
		p.on(func(m message) verdict {
			seen++
			if kind == 3 && seen > at && m.committed() { // the outcome is asked for
				seen, kind = 0, 4
				return drop
			}
			if kind > 2 || seen != at {
				return pass
			}
			switch kind {
			case 0:
				return drop
			case 1:
				return passReset
			}
			s.db.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'leak'")
			return pass
		})
		before := s.rows()
		var reports []drain.SweepReport
		if n/4%2 == 0 {
			reports, err = drain.RunAll(t.Context(), sweeps, file(t).Budget, drain.Options{})
		} else {
			reports, _, err = loop.Idle(t.Context())
		}
		if err != nil {
			lost++
		}
		p.on(nil)
		s.until("no batch is at work", "select not exists (select from pg_stat_activity where application_name = 'leak' and state <> 'idle')")
		gone, said, unknown := before.less(s.rows()).sum(), 0, 0
		for _, r := range reports {
			said += r.Removed + r.Children
			unknown += r.UnknownCommits
		}
		if gone < said || gone > said+unknown*limit {
			t.Errorf("pass %d: %d rows are gone; said are %d and %d unknown commits", n+1, gone, said, unknown)
		}
		if st := pool.Stat(); st.AcquiredConns() != 0 || st.TotalConns() > most {
			t.Errorf("pass %d: %d connections are in use of %d", n+1, st.AcquiredConns(), st.TotalConns())
		}
		s.until("the server has no connection that the pool has not", fmt.Sprintf("select count(*) <= %d from pg_stat_activity where application_name = 'leak'", pool.Stat().TotalConns()))
	}
	if lost < passes/4 {
		t.Errorf("%d passes lost their line", lost)
	}
	asked, _ := p.asks()
	if asked == 0 {
		t.Error("no pass asked for an outcome")
	}
	t.Logf("%d of %d passes failed by it, %d outcomes were asked for; the pool made %d connections", lost, passes, asked, pool.Stat().NewConnsCount())
	if _, err := drain.RunAll(t.Context(), sweeps, file(t).Budget, drain.Options{}); err != nil {
		t.Errorf("the pass after them: %v", err)
	}
	s.whole()
	pool.Close()
	s.until("no connection of the program is left", "select not exists (select from pg_stat_activity where application_name = 'leak')")
	goleak.VerifyNone(t, ignore)
}

func file(t *testing.T) *policyfile.File {
	t.Helper()
	f, err := policyfile.Parse("prunectl.yaml", []byte(policy("ceiling: {batches: 6}\n")))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// program is what a program has that sweeps by itself: a pool, and the sweeps over it.
func (s *scene) program(most int32) (*pgxpool.Pool, []drain.Sweep) {
	s.t.Helper()
	config, err := pgxpool.ParseConfig(s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	config.MaxConns = most
	config.ConnConfig.RuntimeParams["application_name"] = "leak"
	pool, err := pgxpool.NewWithConfig(s.t.Context(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(pool.Close)
	server, err := postgres.Identify(s.t.Context(), postgres.Pool(pool))
	if err != nil {
		s.t.Fatal(err)
	}
	var sweeps []drain.Sweep
	for _, sw := range file(s.t).Sweeps {
		arms, err := postgres.Open(s.t.Context(), postgres.Pool(pool), sw, postgres.Options{OneSweeper: true})
		if err != nil {
			s.t.Fatal(err)
		}
		sweeps = append(sweeps, drain.SweepOf(sw, arms, server.Now))
	}
	return pool, sweeps
}
