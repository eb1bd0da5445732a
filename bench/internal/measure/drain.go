package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// Batch is one batch of a subject; its cost only where costs were counted.
type Batch struct {
	Arm      string `json:"arm,omitempty"`      // of ours
	Examined int    `json:"examined,omitempty"` // where the subject says it
	Removed  int    `json:"removed"`            // rows of all tables
	Micros   int64  `json:"us"`
	place.Cost
}

// Drain is one drain of a subject.
type Drain struct {
	Removed int           `json:"removed"`
	Batches []Batch       `json:"batches"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Trips   int           `json:"round_trips"`
	place.Cost
}

// Choice says how a drain is run.
type Choice struct {
	Costs   bool          // count what each batch costs
	Batches int           // end after so many; 0: when nothing due is left
	Pause   time.Duration // between batches
	Prepare []string      // statements on the clone before it is warmed
	Clone   *place.Clone  // drain this one, and keep it; nil: a fresh one
}

// Run drains a fresh clone of the population.
func Run(ctx context.Context, p *place.Place, pop place.Population, s workload.Subject, c Choice) (d Drain, err error) {
	clone := c.Clone
	if clone == nil {
		if clone, err = p.Clone(ctx, pop, c.Prepare...); err != nil {
			return d, err
		}
		defer func() {
			if e := clone.Drop(context.WithoutCancel(ctx)); err == nil {
				err = e
			}
		}()
	}
	var t trips
	conn, err := clone.Connect(ctx, func(config *pgx.ConnConfig) { t.count(&config.Config) })
	if err != nil {
		return d, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	drain, err := s.Open(ctx, conn)
	if err != nil {
		return d, fmt.Errorf("%s: %w", s.Name, err)
	}
	var before place.Cost
	if c.Costs {
		if before, err = clone.Cost(ctx); err != nil {
			return d, err
		}
	}
	t.n = 0
	last := before
	start := time.Now()
	err = drain(ctx, func(b workload.Batch) error {
		got := Batch{Arm: b.Arm, Examined: b.Examined, Removed: b.Removed, Micros: b.Took.Microseconds()}
		if c.Costs {
			now, err := clone.Cost(ctx)
			if err != nil {
				return err
			}
			got.Cost, last = now.Minus(last), now
		}
		d.Removed += b.Removed
		d.Batches = append(d.Batches, got)
		if len(d.Batches) == c.Batches {
			return workload.ErrEnough
		}
		time.Sleep(c.Pause)
		return nil
	})
	d.Elapsed, d.Trips, d.Cost = time.Since(start), t.n, last.Minus(before)
	if err != nil {
		return d, fmt.Errorf("%s: %w", s.Name, err)
	}
	return d, nil
}

// RowsPerSecond is how fast the drain was.
func (d Drain) RowsPerSecond() float64 { return float64(d.Removed) / d.Elapsed.Seconds() }

// BuffersPerRow and WALPerRow are what a removed row cost.
func (d Drain) BuffersPerRow() float64 { return float64(d.Buffers) / float64(max(1, d.Removed)) }

// WALPerRow is the bytes of WAL for a removed row.
func (d Drain) WALPerRow() float64 { return float64(d.WAL) / float64(max(1, d.Removed)) }

// Millis are the times of the batches, sorted.
func (d Drain) Millis() []float64 {
	var ms []float64
	for _, b := range d.Batches {
		ms = append(ms, float64(b.Micros)/1000)
	}
	return Sorted(ms)
}

// Sorted is a sorted copy.
func Sorted(values []float64) []float64 {
	v := slices.Clone(values)
	slices.Sort(v)
	return v
}

// Full are the batches that were as large as they may be, but for the last rows of an age.
func (d Drain) Full(limit int) (full []Batch) {
	for _, b := range d.Batches {
		if max(b.Examined, b.Removed) > limit*9/10 {
			full = append(full, b)
		}
	}
	return full
}

// Quantile is the value below which a part q of the sorted values lies; 0 of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Median is that of values in any order.
func Median(values []float64) float64 {
	v := Sorted(values)
	if n := len(v); n > 0 && n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return Quantile(v, 0.5)
}
