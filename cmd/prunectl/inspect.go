package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// inspected is a sweep and what the catalog says of it.
type inspected struct {
	policy.Sweep
	arms  []*postgres.Arm // none where it is refused or could not be inspected
	entry report.Sweep

	lenient []int // checks that would refuse a sweep, and not one that only reads
}

// inspect asks the catalog about each sweep. A sweep that cannot be inspected, or is refused, does not stop the others.
func (s *session) inspect(ctx context.Context, o postgres.Options) []*inspected {
	var all []*inspected
	lost := s.findComponents(ctx)
	s.preflight(ctx)
	for _, written := range s.sweeps {
		sw := written.WithDefaults()
		in := &inspected{Sweep: sw, entry: report.NewSweep(sw.Name, sw.Table.String())}
		in.entry.Say(words(sw))
		all = append(all, in)
		if lost != nil {
			in.fail(ctx, lost)
			continue
		}
		found, err := postgres.Inspect(ctx, s.db, written)
		if err != nil {
			in.fail(ctx, err)
			continue
		}
		if c, early := s.ownersGoEarly(sw); early {
			found.Checks = append(found.Checks, c)
		}
		if s.report.Command == report.Surveying {
			in.lenient = leniently(found)
		}
		for _, c := range found.Checks {
			in.entry.Checks = append(in.entry.Checks, s.finding(sw.Name, c))
		}
		if len(found.Refused()) > 0 {
			in.entry.Stop = report.Refused
		}
		s.schemaCheck(ctx, in)
		if in.entry.Stop != "" {
			continue
		}
		for _, c := range found.Checks {
			// check shows them in its table; a sweep must not pass over them in silence.
			if c.Result == postgres.Warning && s.report.Command == report.Sweeping {
				s.out.put(slog.LevelWarn, "prunectl: ", fmt.Sprintf("warning: %s: %s: %s", sw.Name, c.Name, c.Detail))
			}
		}
		if in.arms, err = found.Arms(s.db, o); err != nil {
			in.fail(ctx, err)
			continue
		}
		for _, a := range in.arms {
			in.entry.Arms = append(in.entry.Arms, arm(sw, a, s.now))
		}
	}
	s.readPolicies(ctx, all)
	return all
}

// refuse refuses the sweep: it is not touched.
func (in *inspected) refuse(c report.Check) {
	in.entry.Checks = append(in.entry.Checks, c)
	in.entry.Stop, in.entry.Arms, in.arms = report.Refused, []report.Arm{}, nil
}

// leniently makes warnings of the rights that are missing where nothing else refuses the sweep, and says which checks those
// are: who only reads may lack the right to delete. What cannot be read either fails when it is read.
func leniently(found *postgres.Inspection) []int {
	const rights = "rights"
	if slices.ContainsFunc(found.Refused(), func(c postgres.Check) bool { return c.Name != rights }) {
		return nil
	}
	var changed []int
	for i, c := range found.Checks {
		if c.Name == rights && c.Result == postgres.Refused {
			found.Checks[i].Result = postgres.Warning
			changed = append(changed, i)
		}
	}
	return changed
}

// ownersGoEarly finds that the rows of sw own those of another sweep of the file and are kept for less time: such rows lose
// their owner before they are due, and orphans are kept for ever.
func (s *session) ownersGoEarly(sw policy.Sweep) (postgres.Check, bool) {
	for _, o := range s.file.Sweeps {
		g := o.Guard.Owner
		if g == nil || g.Table != sw.Table || o.Table == sw.Table || sw.Expires || o.Expires || !sw.Shortest().Shorter(o.Shortest()) {
			continue
		}
		return postgres.Check{
			Name: "floor", Key: "window", Result: postgres.Warning, Fix: fmt.Sprintf("keep the rows of %s for longer than those of %s", sw.Table, o.Table),
			Detail: fmt.Sprintf("%s keeps its rows for %s, and %s keeps those that they own for %s: without an owner such rows are kept for ever", sw.Name, sw.Shortest(), o.Name, o.Shortest()),
		}, true
	}
	return postgres.Check{}, false
}

// fail ends the sweep by an error, unless it is that the run was ended.
func (in *inspected) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		in.entry.Stop = report.NotReached
		return
	}
	in.entry.Stop = report.Failed
	in.entry.Error = errorOf(err)
}

// finding is a finding of the catalog with its place in the policy file.
func (s *session) finding(sweep string, c postgres.Check) report.Check {
	out := report.Check{Check: c.Name, Result: report.Verdict(c.Result), Detail: c.Detail}
	if c.Fix != "" {
		out.Fix = &c.Fix
	}
	if c.Result != postgres.OK {
		out.Position = s.file.Position(sweep, c.Key)
	}
	return out
}
