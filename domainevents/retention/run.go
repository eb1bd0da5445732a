package retention

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// countBound bounds what is read to count parked events and unknown policies.
const countBound = 10_000

// Options are those of a run. The zero Options are of use.
type Options struct {
	Schema string        // of the tables; public when empty
	Window policy.Window // in place of the default window; zero: domainevents.DefaultWindow
	Budget policy.Budget
	Drain  drain.Options
}

// Report is what a run did, arm by arm, and what it saw.
type Report struct {
	Arms []Arm
	// Unknown counts the events by policy words that are not known: they go by the
	// default window. UnknownAtLeast says that there are more.
	Unknown        map[domainevents.Policy]int
	UnknownAtLeast bool
	// Sweeps are the reports of the sweeps in full: why each ended among them.
	Sweeps []drain.SweepReport
}

// Arm is what one arm did.
type Arm struct {
	Sweep, Name string
	Events      int // removed
	Deliveries  int // removed with them
	// Owed counts the events past their window that were kept because something is owed
	// on them. Under SUCCEEDED a dead letter is owed too, where its event is not parked.
	Owed int
	// Parked counts the events that a dead letter keeps out of this arm's reach; only
	// the arm of SUCCEEDED has any.
	Parked domainevents.Count
}

// Run drains the sweeps of [Sweeps]. Where another sweeper is at work on one of them, that one
// is left to it, and its report says busy.
//
// The error joins what the sweeps failed with, see [drain.RunAll]; where the tables are not
// those of the component, or the role lacks rights, it says so, and nothing was touched.
// The Report is exact beside an error.
func Run(ctx context.Context, pool *pgxpool.Pool, o Options) (Report, error) {
	db := postgres.Pool(pool)
	server, err := postgres.Identify(ctx, db)
	if err != nil {
		return Report{}, fmt.Errorf("sweep domain events: %w", err)
	}
	var sweeps []drain.Sweep
	for _, s := range Sweeps(o.Schema, o.Window) {
		arms, err := postgres.Open(ctx, db, s, postgres.Options{OneSweeper: true})
		if err != nil {
			return Report{}, fmt.Errorf("sweep domain events: %w", err)
		}
		sweeps = append(sweeps, drain.SweepOf(s, arms, server.Now))
	}
	var r Report
	r.Sweeps, err = drain.RunAll(ctx, sweeps, o.Budget, o.Drain)
	health, lookErr := events.New(events.Options{Schema: o.Schema}).Health(ctx, pool, countBound)
	r.Unknown, r.UnknownAtLeast = health.Unknown, health.UnknownAtLeast
	for _, s := range r.Sweeps {
		for _, a := range s.Arms {
			arm := Arm{Sweep: s.Name, Name: a.Name, Events: a.Removed, Deliveries: a.Children, Owed: a.Held}
			if s.Name == succeededSweep {
				arm.Parked = health.Parked
			}
			r.Arms = append(r.Arms, arm)
		}
	}
	if lookErr != nil {
		err = errors.Join(err, fmt.Errorf("after the sweep of domain events: %w", lookErr))
	}
	return r, err
}
