package main

import (
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

const defaultCountLimit = 100_000

type planFlags struct {
	selection
	asOf     *value[time.Time]
	window   *value[policy.Window]
	limit    int // rows counted of an arm at most
	rows     int // budget of rows, if lower than the file's
	sql      bool
	detailed bool
}

func (a *app) planCommand() *cli.Command {
	f := planFlags{selection: newSelection(), asOf: instant(), window: windowValue(), limit: defaultCountLimit, rows: policy.NoCeiling}
	countLimit := number()
	return &cli.Command{
		Name:      "plan",
		Usage:     "say what a sweep would remove, in read-only transactions",
		UsageText: "prunectl plan [flags]",
		Description: "Counts what is due by the conditions of the sweep itself, the oldest first. Nothing is removed: every\n" +
			"transaction is read-only, so it may also be asked on a standby.\n\n" + exitCodes,
		Flags: append([]cli.Flag{
			flag(f.only, "only these sweeps, `NAME,NAME`", "only"),
			flag(f.skip, "all sweeps but these, `NAME,NAME`", "skip"),
			flag(f.asOf, "take `TIME` (2026-11-30T02:17:04Z or 2026-11-30) for now; not in the future", "as-of"),
			windowFlag(f.window),
			flag(countLimit, "count `N` rows of an arm at most, and print >= where there are more (default: 100000)", "count-limit"),
			sign(&f.sql, "print the statement of each arm, with its reasons", "sql"),
			sign(&f.detailed, "exit with 3 when something is due", "detailed-exitcode"),
		}, a.reporting()...),
		Action: a.action(func(*cli.Context) error {
			if countLimit.set {
				f.limit = countLimit.v
			}
			return a.plan(f)
		}, func(arg string) string { return "write --only " + arg }),
	}
}

func (a *app) plan(f planFlags) error {
	return a.run(report.Planning, func(s *session) (int, error) { return s.plan(f) })
}

func (s *session) plan(f planFlags) (int, error) {
	ctx := s.interrupt.soft
	if err := s.open(f.selection); err != nil {
		return 0, err
	}
	if err := s.replaceWindow(f.window); err != nil {
		return 0, err
	}
	if _, err := s.connect(ctx, f.asOf); err != nil {
		return 0, err
	}
	s.count(ctx, f)
	return s.planCode(f.detailed), nil
}

// count inspects the sweeps and plans those that may run.
func (s *session) count(ctx context.Context, f planFlags) {
	budget := min(s.file.Budget.WithDefaults().Rows, f.rows)
	all := s.inspect(ctx, postgres.Options{OneSweeper: true})
	s.tellPolicies()
	ordered := slices.Concat(waves(all)...)
	for i, in := range ordered {
		if len(in.arms) == 0 {
			continue
		}
		left := &budget
		if o := in.waitsFor(ordered[:i]); o != nil {
			left = new(int)
			in.entry.Note("it waits: sweep %s will not be drained in this run, and its rows need their owners", o.Name)
		}
		s.planSweep(ctx, in, f.limit, left, f.sql)
		if in.entry.Stop == report.Planned {
			survey(ctx, in, s.now)
		}
	}
	for _, in := range all {
		s.report.Sweeps = append(s.report.Sweeps, in.entry)
	}
}

// waitsFor is a sweep among those planned before that this run would not drain and that needs the rows of in as owners.
func (in *inspected) waitsFor(before []*inspected) *inspected {
	for _, o := range before {
		if !o.needs(in) || o.outlives(in) {
			continue
		}
		if o.entry.Stop != report.Planned {
			return o
		}
		for _, a := range o.entry.Arms {
			if a.ThisRun < a.Due || a.DueIsFloor {
				return o
			}
		}
	}
	return nil
}

// planSweep counts the arms of a sweep. budget is what the run has left of it.
func (s *session) planSweep(ctx context.Context, in *inspected, limit int, budget *int, sql bool) {
	e := &in.entry
	e.Stop = report.Planned
	left := ceiling(in.Ceiling, in.Batch.Limit)
	overdue := 0.0
	for i, a := range in.arms {
		cutoff := a.Spec().Window.Cutoff(s.now)
		p, err := a.Plan(ctx, cutoff, limit)
		if err != nil {
			in.fail(ctx, err)
			return
		}
		to := &e.Arms[i]
		to.Examined, to.Orphan, to.Outside, to.Unusable, to.Raised = p.Examined, p.Orphan, p.Outside, &p.Unusable, p.Raised
		if a.Spec().CountsHeld() {
			to.Held = &p.Held
		}
		to.ArmPlan = &report.ArmPlan{
			Due: p.Due, DueIsFloor: p.AtLeast, ReadInVain: p.InVain, ThisRun: min(p.Due, left, *budget),
			OldestDue: utc(p.OldestDue), OldestHeld: utc(p.OldestHeld),
		}
		left -= to.ThisRun
		*budget -= to.ThisRun
		overdue = max(overdue, p.Overdue.Seconds())
		if sql {
			for _, st := range a.Statements() {
				to.Statements = append(to.Statements, st.SQL)
			}
		}
		e.Counts.Add(to.Counts)
	}
	e.Overdue = &overdue
	for i, a := range in.arms {
		// Asked beside the work, so a failure leaves it out.
		e.Arms[i].Undated, _ = a.Undated(ctx, surveyMax)
		if e.Arms[i].Undated == nil {
			e.Undated = nil
			break
		}
		e.Counts.Add(report.Counts{Undated: e.Arms[i].Undated})
	}
}

// ceiling is how many rows a sweep removes in one run at most.
func ceiling(c policy.Ceiling, limit int) int {
	rows := c.Rows
	if c.Batches < policy.NoCeiling/limit {
		rows = min(rows, c.Batches*limit)
	}
	return rows
}

// planCode is the exit code of a command that only counts.
func (s *session) planCode(detailed bool) int {
	var failed, refused, more bool
	for _, e := range s.report.Sweeps {
		failed = failed || e.Stop == report.Failed
		refused = refused || e.Stop == report.Refused
		for _, a := range e.Arms {
			more = more || a.ArmPlan != nil && a.Due > 0
		}
	}
	switch {
	case failed:
		return exitFailed
	case refused:
		return exitRefused
	case more && detailed:
		return exitMore
	}
	return exitDone
}
