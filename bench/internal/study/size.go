package study

import (
	"context"
	"time"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// Size is how large the populations are, and how often times are taken.
type Size struct {
	Form   string          `json:"form"`
	Events workload.Events `json:"events"`
	Head   int             `json:"head"`     // events of live runs that lie before all others
	Single workload.Events `json:"single"`   // one event a run
	Jobs   workload.Jobs   `json:"jobs"`     //
	Log    int             `json:"log_rows"` // that the command drains while its memory is watched
	Domain DomainSize      `json:"domain"`
	Limit  int             `json:"limit"` // of a batch of events
	// OldLimit is that beside an older snapshot: a batch must be large enough for the rows that are held from the beginning
	// on not to fill it.
	OldLimit int `json:"old_snapshot_limit"`
	// JobsLimit is that of the first batches of jobs: what a drain begins with.
	JobsLimit int           `json:"jobs_limit"`
	Rounds    int           `json:"rounds"`      // of times
	Load      time.Duration `json:"load_ns"`     // how long pgbench runs, at most
	Loads     int           `json:"load_rounds"` // how often it is looked at beside a drain
}

// note makes an event's row some 170 bytes long.
const note = 60

// Full is the form whose figures are published.
func Full() Size {
	return Size{
		Form:   "full",
		Events: workload.Events{Runs: 20_000, PerRun: 100, Note: note}, Head: 500_000,
		Single: workload.Events{Runs: 200_000, PerRun: 1, Note: note},
		Jobs:   workload.Jobs{Waiting: 1_000_000, Due: 300_000}, Log: 10_000_000,
		Domain: DomainSize{
			Events: workload.Domain{Own: 50_000, Held: 5_000, History: 60_000}, Held: []int{50_000, 500_000},
			Due: 100_000, Limit: 5000, Backlog: 1000, Fanout: 20_000, Chunk: 500, Pairs: 40, Each: 500,
		},
		Limit: 5000, OldLimit: 5000, JobsLimit: 1000, Rounds: 5, Load: 10 * time.Second, Loads: 3,
	}
}

// Short is a twentieth of it, and a tenth of the domain events. A batch of events is a tenth, so that there are batches enough to compare.
func Short() Size {
	return Size{
		Form:   "short",
		Events: workload.Events{Runs: 1_000, PerRun: 100, Note: note}, Head: 25_000,
		Single: workload.Events{Runs: 10_000, PerRun: 1, Note: note},
		Jobs:   workload.Jobs{Waiting: 50_000, Due: 15_000}, Log: 500_000,
		Domain: DomainSize{
			Events: workload.Domain{Own: 5_000, Held: 500, History: 6_000},
			Due:    10_000, Limit: 5000, Backlog: 1000, Fanout: 20_000, Chunk: 500, Pairs: 10, Each: 500,
		},
		Limit: 500, OldLimit: 2000, JobsLimit: 50, Rounds: 1, Load: 3 * time.Second, Loads: 1,
	}
}

// ownerLimit is the limit of batches whose owner lock is measured: one that holds all events of a run, as it does at the
// limit that is the default.
const ownerLimit = 5000

// a and b are the populations of events, b with held rows at its head.
func (s Size) a() place.Population { return s.Events.Population() }

func (s Size) b() place.Population {
	e := s.Events
	e.Head = s.Head
	return e.Population()
}

// Bench is a size on a place.
type Bench struct {
	Place *place.Place
	Size  Size
	Tell  func(format string, a ...any)
}

// on lends a clone of a population.
func (b *Bench) on(ctx context.Context, pop place.Population, f func(*place.Clone) error, prepare ...string) (err error) {
	clone, err := b.Place.Clone(ctx, pop, prepare...)
	if err != nil {
		return err
	}
	defer func() {
		if e := clone.Drop(context.WithoutCancel(ctx)); err == nil {
			err = e
		}
	}()
	return f(clone)
}
