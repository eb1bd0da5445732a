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
//
// A sweep whose rows another sweep's rows keep, as owed, comes after that one too: what goes there lets go here in the same
// run. But it loses nothing by going first, so it waits for nobody to be drained.

// needs reports whether the rows of in are owned by rows of the table of owner.
func (in *inspected) needs(owner *inspected) bool {
	return in.Guard.Owner != nil && in.Guard.Owner.Table == owner.Table && in.Table != owner.Table
}

// keeps reports whether rows of in keep those of parent, as owed.
func (in *inspected) keeps(parent *inspected) bool {
	return parent.Guard.Owed != nil && parent.Guard.Owed.Table == in.Table && in.Table != parent.Table
}

// outlives reports whether no row of parent goes before the rows of in that it owns: those keep it, whatever their state, or
// go with it.
func (in *inspected) outlives(parent *inspected) bool {
	byOwner := func(table policy.Name, key []policy.ChildKey) bool {
		return table == in.Table && len(key) == len(in.Guard.Owner.Key) && !slices.ContainsFunc(in.Guard.Owner.Key, func(k policy.KeyPair) bool {
			return !slices.Contains(key, policy.ChildKey{Parent: k.Owner, Child: k.Target})
		})
	}
	if o := parent.Guard.Owed; o != nil && o.Column == "" && byOwner(o.Table, o.Key) {
		return true
	}
	return slices.ContainsFunc(parent.Children, func(c policy.Child) bool { return byOwner(c.Table, c.Key) })
}

// waves puts the sweeps in the order in which they may run.
func waves(all []*inspected) [][]*inspected {
	needed := func(s, by *inspected) bool { return by.needs(s) }
	before := func(s, by *inspected) bool { return by.needs(s) || by.keeps(s) }
	var ordered [][]*inspected
	for left := slices.Clone(all); len(left) > 0; {
		wave, later := split(left, before)
		if len(wave) == 0 { // a ring, which breaks where nothing is lost by it
			wave, later = split(left, needed)
		}
		if len(wave) == 0 { // owners in a ring
			wave, later = later, nil
		}
		ordered, left = append(ordered, wave), later
	}
	return ordered
}

// split parts those that come after another of them from the rest.
func split(left []*inspected, after func(s, other *inspected) bool) (wave, later []*inspected) {
	for _, s := range left {
		if slices.ContainsFunc(left, func(o *inspected) bool { return after(s, o) }) {
			later = append(later, s)
		} else {
			wave = append(wave, s)
		}
	}
	return wave, later
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
		if o.needs(in) && !o.outlives(in) && !o.entry.Drained {
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
