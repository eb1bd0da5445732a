package study

import (
	"context"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
	"github.com/prunectl/prunectl/policy"
)

// Row is what a subject cost and took on one population.
type Row struct {
	Subject string `json:"subject"`
	About   string `json:"about"`
	Limit   int    `json:"limit"` // 0: all at once
	Ours    bool   `json:"ours"`

	Removed         int     `json:"removed"`
	Batches         int     `json:"batches"`
	Trips           int     `json:"round_trips"`
	BuffersPerRow   float64 `json:"buffers_per_row"`
	WALPerRow       float64 `json:"wal_per_row"`
	BuffersPerBatch float64 `json:"buffers_per_batch"`
	WALPerBatch     float64 `json:"wal_per_batch"`

	// Of the rounds: the median, and each round's rows a second against the first subject's in the same round.
	RowsPerSecond float64   `json:"rows_per_second"`
	OfFirst       float64   `json:"of_first"`
	Ratios        []float64 `json:"ratios"`
	P50           float64   `json:"batch_ms_p50"`
	P99           float64   `json:"batch_ms_p99"`
	Max           float64   `json:"batch_ms_max"`
}

// Compare drains the population with each subject: once with its costs counted, and in every round with its time taken. The
// first subject is what the others are compared with.
func (b *Bench) Compare(ctx context.Context, pop place.Population, subjects []workload.Subject, rounds int) ([]Row, error) {
	rows := make([]Row, len(subjects))
	if err := b.Place.Images(ctx, false); err != nil {
		return nil, err
	}
	for i, s := range subjects {
		d, err := b.Drained(ctx, pop, s)
		if err != nil {
			return nil, err
		}
		n := float64(len(d.Batches))
		rows[i] = Row{
			Subject: s.Name, About: s.About, Limit: s.Limit, Ours: s.Ours, Removed: d.Removed, Batches: len(d.Batches), Trips: d.Trips,
			BuffersPerRow: d.BuffersPerRow(), WALPerRow: d.WALPerRow(), BuffersPerBatch: float64(d.Buffers) / n, WALPerBatch: float64(d.WAL) / n,
		}
		if d.Removed != rows[0].Removed {
			return nil, fmt.Errorf("%s removed %d rows, %s %d", s.Name, d.Removed, subjects[0].Name, rows[0].Removed)
		}
		b.Tell("costs of %s: %.2f buffers and %.0f bytes of WAL a row", s.Name, rows[i].BuffersPerRow, rows[i].WALPerRow)
	}
	if err := b.Place.Images(ctx, true); err != nil {
		return nil, err
	}
	speeds, millis := make([][]float64, len(subjects)), make([][]float64, len(subjects))
	for round := range rounds {
		for i, s := range subjects {
			d, err := measure.Run(ctx, b.Place, pop, s, measure.Choice{})
			if err != nil {
				return nil, err
			}
			speeds[i] = append(speeds[i], d.RowsPerSecond())
			millis[i] = append(millis[i], d.Millis()...)
			rows[i].Ratios = append(rows[i].Ratios, d.RowsPerSecond()/speeds[0][round])
		}
		b.Tell("times of round %d of %d taken", round+1, rounds)
	}
	for i := range rows {
		ms := measure.Sorted(millis[i])
		rows[i].RowsPerSecond, rows[i].OfFirst = measure.Median(speeds[i]), measure.Median(rows[i].Ratios)
		rows[i].P50, rows[i].P99, rows[i].Max = measure.Quantile(ms, 0.5), measure.Quantile(ms, 0.99), measure.Quantile(ms, 1)
	}
	return rows, nil
}

// OwnerTimes adds to the costs of the owner lock what it takes.
func (b *Bench) OwnerTimes(ctx context.Context, e workload.Events, o *Owner) error {
	var ratios []float64
	for range min(3, b.Size.Rounds) {
		locked, err := measure.Run(ctx, b.Place, e.Population(), OursAt(ownerLimit), measure.Choice{})
		if err != nil {
			return err
		}
		free, err := measure.Run(ctx, b.Place, e.Population(), Final(ownerLimit), measure.Choice{})
		if err != nil {
			return err
		}
		ratios = append(ratios, locked.Elapsed.Seconds()/free.Elapsed.Seconds())
	}
	o.Time = measure.Median(ratios)
	return nil
}

// Foreground is what a load of pgbench noticed of what ran beside it.
type Foreground struct {
	Beside string  `json:"beside"`
	Rate   float64 `json:"rate"` // that pgbench was told to keep
	TPS    float64 `json:"tps"`  // that it kept
	P50    float64 `json:"ms_p50"`
	P99    float64 `json:"ms_p99"`
	Max    float64 `json:"ms_max"`
	Over   float64 `json:"seconds"` // looked at
	Rows   int     `json:"removed"`
}

// gentlePause is the pause of the sweep that gives way.
const gentlePause = 20 * time.Millisecond

// Foreground runs pgbench at half of its own maximum: alone, beside our drain at its defaults and with a pause, and beside
// one unbounded DELETE.
func (b *Bench) Foreground(ctx context.Context) ([]Foreground, error) {
	pop := measure.WithLoad(b.Size.a())
	var rate float64
	err := b.on(ctx, pop, func(c *place.Clone) (err error) {
		rate, err = measure.LoadMaximum(ctx, c, b.Size.Load)
		rate /= 2
		return err
	})
	if err != nil {
		return nil, err
	}
	b.Tell("pgbench reaches %.0f transactions a second; it is held at half of it", 2*rate)
	gentle := workload.EventsSweep(false)
	gentle.Batch = policy.Batch{Limit: 1000}
	gentle.Pause = gentlePause
	var rows []Foreground
	for _, s := range []struct {
		name    string
		subject *workload.Subject
	}{
		{"nothing", nil},
		{"ours, adapted", new(Adapted())},
		{fmt.Sprintf("ours, 1000 a batch, pause %s", gentlePause), new(workload.Drained("ours", gentle, workload.Now))},
		{"one DELETE", new(workload.Unbounded())},
	} {
		f := Foreground{Beside: s.name, Rate: rate}
		var sum measure.Load
		for range b.Size.Loads {
			err := b.on(ctx, pop, func(c *place.Clone) error {
				l, err := measure.Beside(ctx, c, rate, b.Size.Load, func(ctx context.Context) error {
					if s.subject == nil {
						<-ctx.Done()
						return ctx.Err()
					}
					d, err := measure.Run(ctx, b.Place, pop, *s.subject, measure.Choice{Clone: c})
					f.Rows += d.Removed
					return err
				})
				sum.Add(l)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("pgbench beside %s: %w", s.name, err)
			}
		}
		f.TPS, f.Over = float64(sum.Done)/sum.Over.Seconds(), sum.Over.Seconds()
		f.P50, f.P99, f.Max = measure.Quantile(sum.Latency, 0.5), measure.Quantile(sum.Latency, 0.99), measure.Quantile(sum.Latency, 1)
		rows = append(rows, f)
		b.Tell("pgbench beside %s: %.0f tps, p99 %.1f ms", f.Beside, f.TPS, f.P99)
	}
	return rows, nil
}
