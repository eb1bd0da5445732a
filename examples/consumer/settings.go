package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/policy"
)

const day = 24 * time.Hour

// settings are those of `consumer run`.
type settings struct {
	schema     string // of the component
	name       string
	listen     string        // where readiness is answered
	batch      int           // messages or records in hand at once
	hold       time.Duration // of a lock, a claim and a lease; longer than a batch takes
	ackTimeout time.Duration // after which the broker delivers again what was not acknowledged
	poll       time.Duration // between two looks for work that found none
	recheck    time.Duration // how long an answer about readiness is kept

	policy  inboxoutbox.Settings
	replace retention.Options
}

// replayWindow is how late the same event can come to this bank. What is sent again by people or by the sender is a new
// message, which the broker delivers again in its turn: so the redelivery is part of all three.
var replayWindow = inboxoutbox.Replay{
	Redelivery: 4 * day,       // the broker drops a message when it has tried for so long
	Manual:     (3 + 4) * day, // people play again what is up to three days old
	Remote:     (1 + 4) * day, // a sender gives up after a day
}

// parse reads the flags, and refuses what is wrong with all of them.
func parse(schema string, args []string) (settings, error) {
	s := settings{
		schema: schema, name: fmt.Sprintf("consumer-%d", os.Getpid()), hold: time.Minute, ackTimeout: 30 * time.Second,
		poll: time.Second, recheck: 5 * time.Second, policy: inboxoutbox.Settings{Replay: replayWindow}.WithDefaults(),
	}
	flags := flag.NewFlagSet("consumer run", flag.ContinueOnError)
	flags.StringVar(&s.name, "name", s.name, "holds its leases by this `name`")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8080", "answers /readyz and /healthz at this `address`")
	flags.IntVar(&s.batch, "batch", 20, "has `N` messages in hand at once")
	span := func(d *time.Duration, name, what string) { flags.Var((*span)(d), name, what) }
	span(&s.hold, "hold", "locks, claims and leases for `TIME`")
	span(&s.ackTimeout, "ack-timeout", "is given a message again that it does not acknowledge within `TIME`")
	span(&s.poll, "poll", "looks for work every `TIME` where there is none")
	span(&s.recheck, "recheck", "asks the database again whether all is well when the last answer is `TIME` old")
	span(&s.policy.InboxWindow, "inbox-window", "keeps a completed event in the inbox for `TIME`")
	span(&s.policy.OutboxWindow, "outbox-window", "keeps a delivered record in the outbox for `TIME`")
	span(&s.policy.CleanupInterval, "interval", "cleans up every `TIME`")
	flags.IntVar(&s.policy.Batch, "cleanup-batch", s.policy.Batch, "looks at `N` rows in one transaction of a cleanup")
	span(&s.policy.Replay.Redelivery, "redelivery", "the broker delivers a message again for `TIME`")
	span(&s.policy.Replay.Manual, "manual", "by the hand of people an event can come again for `TIME`")
	span(&s.policy.Replay.Remote, "remote", "by its sender an event can come again for `TIME`")
	flags.BoolVar(&s.replace.Replace, "replace-policy", false, "its policy takes the place of another one that is recorded")
	flags.BoolVar(&s.replace.Yes, "yes", false, "also where rows become due by it")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("run %s: it has flags only", flags.Arg(0))
	case s.batch < 1:
		return s, fmt.Errorf("-batch %d: it is from 1", s.batch)
	}
	s.replace.By = s.name
	return s, s.policy.Check()
}

// span is a duration as the policy files write it: 7d, 36h, 10s.
type span time.Duration

func (s *span) String() string { return policy.FormatDuration(time.Duration(*s)) }

func (s *span) Set(text string) error {
	d, err := policy.ParseDuration(text)
	*s = span(d)
	return err
}
