package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// cli is the command line. The library parses and prints help; it neither exits nor prints errors.
func (a *app) cli() *cli.App {
	var showVersion bool
	root := &cli.App{
		Name:  "prunectl",
		Usage: "remove old rows from PostgreSQL tables: bounded, guarded, and honest about what it did",
		Description: "A policy file says which rows of which tables go, and when. Begin with prunectl demo, then write\n" +
			"a policy, and ask check and plan before the first sweep.\n\n" +
			"The connection is --dsn, else $DATABASE_URL, else the PG* variables. stdout is the result and\n" +
			"nothing else; progress, warnings and errors go to stderr.\n\n" + exitCodes,
		UsageText:       "prunectl COMMAND [flags]",
		Writer:          a.out.stdout,
		ErrWriter:       a.out.stdout, // the library writes no errors: see OnUsageError and ExitErrHandler
		HideVersion:     true,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {},
		Flags:           append(a.reporting(), &cli.BoolFlag{Name: "version", Usage: "print the version", Destination: &showVersion, DisableDefaultText: true}),
		Commands:        []*cli.Command{a.sweepCommand(), a.planCommand(), a.statusCommand(), a.checkCommand(), a.eventsCommand(), a.purgeCommand(), a.migrateCommand(), a.demoCommand()},
	}
	root.Before = func(*cli.Context) error {
		if showVersion {
			a.acted = true
			fmt.Fprintln(a.out.stdout, "prunectl", version())
			return &codeError{exitDone, errReported}
		}
		return nil
	}
	root.Action = func(c *cli.Context) error {
		if c.Args().Present() {
			return usagef("unknown command %s%s", shown(c.Args().First()),
				suggestion(c.Args().First(), commandNames(root.Commands), "", "write prunectl --help"))
		}
		return usagef("no command is given; write %s, or prunectl --help", strings.Join(commandNames(root.Commands), ", "))
	}
	root.OnUsageError = usageError
	prepare(root.Commands)
	return root
}

// prepare gives every command the same manners.
func prepare(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
		prepare(c.Subcommands)
	}
}

func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}

// action wraps what a command does: it takes no arguments, and no flag that means nothing to it.
func (a *app) action(do func(*cli.Context) error, instead func(arg string) string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			arg := c.Args().First()
			fix := "leave it out"
			if instead != nil {
				fix = instead(arg)
			}
			if secretive(arg) {
				fix = "write --dsn"
			}
			return usagef("%s takes no arguments, got %s; %s", commandPath(c), shown(arg), fix)
		}
		if name := foreign(c); name != "" {
			return usagef("%s means nothing to %s; leave it out", dashed(name), commandPath(c))
		}
		a.acted = true
		return do(c)
	}
}

// foreign is a flag that was given in front of the command and that the command does not have, "" for none.
func foreign(c *cli.Context) string {
	own := flagNames(c.Command.Flags)
	for _, outer := range c.Lineage()[1:] {
		if outer.Command == nil {
			continue
		}
		given := outer.LocalFlagNames()
		for _, f := range outer.Command.Flags {
			if name := f.Names()[0]; slices.Contains(given, name) && !slices.Contains(own, name) {
				return name
			}
		}
	}
	return ""
}

// commandPath is the command as a person writes it: "migrate up".
func commandPath(c *cli.Context) string { return strings.TrimPrefix(c.Command.HelpName, "prunectl ") }

func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}
