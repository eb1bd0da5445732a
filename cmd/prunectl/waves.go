package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
)

// Sweeps take turns, but a sweep over owners waits for those that need its rows as owners: an owner that goes first makes
// orphans of rows that were due, and orphans are kept for ever. So the sweeps run in waves, owners in a later one than what
// they own.

// needs reports whether the rows of in are owned by rows of the table of owner.
func (in *inspected) needs(owner *inspected) bool {
	return in.Guard.Owner != nil && in.Guard.Owner.Table == owner.Table && in.Table != owner.Table
}

// waves puts the sweeps in the order in which they may run.
func waves(all []*inspected) [][]*inspected {
	var ordered [][]*inspected
	for left := slices.Clone(all); len(left) > 0; {
		var wave, later []*inspected
		for _, s := range left {
			if slices.ContainsFunc(left, func(o *inspected) bool { return o.needs(s) }) {
				later = append(later, s)
			} else {
				wave = append(wave, s)
			}
		}
		if len(wave) == 0 { // owners in a ring
			wave, later = later, nil
		}
		ordered, left = append(ordered, wave), later
	}
	return ordered
}

// drainAll drains the sweeps that may run, wave by wave under one budget, and fills their entries.
func (s *session) drainAll(all []*inspected, budget policy.Budget, failFast bool) {
	runnable := 0
	for _, in := range all {
		if len(in.arms) > 0 {
			runnable++
		}
	}
	if runnable == 0 {
		return
	}
	p := s.progress(runnable)
	defer p.done()
	end := time.Now().Add(budget.Time)
	var done []*inspected
	for _, wave := range waves(all) {
		var ready []*inspected
		for _, in := range wave {
			// After a signal none may; the drain says so itself.
			if len(in.arms) > 0 && (s.interrupt.soft.Err() != nil || in.mayFollow(done, failFast)) {
				ready = append(ready, in)
			}
		}
		budget.Time = max(time.Until(end), 1) // below a zero, which would be the default
		s.drain(ready, budget, failFast, p)
		for _, in := range ready {
			if budget.Rows < policy.NoCeiling {
				budget.Rows -= in.entry.Removed + in.entry.Children
			}
		}
		done = append(done, wave...)
	}
}

// mayFollow reports whether the sweep may run after these; where not, it says why in its entry.
func (in *inspected) mayFollow(done []*inspected, failFast bool) bool {
	for _, o := range done {
		if failFast && failedEntry(o.entry) {
			in.entry.Stop = report.NotReached
			return false
		}
	}
	for _, o := range done {
		if o.needs(in) && !o.entry.Drained {
			in.entry.Stop = report.NotReached
			in.entry.Error = &report.Error{Message: fmt.Sprintf("sweep %s is not drained, and its rows need their owners in %s", o.Name, in.Table)}
			return false
		}
	}
	return true
}

// drain drains the sweeps of a wave.
func (s *session) drain(wave []*inspected, budget policy.Budget, failFast bool, p *progress) {
	if len(wave) == 0 {
		return
	}
	if budget.Rows <= 0 {
		for _, in := range wave {
			in.entry.Stop = report.NotReached
		}
		return
	}
	var sweeps []drain.Sweep
	for _, in := range wave {
		sweeps = append(sweeps, drain.SweepOf(in.Sweep, in.arms, s.now))
	}
	reports, err := drain.RunAll(s.interrupt.hard, sweeps, budget, drain.Options{
		Stop: s.interrupt.soft.Done(), OnStart: p.start, OnBatch: p.batch, OnEnd: p.end, FailFast: failFast,
	})
	// Beside reports the error repeats what is in them.
	for i, in := range wave {
		if reports == nil {
			in.fail(context.Background(), err)
			continue
		}
		in.fill(reports[i])
	}
	p.before += len(wave)
}

// failedEntry reports whether somebody has to look at what became of the sweep.
func failedEntry(e report.Sweep) bool {
	return e.Stop == report.Failed || e.Stop == report.Stuck || e.Stuck > 0 || e.UnknownCommits > 0
}
