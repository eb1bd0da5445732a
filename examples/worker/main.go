package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/drain"
)

const usage = "worker setup | record N | run [flags] | show; DATABASE_URL says where"

func main() {
	if err := command(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	dsn := os.Getenv("DATABASE_URL")
	if len(args) == 0 || dsn == "" {
		return errors.New("usage: " + usage)
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	switch verb, args := args[0], args[1:]; {
	case verb == "setup" && len(args) == 0:
		return setup(ctx, pool)
	case verb == "record" && len(args) == 1:
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return fmt.Errorf("record %s: it is a number of events, from 1", args[0])
		}
		return record(ctx, pool, n)
	case verb == "run":
		return run(ctx, pool, args)
	case verb == "show" && len(args) == 0:
		return show(ctx, pool, os.Stdout)
	}
	return errors.New("usage: " + usage)
}

// settings are those of `worker run`.
type settings struct {
	name     string        // by which it claims
	batch    int           // deliveries claimed at once
	lease    time.Duration // longer than a batch takes; what a killed worker had claimed is free again after it
	poll     time.Duration // between two looks for work that found none
	window   time.Duration // how long an event is kept that says nothing else
	interval time.Duration // between two sweeps
	sweep    bool
}

func run(ctx context.Context, pool *pgxpool.Pool, args []string) error {
	var s settings
	flags := flag.NewFlagSet("worker run", flag.ContinueOnError)
	flags.StringVar(&s.name, "name", fmt.Sprintf("worker-%d", os.Getpid()), "claims by this `name`, which is this worker's alone")
	flags.IntVar(&s.batch, "batch", 20, "claims `N` deliveries at once")
	flags.DurationVar(&s.lease, "lease", time.Minute, "claims them for this long")
	flags.DurationVar(&s.poll, "poll", time.Second, "looks for work this often where there is none")
	flags.DurationVar(&s.window, "window", domainevents.DefaultWindow, "keeps an event for this long that says nothing else")
	flags.DurationVar(&s.interval, "interval", drain.DefaultInterval, "sweeps this often when idle")
	flags.BoolVar(&s.sweep, "sweep", true, "sweeps when idle")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.poll <= 0 {
		return fmt.Errorf("-poll %s: it is above zero", s.poll)
	}
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	go func() {
		got := <-signals
		signal.Stop(signals) // a second one ends it at once
		log.Printf("%s: ending after the batch in hand", got)
		close(stop)
	}()
	w, err := newWorker(ctx, pool, s, stop)
	if err != nil {
		return err
	}
	w.run(ctx)
	return nil
}
