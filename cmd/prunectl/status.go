package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

type statusFlags struct {
	selection
	limit    int // rows counted of an arm at most
	detailed bool
}

func (a *app) statusCommand() *cli.Command {
	f := statusFlags{selection: newSelection(), limit: defaultCountLimit}
	countLimit := number()
	return &cli.Command{
		Name:      "status",
		Usage:     "say how much is due, held and overdue now, in read-only transactions",
		UsageText: "prunectl status [flags]",
		Description: "Counts the backlog of each sweep by its own conditions. OVERDUE is how far the oldest due row is past its\n" +
			"window: 0 means that all is done, whoever did it. No state is kept anywhere, and no right to delete is needed.\n\n" + exitCodes,
		Flags: append([]cli.Flag{
			flag(f.only, "only these sweeps, `NAME,NAME`", "only"),
			flag(f.skip, "all sweeps but these, `NAME,NAME`", "skip"),
			flag(countLimit, "count `N` rows of an arm at most, and print >= where there are more (default: 100000)", "count-limit"),
			sign(&f.detailed, "exit with 3 when something is due", "detailed-exitcode"),
		}, a.reporting()...),
		Action: a.action(func(*cli.Context) error {
			if countLimit.set {
				f.limit = countLimit.v
			}
			return a.run(report.Surveying, func(s *session) (int, error) { return s.status(f) })
		}, func(arg string) string { return "write --only " + arg }),
	}
}

func (s *session) status(f statusFlags) (int, error) {
	ctx := s.interrupt.soft
	if err := s.open(f.selection); err != nil {
		return 0, err
	}
	if _, err := s.connect(ctx, &value[time.Time]{}); err != nil {
		return 0, err
	}
	all := s.inspect(ctx, postgres.Options{OneSweeper: true})
	s.tellPolicies()
	for _, in := range all {
		s.backlog(ctx, in, f.limit)
		s.report.Sweeps = append(s.report.Sweeps, in.entry)
	}
	s.eventHealth(ctx, f.limit)
	return s.planCode(f.detailed), nil
}

// backlog counts what is due and held of a sweep, by the plan of its arms, and how large its table is.
func (s *session) backlog(ctx context.Context, in *inspected, limit int) {
	e := &in.entry
	unbounded := policy.NoCeiling
	if len(in.arms) > 0 {
		s.planSweep(ctx, in, limit, &unbounded, false)
	}
	switch {
	case e.Stop == report.Planned:
		e.Stop = report.Counted
	case in.unreadable():
		e.Stop, e.Error = report.Refused, nil
	}
	rows, size := s.size(ctx, in.Sweep)
	e.Backlog = &report.Backlog{Rows: rows, Size: size}
	e.SumBacklog()
}

// unreadable reports whether the sweep failed for want of a right that the inspection had missed, and makes that finding
// what it would be for a sweep.
func (in *inspected) unreadable() bool {
	err := in.entry.Error
	if err == nil || err.SQLState == nil || *err.SQLState != insufficientPrivilege {
		return false
	}
	for _, i := range in.lenient {
		in.entry.Checks[i].Result = report.Refuse
	}
	return len(in.lenient) > 0
}
