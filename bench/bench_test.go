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
	for _, s := range bench.Subjects() {
		limit := "all"
		if s.Limit > 0 {
			limit = fmt.Sprint(s.Limit)
		}
		b.Run(fmt.Sprintf("subject=%s/limit=%s", strings.NewReplacer(", ", "-", " ", "-").Replace(s.Name), limit), func(b *testing.B) {
			ctx := b.Context()
			pop := bench.Size.Events.Population()
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

// TestShort holds the bounds on costs, in buffers and bytes of WAL alone. Times are never asserted.
func TestShort(t *testing.T) {
	bounds, err := on(t).CostBounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(bounds) < 7 {
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
}
