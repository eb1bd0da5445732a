package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/internal/report"
)

// eventsFlags are those of the words of events. They may stand before the word and behind it.
type eventsFlags struct {
	schema, receiver, kind *value[string]
	event, limit           *value[int]
	all                    bool
}

func (a *app) eventsCommand() *cli.Command {
	f := &eventsFlags{schema: textValue(), receiver: textValue(), kind: textValue(), event: number(), limit: number()}
	own := func(more ...cli.Flag) []cli.Flag {
		return append(append([]cli.Flag{
			flag(f.schema, "the `SCHEMA` of the component domain_events (default: public)", "schema"),
			flag(f.event, "the event with this `ID`", "event"),
		}, more...), a.dsnFlag(), a.outputFlag(), a.quietFlag(), a.logFlag())
	}
	choosing := func() []cli.Flag {
		return own(
			flag(f.receiver, "dead letters of the receiver `NAME`", "receiver"),
			flag(f.kind, "dead letters of events of the type `NAME`", "type"),
			sign(&f.all, "every dead letter: without it something must be chosen", "all"),
			flag(f.limit, fmt.Sprintf("reopen `N` deliveries at most, those of the oldest events first (default, and the most: %d)", domainevents.MaxRequeue), "limit"),
		)
	}
	words := []*cli.Command{
		{
			Name: "requeue", Usage: "make dead letters owed again", UsageText: "prunectl events requeue [flags]",
			Description: "Makes dead and orphaned deliveries pending again, in one transaction: due at once, with no attempts. It takes\n" +
				"the lock that the sweep takes, so what is printed as reopened is there, and owed.\n\n" + eventsCodes,
			Flags: choosing(),
			Action: a.action(func(*cli.Context) error {
				filter, err := f.filter()
				if err != nil {
					return err
				}
				return a.run(report.Requeuing, func(s *session) (int, error) { return s.requeue(f.schema.v, filter) })
			}, nil),
		},
		{
			Name: "replay", Usage: "make every delivery of one event owed again", UsageText: "prunectl events replay --event ID [flags]",
			Description: "Makes all deliveries of one event pending again, those that succeeded too, in one transaction. Deliveries\n" +
				"that a worker has claimed are left to it.\n\n" + eventsCodes,
			Flags: own(),
			Action: a.action(func(*cli.Context) error {
				if !f.event.set {
					return usagef("events replay is of one event; write --event ID")
				}
				return a.run(report.Replaying, func(s *session) (int, error) { return s.replay(f.schema.v, int64(f.event.v)) })
			}, nil),
		},
	}
	c := &cli.Command{
		Name: "events", Usage: "reopen deliveries of domain events: requeue, replay", UsageText: "prunectl events requeue|replay [flags]",
		Description: "Reopens deliveries of the component domain_events.\n\n" + eventsCodes, Flags: choosing(), Subcommands: words,
	}
	c.Action = func(ctx *cli.Context) error {
		known := commandNames(words)
		if !ctx.Args().Present() {
			return usagef("events needs a word; write events %s", strings.Join(known, ", events "))
		}
		arg := ctx.Args().First()
		return usagef("events does not know %s%s", shown(arg), suggestion(arg, known, "", "write events "+strings.Join(known, ", events ")))
	}
	return c
}

const eventsCodes = `Exit codes:
  0    done, also where there was nothing to reopen
  1    failed: the event is gone, no server, a read-only server, or the report could not be
       written; what was reopened is printed all the same
  2    wrong usage: nothing was touched
  129, 130, 143  SIGHUP, SIGINT, SIGTERM: what was under way ended, the report is exact`

// filter is what the flags choose. Everything is chosen only where that is said.
func (f *eventsFlags) filter() (domainevents.Filter, error) {
	filter := domainevents.Filter{Event: int64(f.event.v), Receiver: f.receiver.v, Type: f.kind.v, Limit: domainevents.MaxRequeue}
	chosen := f.event.set || f.receiver.set || f.kind.set
	switch {
	case !chosen && !f.all:
		return filter, usagef("events requeue chooses nothing; write --event ID, --receiver NAME or --type NAME, or --all for every dead letter")
	case chosen && f.all:
		return filter, usagef("--all leaves nothing to choose; leave it out, or the flags that choose")
	case f.limit.v > domainevents.MaxRequeue:
		return filter, usagef("--limit: one run reopens %s deliveries at most, in one transaction; run it again for more", report.Number(domainevents.MaxRequeue))
	case f.limit.set:
		filter.Limit = f.limit.v
	}
	return filter, nil
}

func (s *session) requeue(schema string, filter domainevents.Filter) (int, error) {
	return s.reopen(schema, func(ctx context.Context, store *events.Store) (*report.Reopening, error) {
		done, err := store.Requeue(ctx, s.pool, filter)
		r := reopening(done.Reopened)
		r.Gone = append(r.Gone, done.Gone...)
		r.Limited = len(done.Reopened) == filter.Limit
		return r, err
	})
}

func (s *session) replay(schema string, event int64) (int, error) {
	return s.reopen(schema, func(ctx context.Context, store *events.Store) (*report.Reopening, error) {
		done, err := store.Replay(ctx, s.pool, event)
		r := reopening(done.Reopened)
		r.Underway = done.Underway
		if errors.Is(err, domainevents.ErrGone) {
			r.Gone, err = append(r.Gone, event), nil
		}
		return r, err
	})
}

// reopen connects and lets do reopen what it is to, in the one transaction that it has: a first signal lets that end.
func (s *session) reopen(schema string, do func(context.Context, *events.Store) (*report.Reopening, error)) (int, error) {
	server, err := s.connect(s.interrupt.soft, &value[time.Time]{})
	if err != nil {
		return 0, err
	}
	if err := server.Writable(); err != nil {
		return 0, err
	}
	if schema == "" {
		schema = "public"
	}
	if err := s.interrupt.soft.Err(); err != nil {
		return 0, err
	}
	r, err := do(s.interrupt.hard, events.New(events.Options{Schema: schema}))
	if err != nil {
		const undefinedTable = "42P01"
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == undefinedTable {
			return 0, fmt.Errorf("the component domain_events is not installed in schema %s; write --schema, or install it with prunectl migrate up", printable(schema))
		}
		return 0, err
	}
	s.report.Reopening = r
	switch len(r.Gone) {
	case 0:
		return exitDone, nil
	case 1:
		return 0, fmt.Errorf("event %d is gone", r.Gone[0])
	}
	return 0, fmt.Errorf("%s events are gone", report.Number(len(r.Gone)))
}

func reopening(all []domainevents.Reopened) *report.Reopening {
	r := &report.Reopening{Reopened: []report.Reopened{}, Gone: []int64{}}
	of := map[int64]bool{}
	for _, d := range all {
		r.Reopened = append(r.Reopened, report.Reopened{Event: d.Event, Delivery: d.Delivery, Receiver: d.Receiver, Target: d.Target})
		of[d.Event] = true
	}
	r.Events = len(of)
	return r
}
