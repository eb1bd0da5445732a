package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/study"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

var full = flag.Bool("full", false, "benchmark on populations of the full form")

// places are the servers of this test binary: one that waits for the disk, for times, and one that does not, for costs.
var places struct {
	sync.Mutex
	durable, volatile *place.Place
}

func TestMain(m *testing.M) { os.Exit(tested(m)) }

func tested(m *testing.M) (code int) {
	defer func() {
		for _, p := range []*place.Place{places.durable, places.volatile} {
			if p == nil {
				continue
			}
			if err := p.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				code = max(code, 1)
			}
		}
	}()
	return m.Run()
}

// on is the bench in the short form, or the one that was asked for.
func on(t testing.TB) *study.Bench {
	t.Helper()
	places.Lock()
	defer places.Unlock()
	_, times := t.(*testing.B)
	p := &places.volatile
	if times {
		p = &places.durable
	}
	if *p == nil {
		var err error
		if *p, err = place.Open(context.Background(), place.Options{Volatile: !times}); err != nil {
			t.Fatal(err)
		}
	}
	b := &study.Bench{Place: *p, Size: study.Short(), Tell: t.Logf}
	if *full {
		b.Size = study.Full()
	}
	return b
}

// BenchmarkDrain drains the events with each subject: go test ./bench -run xxx -bench Drain [-full]. Its metrics are for
// benchstat; costs are counted in a drain of their own.
func BenchmarkDrain(b *testing.B) {
	bench := on(b)
	drains(b, bench, bench.Size.Events.Population(), bench.Subjects())
}

// BenchmarkDomainDrain drains due domain events with their deliveries: rows are those of both.
func BenchmarkDomainDrain(b *testing.B) {
	bench := on(b)
	drains(b, bench, bench.DomainDue(), bench.DomainSubjects())
}

func plainName(name string) string {
	return strings.NewReplacer(", ", "-", " ", "-").Replace(name)
}

func drains(b *testing.B, bench *study.Bench, pop place.Population, subjects []workload.Subject) {
	for _, s := range subjects {
		limit := "all"
		if s.Limit > 0 {
			limit = fmt.Sprint(s.Limit)
		}
		b.Run(fmt.Sprintf("subject=%s/limit=%s", plainName(s.Name), limit), func(b *testing.B) {
			ctx := b.Context()
			costs, err := bench.Counted(ctx, pop, s)
			if err != nil {
				b.Fatal(err)
			}
			rows, seconds := 0, 0.0
			for b.Loop() {
				b.StopTimer()
				clone, err := bench.Place.Clone(ctx, pop)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				d, err := measure.Run(ctx, bench.Place, pop, s, measure.Choice{Clone: clone})
				b.StopTimer()
				if e := clone.Drop(ctx); err == nil {
					err = e
				}
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				rows, seconds = rows+d.Removed, seconds+d.Elapsed.Seconds()
			}
			b.ReportMetric(float64(rows)/seconds, "rows/s")
			b.ReportMetric(costs.BuffersPerRow(), "buffers/row")
			b.ReportMetric(costs.WALPerRow(), "wal-B/row")
		})
	}
}

// BenchmarkDomainIdle asks ours and the other subjects on domain events of which none is due.
func BenchmarkDomainIdle(b *testing.B) {
	bench := on(b)
	pop := bench.Size.Domain.Events.Parked()
	for _, s := range append([]workload.Subject{bench.OursDomain()}, bench.DomainShapes()...) {
		b.Run("subject="+plainName(s.Name), func(b *testing.B) {
			ctx := b.Context()
			clone, err := bench.Place.Clone(ctx, pop, workload.WholeOwn)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := clone.Drop(context.WithoutCancel(ctx)); err != nil {
					b.Error(err)
				}
			}()
			conn, err := clone.Connect(ctx)
			if err != nil {
				b.Fatal(err)
			}
			drain, err := s.Open(ctx, conn)
			if err != nil {
				b.Fatal(err)
			}
			nothing := func(got workload.Batch) error {
				if got.Removed > 0 {
					return fmt.Errorf("%d rows were due", got.Removed)
				}
				return nil
			}
			if err := drain(ctx, nothing); err != nil { // what a session looks up once
				b.Fatal(err)
			}
			before, err := clone.Cost(ctx)
			if err != nil {
				b.Fatal(err)
			}
			sweeps := 0
			for b.Loop() {
				if err := drain(ctx, nothing); err != nil {
					b.Fatal(err)
				}
				sweeps++
			}
			after, err := clone.Cost(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(after.Minus(before).Buffers)/float64(sweeps), "buffers/sweep")
		})
	}
}

