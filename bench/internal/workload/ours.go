package workload

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// Ours is a sweep of the library in batches of a fixed limit, its arms one after the other.
func Ours(name string, s policy.Sweep, now time.Time, limit int) Subject {
	return Sweeps(name, []policy.Sweep{s}, limit, now)
}

// Sweeps is several of them, one after the other, at each of the times.
func Sweeps(name string, ss []policy.Sweep, limit int, times ...time.Time) Subject {
	return Subject{Name: name, About: "the library, batches of a fixed limit", Limit: limit, Ours: true, Open: func(ctx context.Context, conn *pgx.Conn) (Drain, error) {
		var arms []*postgres.Arm
		for _, s := range ss {
			more, err := open(ctx, conn, s)
			if err != nil {
				return nil, err
			}
			arms = append(arms, more...)
		}
		return func(ctx context.Context, each func(Batch) error) error {
			for _, now := range times {
				if err := fixed(ctx, arms, now, limit, true, each); err != nil {
					return enough(err)
				}
			}
			return nil
		}, nil
	}}
}

// OursWithoutCursor is a sweep of the library misused: each batch begins at the oldest row, over what the batches before it
// left behind. It shows what the cursor is for; it ends with the first batch that removes nothing.
func OursWithoutCursor(name string, s policy.Sweep, now time.Time, limit int) Subject {
	return Subject{Name: name, About: "the library, without its cursor", Limit: limit, Open: func(ctx context.Context, conn *pgx.Conn) (Drain, error) {
		arms, err := open(ctx, conn, s)
		return func(ctx context.Context, each func(Batch) error) error {
			return enough(fixed(ctx, arms, now, limit, false, each))
		}, err
	}}
}

func fixed(ctx context.Context, arms []*postgres.Arm, now time.Time, limit int, cursor bool, each func(Batch) error) error {
	for _, arm := range arms {
		batch := pruner.Batch{Cutoff: arm.Spec().Window.Cutoff(now), Limit: limit}
		for last := false; !last; {
			start := time.Now()
			res, err := arm.Prune(ctx, batch)
			took := time.Since(start)
			if err != nil {
				return err
			}
			if err := each(Batch{Arm: arm.Spec().Name, Examined: res.Examined, Removed: res.Removed + res.Children, Took: took, Limit: limit}); err != nil {
				return err
			}
			last = res.End
			if cursor {
				batch.After = res.Next
			} else if res.Removed == 0 {
				last = true
			}
		}
	}
	return nil
}

// open opens the arms as the command does, with one sweeper at a time.
func open(ctx context.Context, conn *pgx.Conn, s policy.Sweep) ([]*postgres.Arm, error) {
	return postgres.Open(ctx, postgres.Conn(conn), s, postgres.Options{OneSweeper: true})
}

// Drained is a sweep of the library through package drain, which adapts the batches to a time. Limit and target of the
// sweep bound them.
func Drained(name string, s policy.Sweep, now time.Time) Subject {
	about := "the library through package drain, batches adapted to a time"
	return Subject{Name: name, About: about, Limit: s.WithDefaults().Batch.Limit, Ours: true, Open: func(ctx context.Context, conn *pgx.Conn) (Drain, error) {
		arms, err := open(ctx, conn, s)
		return func(ctx context.Context, each func(Batch) error) error { return adapted(ctx, s, arms, now, each) }, err
	}}
}

func adapted(ctx context.Context, s policy.Sweep, arms []*postgres.Arm, now time.Time, each func(Batch) error) error {
	var ended error
	stop := make(chan struct{})
	d := drain.SweepOf(s, arms, now)
	d.Bounds.Stop, d.Bounds.NoSurvey = stop, true
	d.Bounds.OnBatch = func(p drain.Progress) {
		if ended != nil {
			return
		}
		if ended = each(Batch{Examined: p.Batch.Examined, Removed: p.Batch.Removed + p.Batch.Children, Took: p.Took, Limit: p.Limit}); ended != nil {
			close(stop)
		}
	}
	_, err := drain.RunSweep(ctx, d)
	if ended != nil {
		return enough(ended)
	}
	return err
}
