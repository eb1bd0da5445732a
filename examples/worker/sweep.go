package main

import (
	"context"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents/retention"
	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// newLoop opens the sweeps of the domain events. It refuses, before any work is done, what the database contradicts.
func newLoop(ctx context.Context, pool *pgxpool.Pool, s settings, stop <-chan struct{}) (*drain.Loop, error) {
	window, err := policy.NewWindow(s.window)
	if err != nil {
		return nil, err
	}
	db := postgres.Pool(pool)
	sweeps := retention.Sweeps("public", window)
	arms := make([][]*postgres.Arm, len(sweeps))
	for i, sweep := range sweeps {
		// Of several workers one sweeps, and the others find it busy.
		if arms[i], err = postgres.Open(ctx, db, sweep, postgres.Options{OneSweeper: true}); err != nil {
			return nil, err
		}
	}
	config := drain.LoopDefaults(func(ctx context.Context) ([]drain.Sweep, error) {
		server, err := postgres.Identify(ctx, db) // what is due is a matter of the server's clock
		if err != nil {
			return nil, err
		}
		var pass []drain.Sweep
		for i, sweep := range sweeps {
			pass = append(pass, drain.SweepOf(sweep, arms[i], server.Now))
		}
		return pass, nil
	})
	config.Interval, config.Off, config.Stop = s.interval, !s.sweep, stop
	return drain.NewLoop(config)
}

// sweepIfDue lets the loop do a pass, if it is time for one.
func (w *worker) sweepIfDue(ctx context.Context) {
	reports, _, err := w.loop.Idle(ctx)
	for _, r := range reports {
		if r.Removed+r.Children > 0 || !r.Drained() {
			log.Printf("sweep %s: %d events and %d deliveries removed in %s, %s", r.Name, r.Removed, r.Children, r.Elapsed.Round(time.Millisecond), r.Stop)
		}
	}
	if err != nil {
		log.Print(err)
	}
}
