package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
	"github.com/prunectl/prunectl/pruner/tenant"
)

type purgeFlags struct {
	tenant, only *value[string]
	maxTime      *value[time.Duration]
	countLimit   *value[int]
	yes, dryRun  bool
}

func (a *app) purgeCommand() *cli.Command {
	f := &purgeFlags{tenant: textValue(), only: textValue(), maxTime: duration(), countLimit: number()}
	return &cli.Command{
		Name:      "purge",
		Usage:     "remove everything of one tenant, and prove that nothing of it is left",
		UsageText: "prunectl purge --tenant NAME [flags]",
		Description: "Shows how many rows each table of the policy file's purge has of the tenant, asks for its name to be typed,\n" +
			"removes them in bounded batches that wait for the disk, and ends by looking at all of these tables at once.\n" +
			"What it prints is a receipt. No window and no guard protects a row here. A run that was cut short goes on where\n" +
			"it is run again.\n\n" + exitCodes,
		Flags: append([]cli.Flag{
			flag(f.tenant, "remove the rows of `NAME`, exactly as it is written", "tenant"),
			flag(f.only, "by the purge `NAME`, where the file has several", "only"),
			sign(&f.yes, "do not ask for the tenant's name to be typed", "yes"),
			sign(&f.dryRun, "check the purge and count what it would remove, in read-only transactions; remove nothing", "dry-run"),
			flag(f.maxTime, "end after `DURATION`, as 90s, 10min or 2h (default: no end)", "max-time"),
			flag(f.countLimit, "count `N` rows of a table at most, and print >= where there are more (default: 100000)", "count-limit"),
		}, a.reporting()...),
		Action: a.action(func(*cli.Context) error {
			if !f.tenant.set {
				return usagef("purge is of one tenant; write --tenant NAME")
			}
			return a.run(report.Purging, func(s *session) (int, error) { return s.purge(f) })
		}, func(arg string) string { return "write --tenant " + shown(arg) }),
	}
}

// purging is one purge that is carried out.
type purging struct {
	*session
	flags  *purgeFlags
	policy policy.Purge // with its defaults
	entry  *report.Purge
	clock  func() time.Time // the server's clock, as far as ours goes on from it
}

func (s *session) purge(f *purgeFlags) (int, error) {
	if err := f.asks(s.app); err != nil {
		return 0, err
	}
	ctx := s.interrupt.soft
	chosen, err := s.openPurge(f.only)
	if err != nil {
		return 0, err
	}
	server, err := s.connect(ctx, &value[time.Time]{})
	if err != nil {
		return 0, err
	}
	connected := time.Now()
	p := &purging{session: s, flags: f, clock: func() time.Time { return server.Now.Add(time.Since(connected)) }}
	if !f.dryRun {
		if err := server.Writable(); err != nil {
			return 0, err
		}
	}
	found, err := postgres.InspectPurge(ctx, s.db, chosen, f.tenant.v)
	var none *tenant.Error
	switch {
	case errors.As(err, &none):
		return 0, usagef("--tenant: %w", none)
	case err != nil:
		return 0, err
	}
	p.begin(found)
	return p.carryOut(ctx, found)
}

// asks refuses to ask where nobody could answer.
func (f *purgeFlags) asks(a *app) error {
	switch {
	case f.dryRun || f.yes:
		return nil
	case !a.canAsk():
		return usagef("purge asks for the tenant's name, and there is no terminal to type it on; write --yes, or --dry-run to see what would go")
	case strings.ContainsFunc(f.tenant.v, unicode.IsControl):
		return usagef("purge asks for the tenant's name, and %q cannot be typed on a terminal; write --yes, or --dry-run to see what would go", f.tenant.v)
	}
	return nil
}

// openPurge reads the policy and chooses the purge.
func (s *session) openPurge(only *value[string]) (policy.Purge, error) {
	if err := s.openFile(); err != nil {
		return policy.Purge{}, err
	}
	var known []string
	for _, p := range s.file.Purges {
		if only.v == p.Name || !only.set && len(s.file.Purges) == 1 {
			return p, nil
		}
		known = append(known, p.Name)
	}
	switch {
	case len(known) == 0:
		return policy.Purge{}, usagef("%s has no purges; it needs the key purges, with the tables that hold a tenant's rows", s.file.Path)
	case only.set:
		return policy.Purge{}, usagef("--only: %s has no purge %s%s", s.file.Path, shown(only.v), suggestion(only.v, known, "", "it has "+strings.Join(known, ", ")))
	}
	return policy.Purge{}, usagef("%s has the purges %s; write --only %s", s.file.Path, strings.Join(known, ", "), strings.Join(known, " or --only "))
}

