package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/internal/pgserver"
)

const (
	demoRows    = 200_000
	demoLeast   = 1_000
	demoCleanup = 15 * time.Second
)

type demoFlags struct {
	rows *value[int]
	keep bool
}

func (a *app) demoCommand() *cli.Command {
	f := &demoFlags{rows: number()}
	return &cli.Command{
		Name:      "demo",
		Usage:     "a throw-away database, a backlog, a sweep, explained",
		UsageText: "prunectl demo [flags]",
		Description: "Starts a PostgreSQL server of its own from the programs of this machine (or fetches some), fills it with a\n" +
			"history of runs and their events, and shows what the usual DELETE would have taken, plan, sweep, what was\n" +
			"held back and why, and the plan of the statement. Nothing is left behind, also after Ctrl-C.\n\n" +
			"Neither DATABASE_URL nor the PG* variables are read.\n\n" +
			"Exit codes: 0 done, 1 failed, 2 wrong usage, 129, 130, 143 by signal.",
		Flags: []cli.Flag{
			flag(f.rows, "fill in `N` events (default: 200000)", "rows"),
			flag(a.dsn, "use the server at `DSN`: a database of the demo's own is made there, and dropped", "dsn"),
			sign(&f.keep, "keep that database (only with --dsn: a server of the demo's own ends with it)", "keep"),
		},
		Action: a.action(func(*cli.Context) error { return a.demo(f) }, nil),
	}
}

// demo runs the demo and leaves nothing behind, whatever ends it.
func (a *app) demo(f *demoFlags) error {
	rows := demoRows
	if f.rows.set {
		rows = f.rows.v
	}
	switch {
	case rows < demoLeast:
		return usagef("--rows: %d events show nothing; write %d or more", rows, demoLeast)
	case f.keep && !a.dsn.set:
		return usagef("--keep needs --dsn: a server of the demo's own ends with it")
	}
	defer hidePGVariables()()

	d := &demo{app: a, rows: rows}
	err := d.run(a.interrupt.soft, f.keep)
	err = errors.Join(err, d.cleanup())
	if code := a.interrupt.code(); code != 0 && (err == nil || errors.Is(err, context.Canceled)) {
		a.out.say("stopped by %s; nothing is left behind (exit %d)", a.interrupt.name(), code)
		return reported(code)
	}
	return err
}

func (d *demo) run(ctx context.Context, keep bool) error {
	place := d.start
	if d.app.dsn.set {
		place = func(ctx context.Context) error { return d.borrow(ctx, keep) }
	}
	if err := place(ctx); err != nil {
		return err
	}
	return d.show(ctx)
}

// cleanup takes away what the demo made, the last first. It does not take the context of the run, which may be over.
func (d *demo) cleanup() error {
	ctx, cancel := context.WithTimeout(context.Background(), demoCleanup)
	defer cancel()
	var errs []error
	for _, end := range slices.Backward(d.ends) {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}

// hidePGVariables takes the PG* variables out of the environment, which the driver reads by itself, and returns what puts
// them back.
func hidePGVariables() (restore func()) {
	var hidden [][2]string
	for _, entry := range os.Environ() {
		name, v, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "PG") && name != pgserver.EnvBinDir {
			hidden = append(hidden, [2]string{name, v})
			_ = os.Unsetenv(name)
		}
	}
	return func() {
		for _, h := range hidden {
			_ = os.Setenv(h[0], h[1])
		}
	}
}
