package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prunectl/prunectl/bench/internal/page"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/study"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// usageError is a command line that is wrong: nothing was started.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// run measures, prints the tables to out, and writes the report. Progress goes to tell. A bound on costs that does not hold is
// an error, after all that.
func run(ctx context.Context, args []string, out, tell io.Writer) (err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(tell)
	short := f.Bool("short", false, "a twentieth of the rows, one round of times: some two minutes")
	dir := f.String("out", "bench/results", "write bench.json and bench.html into this `folder`")
	only := f.String("only", "", "measure these `parts` alone: "+strings.Join(study.Parts(), ", ")+"; with commas between them")
	dsn := f.String("dsn", "", "measure on the server at this `DSN`, as a superuser; else on one of its own")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return usageError{err.Error()}
	}
	if f.NArg() > 0 {
		return usageError{fmt.Sprintf("%q is no flag", f.Arg(0))}
	}
	var parts []string
	if *only != "" {
		parts = strings.Split(*only, ",")
	}
	for _, p := range parts {
		if !slices.Contains(study.Parts(), p) {
			return usageError{fmt.Sprintf("-only: %q is no part; the parts are %s", p, strings.Join(study.Parts(), ", "))}
		}
	}
	// Before an hour is spent: a folder that cannot be written to is found now.
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	start := time.Now()
	progress := func(format string, a ...any) {
		_, _ = fmt.Fprintf(tell, "%6s  %s\n", time.Since(start).Round(time.Second), fmt.Sprintf(format, a...))
	}
	p, err := place.Open(ctx, place.Options{DSN: *dsn, Tell: progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	size := study.Full()
	if *short {
		size = study.Short()
	}
	b := &study.Bench{Place: p, Size: size, Tell: progress}
	r, err := b.Everything(ctx, parts...)
	if err != nil {
		return err
	}
	r.Command = command(*short, *only, *dsn != "")
	if err := page.Tables(out, r); err != nil {
		return err
	}
	if err := page.Write(*dir, r); err != nil {
		return err
	}
	if broken := r.Broken(); len(broken) > 0 {
		return fmt.Errorf("%d bounds on costs do not hold, the first: %s: %s, wanted %s", len(broken), broken[0].Work, broken[0].Got, broken[0].Want)
	}
	return nil
}

// command is how this was called, without what is of this machine alone.
func command(short bool, only string, elsewhere bool) string {
	words := []string{"go run ./bench"}
	if short {
		words = append(words, "-short")
	}
	if only != "" {
		words = append(words, "-only", only)
	}
	if elsewhere {
		words = append(words, "-dsn ...")
	}
	return strings.Join(words, " ")
}