// begin makes the entry of the purge, with what the catalog says of it.
func (p *purging) begin(found *postgres.PurgeInspection) {
	p.policy = found.Purge
	p.entry = report.NewPurge(p.policy.Name, found.Tenant)
	p.report.Purge = p.entry
	p.entry.Key, p.entry.Operator = p.policy.Key, operator()
	for _, e := range p.policy.Exclude {
		p.entry.Excluded = append(p.entry.Excluded, report.PurgeExcluded{Table: e.Table.String(), Reason: e.Reason})
	}
	for _, t := range p.policy.Tables {
		p.entry.Tables = append(p.entry.Tables, childrenOf(t.Children, []string{t.Table.String()})...)
		p.entry.Tables = append(p.entry.Tables, report.NewPurgeTable(t.Table.String(), t.Column, nil))
	}
	refused := len(found.Refused()) > 0
	for _, c := range found.Checks {
		p.entry.Checks = append(p.entry.Checks, p.purgeFinding(p.policy.Name, c))
		if c.Result != postgres.Warning {
			continue
		}
		p.warned = p.warned || p.flags.dryRun // it is the check of a purge
		if p.flags.dryRun || refused {
			continue // the result has them
		}
		p.out.put(slog.LevelWarn, "prunectl: ", printable(fmt.Sprintf("warning: %s: %s: %s", p.policy.Name, c.Name, c.Detail)))
	}
}

// childrenOf are the entries of the children of a table, the deepest first; of are the tables above them, the nearest first.
func childrenOf(children []policy.Child, of []string) []report.PurgeTable {
	var all []report.PurgeTable
	for _, c := range children {
		name := c.Table.String()
		all = append(all, childrenOf(c.Children, append([]string{name}, of...))...)
		all = append(all, report.NewPurgeTable(name, "", of))
	}
	return all
}

// operator is the user of the operating system, "" where it is not known.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return printable(u.Username)
}

// carryOut looks, asks, removes and looks again. Every way out leaves a word for the stop in the entry.
func (p *purging) carryOut(ctx context.Context, found *postgres.PurgeInspection) (int, error) {
	if len(found.Refused()) > 0 {
		p.entry.Stop = report.Refused
		return exitRefused, nil
	}
	remover, err := found.Open(p.db)
	if err != nil {
		return p.fail(ctx, err), nil
	}
	p.entry.Tables = tablesOf(remover)
	look, err := remover.Look(ctx, p.countTo())
	if err != nil {
		return p.fail(ctx, err), nil
	}
	p.found(look)
	if p.flags.dryRun {
		p.entry.Stop = report.Counted
		return exitDone, nil
	}
	if err := p.preview(); err != nil {
		return p.fail(ctx, err), nil
	}
	if !p.flags.yes {
		agreed, err := p.confirm()
		if err != nil {
			return p.fail(ctx, err), nil
		}
		if !agreed {
			p.entry.Stop = report.Declined
			return exitRefused, nil
		}
	}
	p.remove(ctx, remover)
	return p.code(), nil
}

// countTo is how many rows of a table are counted at most.
func (p *purging) countTo() int {
	if p.flags.countLimit.set {
		return p.flags.countLimit.v
	}
	return defaultCountLimit
}

// fail ends the purge before its first batch, by an error or by a signal.
func (p *purging) fail(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		p.entry.Stop = report.Signal
	} else {
		p.entry.Stop, p.entry.Error = report.Failed, errorOf(err)
	}
	return exitFailed // the signal's code comes before it
}

// preview says what is to go, to who is asked and to the log of who is not.
func (p *purging) preview() error {
	lines, err := p.entry.Preview()
	if err != nil {
		return err
	}
	p.out.tell("all rows of %q are to go from these tables:", p.entry.Tenant)
	for _, line := range lines {
		p.out.tell("%s", line)
	}
	return nil
}

// confirm wants the tenant's name typed, letter by letter.
func (p *purging) confirm() (bool, error) {
	p.out.release()
	return p.askFor(p.interrupt.soft, "type the tenant's name to remove these rows for ever: ", p.flags.tenant.v)
}
