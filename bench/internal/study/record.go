package study

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// Record is what retention adds to something that is done to domain events in the course of work.
type Record struct {
	Kind  string     `json:"kind"`
	Of    string     `json:"of"` // what one of it is
	Rows  int        `json:"rows"`
	Plain place.Cost `json:"plain"`      // of all of them, on tables without what retention needs
	Whole place.Cost `json:"whole"`      // on the component's
	Time  float64    `json:"time_ratio"` // whole to plain, the median of the pairs; 0: not taken
	// Micros is what one took on the component's tables, a part of a statement.
	Micros float64 `json:"us"`
}

// schemas are those of the population of recordings, plain first.
var schemas = [2]string{"plain", "public"}

// Recorded does it in pairs of statements, one on the plain tables and one on the component's, each first in turn.
func (b *Bench) Recorded(ctx context.Context, k workload.Kind, costs bool, prepare ...string) (r Record, err error) {
	pairs, each := b.Size.Domain.Pairs, b.Size.Domain.Each
	r = Record{Kind: k.Name, Of: k.Rows, Rows: pairs * each}
	for _, s := range schemas {
		prepare = append(prepare, k.Ready(s, r.Rows)...)
	}
	err = b.on(ctx, workload.Recording(), func(c *place.Clone) error {
		conn, err := c.Connect(ctx)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
			return err
		}
		var ratios, micros []float64
		for p := range pairs {
			var took [2]time.Duration
			order := []int{0, 1}
			if p%2 == 1 {
				slices.Reverse(order)
			}
			for _, s := range order {
				var before, after place.Cost
				if costs {
					if before, err = c.Cost(ctx); err != nil {
						return err
					}
				}
				start := time.Now()
				tag, err := conn.Exec(ctx, k.SQL(schemas[s], 1+p*each, each))
				took[s] = time.Since(start)
				if err != nil {
					return fmt.Errorf("%s in %s: %w", k.Name, schemas[s], err)
				}
				if n := tag.RowsAffected(); n < int64(each) {
					return fmt.Errorf("%s in %s: %d of %d rows", k.Name, schemas[s], n, each)
				}
				if !costs {
					continue
				}
				if after, err = c.Cost(ctx); err != nil {
					return err
				}
				sum := &r.Plain
				if s == 1 {
					sum = &r.Whole
				}
				*sum = sum.Plus(after.Minus(before))
			}
			ratios, micros = append(ratios, took[1].Seconds()/took[0].Seconds()), append(micros, float64(took[1].Microseconds())/float64(each))
		}
		if !costs {
			r.Time, r.Micros = measure.Median(ratios), measure.Median(micros)
		}
		return nil
	}, prepare...)
	return r, err
}

// Records counts all kinds without full page images, and then takes their times with them.
func (b *Bench) Records(ctx context.Context) (all []Record, err error) {
	for _, k := range workload.Kinds() {
		r, err := b.Recorded(ctx, k, true)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if err := b.Place.Images(ctx, true); err != nil {
		return nil, err
	}
	for n, k := range workload.Kinds() {
		r, err := b.Recorded(ctx, k, false)
		if err != nil {
			return nil, err
		}
		all[n].Time, all[n].Micros = r.Time, r.Micros
		b.Tell("%s: %.0f bytes of WAL, %s for retention", k.Name, perRow(all[n].Whole.WAL, all[n].Rows), more(all[n].ratio()))
	}
	return all, nil
}

func (r Record) ratio() float64 { return float64(r.Whole.WAL) / float64(r.Plain.WAL) }

func perRow(n int64, rows int) float64 { return float64(n) / float64(max(1, rows)) }

// PlainWAL and WholeWAL are the bytes of one, on the plain tables and on the component's.
func (r Record) PlainWAL() float64 { return perRow(r.Plain.WAL, r.Rows) }

// WholeWAL is the same on the component's tables.
func (r Record) WholeWAL() float64 { return perRow(r.Whole.WAL, r.Rows) }
