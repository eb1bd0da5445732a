package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

type checkFlags struct {
	selection
	component       *value[[]string]
	schema          *value[string]
	offline, strict bool
}

func (a *app) checkCommand() *cli.Command {
	f := &checkFlags{selection: newSelection(), component: names(), schema: textValue()}
	return &cli.Command{
		Name:      "check",
		Usage:     "check the policy against the catalog, the rights and the indexes; touches nothing",
		UsageText: "prunectl check [flags]",
		Description: "Says all that would refuse a sweep or a purge, or make it slow, with what to do about it; statements that can\n" +
			"be run as they are stand at the end. The tables that prunectl owns are compared with what its migrations make, and\n" +
			"with --component no policy file is needed for that.\n\n" + exitCodes,
		Flags: append([]cli.Flag{
			flag(f.only, "only these sweeps and purges, `NAME,NAME`", "only"),
			flag(f.skip, "all sweeps and purges but these, `NAME,NAME`", "skip"),
			flag(f.component, "the components `NAME,NAME` too, installed or not; without -f only these", "component"),
			flag(f.schema, "the `SCHEMA` of these components (default: each one's own)", "schema"),
			sign(&f.offline, "check the file alone, without a server", "offline"),
			sign(&f.strict, "exit with 4 for warnings too", "strict"),
		}, a.reporting()...),
		Action: a.action(func(*cli.Context) error {
			if err := f.usage(); err != nil {
				return err
			}
			return a.run(report.Checking, func(s *session) (int, error) { return s.check(f) })
		}, func(arg string) string { return "write --only " + arg }),
	}
}

// usage refuses flags that contradict each other.
func (f *checkFlags) usage() error {
	switch {
	case f.component.set && f.offline:
		return usagef("--component asks the database, and --offline does not; leave one of them out")
	case f.schema.set && !f.component.set:
		return usagef("--schema is that of --component; a policy file says its schemas itself")
	}
	return knownComponents(f.component.v)
}

// readsPolicy reports whether the policy file is checked: not where only components are named.
func (s *session) readsPolicy(f *checkFlags) bool {
	_, named := s.env("PRUNECTL_POLICY")
	return !f.component.set || s.policy.set || named || f.only.set || f.skip.set
}

func (s *session) check(f *checkFlags) (int, error) {
	ctx := s.interrupt.soft
	if s.readsPolicy(f) {
		if err := s.openChecked(f); err != nil {
			return 0, err
		}
	}
	if f.offline {
		for _, p := range s.purges {
			s.report.Purges = append(s.report.Purges, report.NewPurgeCheck(p.Name))
		}
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
	if len(s.sweeps) > 0 { // the others are asked on a standby too
		if err := server.Writable(); err != nil {
			return 0, err
		}
	}
	for _, name := range f.component.v {
		schema := f.schema.v
		if schema == "" {
			schema = migrations.DefaultSchema(name)
		}
		s.addComponent(name, schema)
	}
	all := s.inspect(ctx, postgres.Options{OneSweeper: true})
	s.checkPolicies(ctx)
	s.tellPolicies()
	for _, in := range all {
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
		s.report.Sweeps = append(s.report.Sweeps, in.entry)
	}
	s.checkPurges(ctx, f.strict)
	if len(all)+len(s.purges) > 0 {
		s.report.Vacuum = s.vacuum(ctx)
	}
	s.warned = s.warned || s.report.Vacuum != nil
	return s.checkCode(f.strict), nil
}

// openChecked reads the policy and chooses the sweeps and purges.
func (s *session) openChecked(f *checkFlags) error {
	if err := s.openFile(); err != nil {
		return err
	}
	what, known := "sweep", sweepNames(s.file)
	switch {
	case len(s.file.Purges) > 0 && len(known) > 0:
		what = "sweep or purge"
	case len(s.file.Purges) > 0:
		what = "purge"
	}
	for _, p := range s.file.Purges {
		known = append(known, p.Name)
	}
	names, err := f.names(s.file, what, known)
	if err != nil {
		return err
	}
	s.sweeps = sweepsOf(s.file, names)
	s.purges = slices.DeleteFunc(slices.Clone(s.file.Purges), func(p policy.Purge) bool { return !slices.Contains(names, p.Name) })
	return nil
}

// checkCode is the exit code of a check.
func (s *session) checkCode(strict bool) int {
	var failed, refused bool
	for _, e := range s.report.Sweeps {
		failed = failed || e.Stop == report.Failed || e.Stop == report.NotReached
		refused = refused || e.Stop == report.Refused
	}
	for _, p := range s.report.Purges {
		failed = failed || p.Stop == report.Failed || p.Stop == report.NotReached
		refused = refused || p.Stop == report.Refused
	}
	for _, c := range s.report.Components {
		warning := c.Result == report.Warning
		s.warned = s.warned || warning
		failed = failed || c.Result == report.Verdict(report.Failed)
		refused = refused || c.Result == report.Refuse || strict && warning
	}
	switch {
	case failed:
		return exitFailed
	case refused:
		return exitRefused
	}
	return exitDone
}
