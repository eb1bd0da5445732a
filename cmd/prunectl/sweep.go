package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// vacuumPatience is how old a transaction is that is named as what holds vacuum back.
const vacuumPatience = time.Hour

type sweepFlags struct {
	selection
	asOf                               *value[time.Time]
	window                             *value[policy.Window]
	maxTime                            *value[time.Duration]
	maxRows                            *value[int]
	detailed, busyOK, failFast, dryRun bool
	replacePolicy, yes                 bool
}

func (a *app) sweepCommand() *cli.Command {
	f := &sweepFlags{selection: newSelection(), asOf: instant(), window: windowValue(), maxTime: duration(), maxRows: number()}
	return &cli.Command{
		Name:        "sweep",
		Usage:       "remove what is due",
		UsageText:   "prunectl sweep [flags]",
		Description: "Removes the rows that the policy file lets go, the oldest first, in bounded batches, until nothing due\nis left or a ceiling or the budget is reached.\n\n" + exitCodes,
		Flags: append([]cli.Flag{
			flag(f.only, "only these sweeps, `NAME,NAME`", "only"),
			flag(f.skip, "all sweeps but these, `NAME,NAME`", "skip"),
			flag(f.maxTime, "end after `DURATION`, as 90s, 10min or 2h; it only lowers the file's budget.time", "max-time"),
			flag(f.maxRows, "end after `N` removed rows; it only lowers the file's budget.rows", "max-rows"),
			flag(f.asOf, "take `TIME` (2026-11-30T02:17:04Z or 2026-11-30) for now; not in the future", "as-of"),
			windowFlag(f.window),
			sign(&f.detailed, "exit with 3 when more is due, or may be", "detailed-exitcode"),
			sign(&f.busyOK, "exit with 0 when another run holds a sweep", "busy-ok"),
			sign(&f.failFast, "end the run when a sweep fails; else the others go on", "fail-fast"),
			sign(&f.dryRun, "only plan: remove nothing", "dry-run"),
			sign(&f.replacePolicy, "put the file's windows for inbox and outbox in the place of the recorded ones (component inbox_outbox)", "replace-policy"),
			sign(&f.yes, "with --replace-policy: yes to the rows that a shorter window makes due", "yes"),
		}, a.globals.reporting()...),
		Action: a.action(func(*cli.Context) error {
			if f.yes && !f.replacePolicy {
				return usagef("--yes answers what --replace-policy asks; write both, or leave it out")
			}
			if f.dryRun {
				p := planFlags{selection: f.selection, asOf: f.asOf, window: f.window, limit: defaultCountLimit, rows: policy.NoCeiling, detailed: f.detailed}
				if f.maxRows.set {
					p.rows = f.maxRows.v
				}
				return a.plan(p)
			}
			return a.run(report.Sweeping, func(s *session) (int, error) { return s.sweep(f) })
		}, func(arg string) string { return "write --only " + arg }),
	}
}

func (s *session) sweep(f *sweepFlags) (int, error) {
	ctx := s.interrupt.soft
	if err := s.open(f.selection); err != nil {
		return 0, err
	}
	if err := s.replaceWindow(f.window); err != nil {
		return 0, err
	}
	server, err := s.connect(ctx, f.asOf)
	if err != nil {
		return 0, err
	}
	if err := server.Writable(); err != nil {
		return 0, err
	}
	if err := s.carryOut(ctx, f); err != nil {
		return 0, err
	}
	return s.sweepCode(f), nil
}

// carryOut inspects the sweeps and drains those that may run.
func (s *session) carryOut(ctx context.Context, f *sweepFlags) error {
	all := s.inspect(ctx, postgres.Options{OneSweeper: true})
	if err := s.agree(ctx, f); err != nil {
		return err
	}
	s.tellPolicies()
	s.drainAll(all, s.budget(f), f.failFast)
	for _, in := range all {
		if len(in.arms) > 0 && (in.entry.Orphan > 0 || in.entry.Held != nil && *in.entry.Held > 0) {
			survey(ctx, in, s.now)
		}
		s.report.Sweeps = append(s.report.Sweeps, in.entry)
	}
	s.report.Sum()
	if s.report.Totals.Removed > 0 {
		s.report.Vacuum = s.vacuum(ctx)
	}
	s.warned = s.warned || s.report.Vacuum != nil
	return nil
}

// budget is the file's, lowered by the flags.
func (s *session) budget(f *sweepFlags) policy.Budget {
	b := s.file.Budget.WithDefaults()
	if f.maxTime.set {
		if f.maxTime.v > b.Time {
			s.out.tell("--max-time %s: the file's budget.time of %s holds, which is less", f.maxTime.text, policy.FormatDuration(b.Time))
		}
		b.Time = min(b.Time, f.maxTime.v)
	}
	if f.maxRows.set {
		if f.maxRows.v > b.Rows {
			s.out.tell("--max-rows %s: the file's budget.rows of %d holds, which is less", f.maxRows.text, b.Rows)
		}
		b.Rows = min(b.Rows, f.maxRows.v)
	}
	return b
}

// fill takes over what a drain reports.
func (in *inspected) fill(r drain.SweepReport) {
	e := &in.entry
	e.Counts = counts(r.Report)
	e.Stop, e.StopBy = report.Stop(r.Stop), report.StopBy(r.StopBy)
	e.Drained, e.Batches, e.UnknownCommits = r.Drained(), r.Batches, r.UnknownCommits
	e.Elapsed, e.SlowestBatch = r.Elapsed.Seconds(), r.SlowestBatch.Seconds()
	e.Error = errorOf(r.Err)
	if r.Stop == drain.StopSignal {
		e.Error = nil // that it was cancelled is no news beside the signal
	}
	if e.Drained {
		e.Overdue = new(float64)
	}
	for i, a := range r.Arms {
		e.Arms[i].Counts = counts(a)
	}
	for _, b := range r.Blocked {
		e.StuckOn = append(e.StuckOn, report.Block{Constraint: b.Constraint, Table: b.Table, Rows: b.Rows})
	}
}

func counts(r drain.Report) report.Counts {
	c := report.Counts{
		Examined: r.Examined, Removed: r.Removed, Children: r.Children, Locked: r.Locked, Moved: r.Moved, Orphan: r.Orphan,
		Stuck: r.Stuck, Outside: r.Outside, Undated: r.Undated, Unusable: r.Unusable, Raised: r.Raised,
	}
	if r.CountsHeld {
		c.Held = &r.Held
	}
	return c
}

func (s *session) vacuum(ctx context.Context) *report.Vacuum {
	h, err := postgres.VacuumHeldBack(ctx, s.db, vacuumPatience)
	if err != nil || h == nil {
		return nil
	}
	return &report.Vacuum{PID: h.PID, What: h.What, App: h.App, Since: h.Since.Seconds()}
}

// sweepCode is the exit code of a sweep, and settles whether something is to be seen although it is 0.
func (s *session) sweepCode(f *sweepFlags) int {
	var failed, refused, busy, more bool
	for _, e := range s.report.Sweeps {
		switch e.Stop {
		case report.Refused:
			refused = true
		case report.Busy:
			busy = true
		case report.Ceiling, report.Budget, report.NotReached:
			more, s.warned = true, true
		case report.Locked:
			more = true
			s.warned = s.warned || e.Error != nil // the whole table
		}
		failed = failed || failedEntry(e)
	}
	switch {
	case failed:
		return exitFailed
	case refused:
		return exitRefused
	case busy && !f.busyOK:
		return exitBusy
	case more && f.detailed:
		return exitMore
	}
	return exitDone
}
