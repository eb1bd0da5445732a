package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// sweeper drains a family once. The report is exact beside an error. now is that of its cutoffs. bound changes the bounds of
// the drain.
type sweeper interface {
	name() string // of its connections
	drain(ctx context.Context, bound func(*drain.Bounds)) (r drain.SweepReport, now time.Time, err error)
	close()
}

// worker lets a sweeper drain again and again, and adds up what it says.
type worker struct {
	sweeper
	family *family
	rand   *rand.Rand

	drains, batches, removed, children, examined, locked, moved int
	slowest                                                     time.Duration
	stops                                                       map[string]int
}

// lastDrain is the drain of a family after all users have gone.
type lastDrain struct {
	by     string
	report drain.SweepReport
	now    time.Time
}

// kind is what a right sweeper is like.
type kind struct {
	limit int
	one   bool // under the lock of one sweeper
	mode  pgx.QueryExecMode
	level string // the isolation level that its connections have by default
}

// kinds of sweepers work on each family at once.
var kinds = []kind{
	{17, false, pgx.QueryExecModeCacheStatement, "read committed"},
	{211, false, pgx.QueryExecModeSimpleProtocol, "read committed"},
	{1000, true, pgx.QueryExecModeExec, "repeatable read"},
	{61, true, pgx.QueryExecModeCacheDescribe, "serializable"},
}

// engine is a right sweeper, as a user of the library would have it.
type engine struct {
	called string
	pool   *pgxpool.Pool
	sweep  policy.Sweep
	arms   []*postgres.Arm
}

// engines are the right sweepers of a family.
func (w *world) engines(ctx context.Context, f *family) (all []sweeper, err error) {
	for _, k := range kinds {
		e, err := w.engine(ctx, policyText, f.name, k)
		if err != nil {
			for _, e := range all {
				e.close()
			}
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// engine is a right sweeper under a policy.
func (w *world) engine(ctx context.Context, text, sweep string, k kind) (_ *engine, err error) {
	file, err := policyfile.Parse("policy.yaml", []byte(strings.Replace(text, "limit: 1000", fmt.Sprintf("limit: %d", k.limit), 1)))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("sweep %s %d", sweep, k.limit)
	e := &engine{called: name}
	for _, s := range file.Sweeps {
		if s.Name == sweep {
			e.sweep = s
		}
	}
	config, err := pgxpool.ParseConfig("pool_max_conns=2")
	if err != nil {
		return nil, err
	}
	config.ConnConfig = w.config.Copy()
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = k.level
	config.ConnConfig.RuntimeParams["deadlock_timeout"] = w.o.deadlock
	config.ConnConfig.DefaultQueryExecMode = k.mode
	if e.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if e.arms, err = postgres.Open(ctx, postgres.Pool(e.pool), e.sweep, postgres.Options{OneSweeper: k.one}); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *engine) name() string { return e.called }
func (e *engine) close()       { e.pool.Close() }

func (e *engine) drain(ctx context.Context, bound func(*drain.Bounds)) (drain.SweepReport, time.Time, error) {
	server, err := postgres.Identify(ctx, postgres.Pool(e.pool))
	if err != nil {
		return drain.SweepReport{}, time.Time{}, err
	}
	s := drain.SweepOf(e.sweep, e.arms, server.Now)
	bound(&s.Bounds)
	r, err := drain.RunSweep(ctx, s)
	return r, server.Now, err
}

// sweep lets a sweeper work until the torture ends: mostly to the end of a drain, now and then to a ceiling or into a
// canceled context. It ends after the batch in hand.
func (w *world) sweep(ctx context.Context, s *worker) {
	for !w.over() {
		c, cancel := ctx, context.CancelFunc(func() {})
		if s.rand.IntN(8) == 0 {
			c, cancel = context.WithTimeout(ctx, time.Duration(1+s.rand.IntN(150))*time.Millisecond)
		}
		r, _, err := s.drain(c, func(b *drain.Bounds) {
			b.Stop = w.stop
			switch s.rand.IntN(10) {
			case 0:
				b.Rows = 1 + s.rand.IntN(2000)
			case 1:
				b.Batches = 1 + s.rand.IntN(10)
			}
		})
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = nil
		}
		cancel()
		s.add(w, r)
		if !w.sound(s, r, err) {
			return
		}
		w.pause(time.Duration(s.rand.IntN(60)) * time.Millisecond)
	}
}

// sound says whether a drain ended as it may.
func (w *world) sound(s *worker, r drain.SweepReport, err error) bool {
	switch {
	case err != nil:
	case r.Stuck > 0:
		err = fmt.Errorf("%d rows are stuck on %+v, where nothing refuses", r.Stuck, r.Blocked)
	case r.UnknownCommits > 0:
		err = fmt.Errorf("%d commits are unknown, of a server that never went away", r.UnknownCommits)
	case r.Failed():
		err = fmt.Errorf("stop %s: %w", r.Stop, r.Err)
	default:
		return true
	}
	w.violated(s.family.name, "%s: a drain: %v", s.name(), err)
	return false
}

func (s *worker) add(w *world, r drain.SweepReport) {
	s.drains++
	s.batches += r.Batches
	s.removed += r.Removed
	s.children += r.Children
	s.examined += r.Examined
	s.locked += r.Locked
	s.moved += r.Moved
	s.slowest = max(s.slowest, r.SlowestBatch)
	s.stops[cmp.Or(string(r.Stop), "not begun")]++
	s.family.rows.Add(-int64(r.Removed))
	s.family.kids.Add(-int64(r.Children))
	w.events.Add(int64(r.Removed + r.Children))
}

// lastDrains has one sweeper of each family, another with each number, take what is left, now that it is alone. Only the
// server's own vacuum can still be in its way, for a moment.
func (w *world) lastDrains(ctx context.Context) {
	for _, f := range w.families {
		s := f.sweepers[w.o.Random%uint64(len(f.sweepers))]
		for range 10 {
			r, now, err := s.drain(ctx, func(*drain.Bounds) {})
			s.add(w, r)
			w.sound(s, r, err)
			f.last = lastDrain{s.name(), r, now}
			if r.Stop != drain.StopLocked {
				break
			}
		}
		if f.last.report.Stop != drain.StopDrained {
			w.violated(f.name, "%s: the last drain, with nobody in its way, ended as %s", s.name(), f.last.report.Stop)
		}
	}
}
