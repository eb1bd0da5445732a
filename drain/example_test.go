package drain_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// A worker opens its sweeps once, and calls Idle when it has found no work.
func ExampleLoop() {
	var (
		ctx    = context.Background()
		pool   *pgxpool.Pool // of the worker
		sweep  policy.Sweep  // what goes, and when
		stop   chan struct{} // closed when the worker is to end
		worked func() bool   // does some work, and says whether there was any
	)
	db := postgres.Pool(pool)
	arms, err := postgres.Open(ctx, db, sweep, postgres.Options{OneSweeper: true})
	if err != nil {
		log.Fatal(err)
	}
	config := drain.LoopDefaults(func(ctx context.Context) ([]drain.Sweep, error) {
		server, err := postgres.Identify(ctx, db)
		if err != nil {
			return nil, err
		}
		return []drain.Sweep{drain.SweepOf(sweep, arms, server.Now)}, nil
	})
	config.Stop = stop
	loop, err := drain.NewLoop(config)
	if err != nil {
		log.Fatal(err)
	}
	for {
		select {
		case <-stop:
			return
		default: // and wait a little where there was no work
		}
		if worked() {
			continue
		}
		reports, _, err := loop.Idle(ctx)
		for _, r := range reports {
			log.Printf("%s: %d removed, %s", r.Name, r.Removed, r.Stop)
		}
		if err != nil {
			log.Print(err) // the next pass is an interval away
		}
	}
}
