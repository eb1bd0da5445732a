package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/pruner/postgres"
)

type checkFlags struct {
	selection
	offline, strict bool
}

func (a *app) checkCommand() *cli.Command {
	f := &checkFlags{selection: newSelection()}
	return &cli.Command{
		Name:      "check",
		Usage:     "check the policy against the catalog, the rights and the indexes; touches nothing",
		UsageText: "prunectl check [flags]",
		Description: "Says all that would refuse a sweep, or make it slow, with what to do about it; statements that can be run\n" +
			"as they are stand at the end.\n\n" + exitCodes,
		Flags: append([]cli.Flag{
			flag(f.only, "only these sweeps, `NAME,NAME`", "only"),
			flag(f.skip, "all sweeps but these, `NAME,NAME`", "skip"),
			sign(&f.offline, "check the file alone, without a server", "offline"),
			sign(&f.strict, "exit with 4 for warnings too", "strict"),
		}, a.reporting()...),
		Action: a.action(func(*cli.Context) error {
			return a.run(report.Checking, func(s *session) (int, error) { return s.check(f) })
		}, func(arg string) string { return "write --only " + arg }),
	}
}

func (s *session) check(f *checkFlags) (int, error) {
	ctx := s.interrupt.soft
	if err := s.open(f.selection); err != nil {
		return 0, err
	}
	if f.offline {
		for _, sw := range s.sweeps {
			e := report.NewSweep(sw.Name, sw.Table.String())
			e.Stop = report.Checked
			e.Say(words(sw.WithDefaults()))
			s.report.Sweeps = append(s.report.Sweeps, e)
		}
		return exitDone, nil
	}
	server, err := s.connect(ctx, &value[time.Time]{})
	if err != nil {
		return 0, err
	}
	if err := server.Writable(); err != nil {
		return 0, err
	}
	code := exitDone
	for _, in := range s.inspect(ctx, postgres.Options{OneSweeper: true}) {
		if in.entry.Stop == "" {
			in.entry.Stop = report.Checked
		}
		for _, c := range in.entry.Checks {
			if c.Result == report.Warning {
				s.warned = true
				if f.strict && in.entry.Stop == report.Checked {
					in.entry.Stop = report.Refused
				}
			}
		}
		switch in.entry.Stop {
		case report.Failed, report.NotReached:
			code = exitFailed
		case report.Refused:
			if code == exitDone {
				code = exitRefused
			}
		}
		s.report.Sweeps = append(s.report.Sweeps, in.entry)
	}
	s.report.Vacuum = s.vacuum(ctx)
	s.warned = s.warned || s.report.Vacuum != nil
	return code, nil
}
