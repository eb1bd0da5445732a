package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/report"
)

const (
	redrawEvery = 100 * time.Millisecond
	recordEvery = 30 * time.Second
)

// progress tells how a drain goes on: on a terminal by one line that is redrawn, elsewhere by a record at the start and the
// end of each sweep and every 30 seconds. It is told by the drain itself, so there is nothing to run beside it.
type progress struct {
	out   *output
	since map[string]time.Time // when a sweep had its first batch
	last  time.Time            // of the last line or record
	now   func() time.Time

	before, of int // sweeps that had their turn in earlier waves, and of all
}

func (s *session) progress(sweeps int) *progress {
	p := &progress{out: s.out, since: map[string]time.Time{}, now: time.Now, of: sweeps}
	s.out.startLive()
	return p
}

// done takes the live line away.
func (p *progress) done() { p.out.endLive() }

func (p *progress) start(sweep string) {
	p.since[sweep] = p.now()
	if p.out.isLive() {
		return
	}
	p.last = p.now()
	p.out.progress("start", "sweep", sweep)
}

func (p *progress) batch(b drain.Progress) {
	now := p.now()
	switch {
	case p.out.isLive():
		if now.Sub(p.last) >= redrawEvery {
			p.last = now
			b.Number, b.Of = p.before+b.Number, p.of
			p.out.redraw(liveText(b, now.Sub(p.since[b.Sweep])))
		}
	case now.Sub(p.last) >= recordEvery:
		p.last = now
		p.out.progress("progress", append(record(b.Sweep, b.Total), "limit", b.Limit)...)
	}
}

func (p *progress) end(r drain.SweepReport) {
	if p.out.isLive() {
		return
	}
	p.last = p.now()
	attrs := append(record(r.Name, r.Report), "elapsed", report.Took(r.Elapsed), "stop", string(r.Stop))
	if r.StopBy != "" {
		attrs = append(attrs, "stop_by", r.StopBy)
	}
	p.out.progress("end", attrs...)
}

// record are the facts of a record, under the names of the report.
func record(sweep string, r drain.Report) []any {
	attrs := []any{"sweep", sweep, "removed", r.Removed}
	if r.Children > 0 {
		attrs = append(attrs, "children", r.Children)
	}
	if r.CountsHeld {
		attrs = append(attrs, "held", r.Held)
	}
	attrs = append(attrs, "batches", r.Batches)
	if !r.Cutoff.IsZero() {
		attrs = append(attrs, "cutoff", r.Cutoff.Time().Format(time.RFC3339))
	}
	return attrs
}

// liveText is the line of a batch, with the first reason that slows the sweep, if there is one.
func liveText(b drain.Progress, worked time.Duration) string {
	parts := []string{
		fmt.Sprintf("[%d/%d] %s", b.Number, b.Of, b.Sweep),
		report.Number(b.Total.Removed) + " removed",
	}
	if b.Total.Children > 0 {
		parts = append(parts, report.Number(b.Total.Children)+" children")
	}
	if b.Total.CountsHeld {
		parts = append(parts, report.Number(b.Total.Held)+" held")
	}
	parts = append(parts, fmt.Sprintf("batch %s of %s in %dms", report.Number(b.Total.Batches), report.Number(b.Limit), b.Took.Milliseconds()))
	if s := worked.Seconds(); s >= 1 {
		parts = append(parts, report.Number(int(math.Round(float64(b.Total.Removed)/s)))+" rows/s")
	}
	if b.Left < drain.NoCeiling {
		parts = append(parts, report.Ago(b.Left)+" left")
	}
	switch {
	case b.Batch.Locked > 0:
		parts = append(parts, report.Number(b.Total.Locked)+" locked by others")
	case b.Next < b.Limit:
		parts = append(parts, "slow: the next batch is smaller")
	}
	return strings.Join(parts, "  ")
}
