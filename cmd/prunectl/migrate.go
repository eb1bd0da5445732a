package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// migrateFlags are those of the words of migrate. They may stand before the word and behind it.
type migrateFlags struct {
	component *value[[]string]
	schema    *value[string]
	printSQL  bool
}

func (a *app) migrateCommand() *cli.Command {
	f := &migrateFlags{component: names(), schema: textValue()}
	own := func() []cli.Flag {
		return []cli.Flag{
			flag(f.component, "only these components, `NAME,NAME` (default: all: "+strings.Join(migrations.Components(), ", ")+")", "component"),
			flag(f.schema, "their `SCHEMA` (default: each one's own: "+defaultSchemas()+")", "schema"),
			a.dsnFlag(), a.logFlag(),
		}
	}
	printing := func() []cli.Flag {
		return append(own(), sign(&f.printSQL, "print the SQL and run nothing; no server is needed", "print"))
	}
	word := func(name, usage, long string, flags []cli.Flag, do func(*migrateFlags) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, UsageText: "prunectl migrate " + name + " [flags]", Description: long + "\n\n" + migrateCodes, Flags: flags,
			Action: a.action(func(*cli.Context) error {
				if a.logFormat.v == "json" {
					a.out.jsonLog()
				}
				if err := knownComponents(f.component.v); err != nil {
					return err
				}
				return do(f)
			}, nil),
		}
	}
	words := []*cli.Command{
		word("up", "apply what is missing", "Applies what is missing, oldest first, and mends indexes that are missing or not valid. Writers are not blocked.", printing(), a.migrateUp),
		word("down", "take the newest version back, that one only", "Takes the newest installed version back. Tables that hold rows stay: no flag drops data.", printing(), a.migrateDown),
		word("status", "say what is installed", "Reads what is installed; it changes nothing.", own(), a.migrateStatus),
	}
	c := &cli.Command{
		Name: "migrate", Usage: "install the tables that prunectl owns: up, down, status",
		UsageText:   "prunectl migrate up|down|status [flags]",
		Description: "Installs the components of prunectl: their tables and the indexes that their sweeps walk.\n\n" + migrateCodes,
		Flags:       printing(), Subcommands: words,
	}
	c.Action = func(ctx *cli.Context) error {
		known := commandNames(words)
		if !ctx.Args().Present() {
			return usagef("migrate needs a word; write migrate %s", strings.Join(known, ", migrate "))
		}
		arg := ctx.Args().First()
		return usagef("migrate does not know %s%s", shown(arg), suggestion(arg, known, "", "write migrate "+strings.Join(known, ", migrate ")))
	}
	return c
}

const migrateCodes = `Exit codes:
  0    done, also where there was nothing to do
  1    failed: what was applied before is printed, and stays
  2    wrong usage: nothing was touched
  129, 130, 143  SIGHUP, SIGINT, SIGTERM: the version in hand was given up; run it again`

// knownComponents refuses a name that is no component's.
func knownComponents(names []string) error {
	known := migrations.Components()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return usagef("--component: there is no component %s%s", shown(name), suggestion(name, known, "", "there is "+strings.Join(known, ", ")))
		}
	}
	return nil
}

// defaultSchemas says where the components go that do not go to public.
func defaultSchemas() string {
	text := "public"
	for _, name := range migrations.Components() {
		if schema := migrations.DefaultSchema(name); schema != "public" {
			text += ", and " + schema + " for " + name
		}
	}
	return text
}

// components are those that are meant.
func (f *migrateFlags) components() []string {
	if f.component.set {
		return f.component.v
	}
	return migrations.Components()
}

func (a *app) migrateUp(f *migrateFlags) error {
	if f.printSQL {
		return a.printMigrations(f, f.components(), migrations.DirectionUp)
	}
	return a.eachMigrator(f, f.components(), func(ctx context.Context, name string, m *migrations.Migrator) error {
		applied, err := m.Up(ctx)
		for _, v := range applied {
			what := "applied"
			if v.Rebuilt {
				what = "applied anew"
			}
			fmt.Fprintf(a.out.stdout, "%s: %s %s in %s\n", name, v.Version, what, report.Took(v.Duration))
		}
		if err == nil && len(applied) == 0 {
			fmt.Fprintf(a.out.stdout, "%s: up to date\n", name)
		}
		return err
	})
}

func (a *app) migrateDown(f *migrateFlags) error {
	// What was installed last goes first.
	names := slices.Clone(f.components())
	slices.Reverse(names)
	if f.printSQL {
		return a.printMigrations(f, names, migrations.DirectionDown)
	}
	return a.eachMigrator(f, names, func(ctx context.Context, name string, m *migrations.Migrator) error {
		v, err := m.Down(ctx)
		switch {
		case err != nil:
		case v == nil:
			fmt.Fprintf(a.out.stdout, "%s: not installed\n", name)
		default:
			fmt.Fprintf(a.out.stdout, "%s: %s taken back in %s\n", name, v.Version, report.Took(v.Duration))
		}
		return err
	})
}

func (a *app) migrateStatus(f *migrateFlags) error {
	var rows [][]string
	err := a.eachMigrator(f, f.components(), func(ctx context.Context, name string, m *migrations.Migrator) error {
		s, err := m.Status(ctx)
		if err != nil {
			return err
		}
		installed, applied := "-", "-"
		if s.Installed != nil {
			installed, applied = fmt.Sprint(*s.Installed), report.Stamp(s.Applied)
		}
		rows = append(rows, []string{name, printable(s.Schema), installed, fmt.Sprint(s.Known), s.State, applied})
		return nil
	})
	if len(rows) > 0 {
		if e := report.MigrationTable(a.out.stdout, rows); err == nil {
			err = e
		}
	}
	return err
}

func (a *app) printMigrations(f *migrateFlags, names []string, d migrations.Direction) error {
	for i, name := range names {
		text, err := migrations.SQL(name, f.schema.v, d)
		if err != nil {
			return usagef("%w", err)
		}
		if i > 0 {
			text = "\n" + text
		}
		fmt.Fprint(a.out.stdout, text)
	}
	return nil
}

// eachMigrator connects and goes from component to component; the first that fails ends it.
func (a *app) eachMigrator(f *migrateFlags, names []string, do func(context.Context, string, *migrations.Migrator) error) error {
	ctx := a.interrupt.soft // a version that is given up can be applied again, so the first signal gives it up
	config, err := a.connConfig()
	if err != nil {
		return err
	}
	pool, err := dial(ctx, config)
	if err != nil {
		return err
	}
	server, err := postgres.Identify(ctx, postgres.Pool(pool))
	pool.Close()
	if err != nil {
		return err
	}
	a.out.tell("%s", whereabouts(server))
	for _, name := range names {
		m, err := migrations.New(config.ConnConfig, migrations.Options{Component: name, Schema: f.schema.v})
		if err != nil {
			if errors.Is(err, migrations.ErrSchema) {
				return usagef("--schema: %w", err)
			}
			return err
		}
		err = do(ctx, name, m)
		_ = m.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
