package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/pruner/tenant"
	"github.com/prunectl/prunectl/purge"
)

// tablesOf are the entries of the tables, in the order in which their rows go.
func tablesOf(r tenant.Remover) []report.PurgeTable {
	var all []report.PurgeTable
	for _, s := range r.Steps() {
		spec := s.Spec()
		var of []string
		for _, parent := range spec.Of {
			of = append(of, parent.String())
		}
		all = append(all, report.NewPurgeTable(spec.Table.String(), spec.Column, of))
	}
	return all
}

// found takes over what is there before anything goes.
func (p *purging) found(look tenant.Proof) {
	for i, l := range look.Left {
		p.entry.Tables[i].Found, p.entry.Tables[i].FoundIsFloor = &l.Rows, l.More
	}
	p.looked(&look)
}

// looked takes over when a look was, and who had an open transaction then.
func (p *purging) looked(look *tenant.Proof) {
	p.entry.LookedAt, p.entry.Writers = nil, []report.PurgeWriter{}
	if look == nil {
		return
	}
	p.entry.LookedAt = utc(&look.At)
	for _, w := range look.Writers {
		p.entry.Writers = append(p.entry.Writers, report.PurgeWriter{PID: w.PID, App: w.App, Table: w.Table.String()})
	}
}

// remove purges, and fills the entry.
func (p *purging) remove(ctx context.Context, remover tenant.Remover) {
	began := p.clock()
	p.entry.Started = &began
	shown := p.progress()
	r, err := purge.Run(p.interrupt.hard, remover, purge.Bounds{
		Limit: p.policy.Batch.Limit, BatchTarget: p.policy.Batch.Target, Duration: p.flags.maxTime.v, Pause: p.policy.Pause,
		LockTimeout: p.policy.Timeouts.Lock, CountTo: p.countTo(), Stop: p.interrupt.soft.Done(), OnBatch: shown.batch,
	})
	shown.end(r)
	p.fill(r, err)
	ended := p.clock()
	if at := p.entry.LookedAt; at != nil && at.After(ended) { // our clock lags by what the answer took that it goes on from
		ended = *at
	}
	p.entry.Ended = &ended
	if r.Removed() > 0 {
		p.report.Vacuum = p.vacuum(ctx)
	}
	// A proof with writers beside it is one that somebody has to look at.
	p.warned = p.warned || p.report.Vacuum != nil || len(p.entry.Writers) > 0
}

// fill takes over what a purge reports.
func (p *purging) fill(r purge.Report, err error) {
	e := p.entry
	e.Stop, e.Passes, e.Proved = report.Stop(r.Stop), r.Passes, r.Proved()
	p.looked(r.Proof)
	if e.Proved {
		e.ProvedAt = e.LookedAt
	}
	if r.Stop != purge.StopSignal { // that it was cancelled is no news beside the signal
		e.Error = errorOf(err)
	}
	if e.Stop == "" {
		e.Stop = report.Failed
	}
	for i, s := range r.Steps {
		t := &e.Tables[i]
		t.Removed, t.Late, t.Locked, t.Stuck = s.Removed, s.Late, s.Locked, s.Stuck
		t.Batches, t.SlowestBatch, t.UnknownCommits = s.Batches, s.SlowestBatch.Seconds(), s.UnknownCommits
		if r.Proof != nil {
			t.Left, t.LeftIsFloor = &s.Left.Rows, s.Left.More
		}
		for _, b := range s.Blocked {
			t.StuckOn = append(t.StuckOn, report.Block{Constraint: b.Constraint, Table: b.Table, Rows: b.Rows})
		}
		if r.Stop != purge.StopSignal {
			t.Error = errorOf(s.Err)
		}
	}
}

// code is the exit code of a purge: only what is proved is done.
func (p *purging) code() int {
	switch p.entry.Stop {
	case report.Purged:
		return exitDone
	case report.Busy:
		return exitBusy
	}
	return exitFailed
}

// purgeProgress tells how a purge goes on, as progress does of a drain.
type purgeProgress struct {
	out    *output
	name   string
	tables []report.PurgeTable

	began, last time.Time
}

func (p *purging) progress() *purgeProgress {
	g := &purgeProgress{out: p.out, name: p.policy.Name, tables: p.entry.Tables, began: time.Now(), last: time.Now()}
	g.out.startLive()
	if !g.out.isLive() {
		g.out.progress("start", "purge", g.name)
	}
	return g
}

func (g *purgeProgress) batch(b purge.Progress) {
	now := time.Now()
	switch {
	case g.out.isLive():
		if now.Sub(g.last) >= redrawEvery {
			g.last = now
			g.out.redraw(g.text(b, now.Sub(g.began)))
		}
	case now.Sub(g.last) >= recordEvery:
		g.last = now
		g.out.progress("progress", "purge", g.name, "pass", b.Pass, "table", printable(g.tables[b.Step].Table), "removed", b.Removed, "total", b.Total, "limit", b.Limit)
	}
}

// text is the line of a batch.
func (g *purgeProgress) text(b purge.Progress, worked time.Duration) string {
	parts := []string{
		fmt.Sprintf("[%d/%d] %s", b.Step+1, len(g.tables), printable(g.tables[b.Step].Table)),
		report.Number(b.Removed) + " removed",
	}
	if b.Total != b.Removed {
		parts = append(parts, report.Number(b.Total)+" in all")
	}
	parts = append(parts, fmt.Sprintf("batch of %s in %dms", report.Number(b.Limit), b.Took.Milliseconds()))
	if s := worked.Seconds(); s >= 1 {
		parts = append(parts, report.Number(int(math.Round(float64(b.Total)/s)))+" rows/s")
	}
	if b.Pass > 1 {
		parts = append(parts, fmt.Sprintf("pass %d", b.Pass))
	}
	return strings.Join(parts, "  ")
}

// end takes the live line away, or writes the last record.
func (g *purgeProgress) end(r purge.Report) {
	if g.out.isLive() {
		g.out.endLive()
		return
	}
	g.out.progress("end", "purge", g.name, "removed", r.Removed(), "passes", r.Passes, "elapsed", report.Took(r.Elapsed), "stop", string(r.Stop))
}
