// Command run is the long form of the torture: see package torture. It starts a server of its own, or takes one, prints how
// far it is on stderr and at last the report on stdout, and exits with 1 where anything is violated. A signal ends it early,
// with the report; a second one at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/torture"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends it at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// usageError is a command line that is wrong: nothing was started.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// startPatience is for the server to start.
const startPatience = 2 * time.Minute

// run tortures and writes the report to out; progress goes to tell. Violations are an error, after the report.
func run(ctx context.Context, args []string, out, tell io.Writer) (err error) {
	f := flag.NewFlagSet("torture", flag.ContinueOnError)
	f.SetOutput(tell)
	events := f.Int64("row-events", 10_000_000, "end after this `number` of rows inserted, updated and deleted")
	most := f.Duration("max-time", time.Hour, "end after this `time`, however many there were")
	random := f.Uint64("random", 0, "repeat the torture of this random `number`; 0: a new one")
	dsn := f.String("dsn", "", "torture a database that is made for it on the server at this `DSN`, as a superuser; else on a server of its own")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return usageError{err.Error()}
	}
	switch {
	case f.NArg() > 0:
		return usageError{fmt.Sprintf("%q is no flag", f.Arg(0))}
	case *events <= 0 || *most <= 0:
		return usageError{"-row-events and -max-time are above zero: a torture has an end"}
	}
	if *random == 0 {
		*random = 1 + rand.Uint64N(math.MaxUint64)
	}
	if *dsn == "" {
		start, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		server, err := pgserver.Start(start, pgserver.Options{Settings: torture.Settings})
		if err != nil {
			return fmt.Errorf("start a server to torture on: %w", err)
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		*dsn = server.DSN("postgres")
	}
	r, err := torture.Run(ctx, torture.Options{
		DSN: *dsn, Random: *random, RowEvents: *events, MaxTime: *most,
		Tell: func(format string, a ...any) { fmt.Fprintf(tell, format+"\n", a...) },
	})
	if err != nil {
		return err
	}
	if err := r.Write(out); err != nil {
		return err
	}
	if n := len(r.Violations()); n > 0 {
		return fmt.Errorf("%d violations; repeat it with -random %d", n, *random)
	}
	return nil
}