// BenchmarkDomainRecord is what retention adds to work on domain events.
func BenchmarkDomainRecord(b *testing.B) {
	bench := on(b)
	for _, k := range workload.Kinds() {
		b.Run("kind="+plainName(k.Name), func(b *testing.B) {
			ctx := b.Context()
			if err := bench.Place.Images(ctx, false); err != nil {
				b.Fatal(err)
			}
			costs, err := bench.Recorded(ctx, k, true)
			if err != nil {
				b.Fatal(err)
			}
			if err := bench.Place.Images(ctx, true); err != nil {
				b.Fatal(err)
			}
			var times []float64
			for b.Loop() {
				r, err := bench.Recorded(ctx, k, false)
				if err != nil {
					b.Fatal(err)
				}
				times = append(times, r.Time)
			}
			b.ReportMetric(measure.Median(times), "of-plain")
			b.ReportMetric(costs.WholeWAL(), "wal-B/op")
			b.ReportMetric(costs.PlainWAL(), "plain-wal-B/op")
		})
	}
}

// TestShort holds the bounds on costs, in buffers and bytes of WAL alone. Times are never asserted.
func TestShort(t *testing.T) {
	bounds, err := on(t).CostBounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(bounds) < 16 {
		t.Errorf("only %d bounds were looked at", len(bounds))
	}
	for _, b := range bounds {
		if !b.Cost || !b.Met {
			t.Errorf("%s: %s; want %s", b.Work, b.Got, b.Want)
		} else {
			t.Logf("%s: %s; %s", b.Work, b.Got, b.Want)
		}
	}
}

// TestBoundsBite proves TestShort: each bound fails on a subject, or an index, that is wrong in the way that it guards
// against.
func TestBoundsBite(t *testing.T) {
	b := on(t)
	ctx := t.Context()
	if err := b.Place.Images(ctx, false); err != nil {
		t.Fatal(err)
	}
	broken := func(name string, bound study.Bound, err error) {
		t.Helper()
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case bound.Met:
			t.Errorf("%s: %s: %s was let pass; want %s", name, bound.Work, bound.Got, bound.Want)
		default:
			t.Logf("%s: %s: %s; want %s", name, bound.Work, bound.Got, bound.Want)
		}
	}
	limit := b.Size.Limit

	d, err := b.OldSnapshot(ctx, workload.OursWithoutCursor("ours, no cursor", workload.EventsSweep(false), workload.Now, b.Size.OldLimit))
	broken("each batch from the oldest row on", study.FlatBound(d, b.Size.OldLimit), err)

	h, err := b.HeldHead(ctx, workload.CtidIn(limit))
	broken("the head read in each batch", study.HeldBound(h), err)

	o, err := b.OwnerLock(ctx, b.Size.Single)
	broken("an owner for each row", study.OwnerBound(o), err)
	o.Locked = o.Free
	broken("no owner locked", study.OwnerBound(o), nil)

	i, err := b.IdleBefore(ctx, b.Size.Events, func(now time.Time) workload.Subject { return workload.CtidInAt(limit, now) }, "DROP INDEX run_events_retention")
	broken("no index on the age", study.IdleBound(i), err)

	d, err = b.Drained(ctx, b.Size.Events.Population(), workload.KeysFetched(limit))
	broken("keys fetched first", study.RowBound(d), err)

	mine, err := b.FirstBatch(ctx, b.Size.Jobs, workload.JobsIDInByState(b.Size.JobsLimit))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.FirstBatch(ctx, b.Size.Jobs, workload.JobsIDIn(b.Size.JobsLimit))
	broken("a statement for each state, in the order of ids", study.FirstBound(mine, theirs), err)

	domain := b.Size.Domain
	base := domain.Events
	ours, err := b.ShapeIdle(ctx, base, b.OursDomain())
	if err != nil {
		t.Fatal(err)
	}
	filtered, err := b.ShapeIdle(ctx, base, workload.OwnFiltered(domain.Limit), workload.WholeOwn)
	broken("own windows filtered from all rows", study.DomainIdleBound(filtered), err)
	broken("own windows filtered from all rows", study.DomainFlatBound(ours, filtered), nil)
	unmarked, err := b.ShapeIdle(ctx, base, b.OursDomain(), "UPDATE domain_events SET parked = false")
	broken("dead letters that park nothing", study.DomainIdleBound(unmarked), err)

	for n, k := range workload.Kinds()[:3] {
		indexes := []string{"CREATE INDEX ON domain_events (recorded_at, type)"}
		for range 4 * n {
			indexes = append(indexes, indexes[0])
		}
		r, err := b.Recorded(ctx, k, true, indexes...)
		broken("indexes more than are needed", study.RecordBound(r, []int{5, 25, 25}[n]), err)
	}

	c, err := b.FanoutChunks(ctx, workload.ChunksFromStart(domain.Chunk))
	broken("each chunk from the first delivery on", study.FanoutBound(c, domain.Fanout), err)
}
