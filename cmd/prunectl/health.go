package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
)

// quietFor is how long a receiver had no success that is named as quiet.
const quietFor = 24 * time.Hour

// installedSQL finds the component domain_events by the ledger of its migrations: a table of that name alone may be
// somebody else's.
const installedSQL = `
SELECT count(*) = 2 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname IN ('domain_events', 'prunectl_domain_events_migrations')`

// eventHealth says how the deliveries stand where a sweep is over the events of the component domain_events, once for each
// schema. It is asked beside the work: what cannot be read is said, and fails nothing.
func (s *session) eventHealth(ctx context.Context, limit int) {
	var seen []string
	for _, sw := range s.sweeps {
		schema := sw.Table.Schema
		if sw.Table.Table != "domain_events" || slices.Contains(seen, schema) {
			continue
		}
		seen = append(seen, schema)
		var installed bool
		err := s.read(ctx, sw, func(tx pgx.Tx) error { return tx.QueryRow(ctx, installedSQL, schema).Scan(&installed) })
		if err != nil || !installed {
			continue
		}
		s.report.Health = append(s.report.Health, s.healthOf(ctx, sw, min(limit, events.MaxHealth)))
	}
}

func (s *session) healthOf(ctx context.Context, sw policy.Sweep, limit int) report.EventHealth {
	store := events.New(events.Options{Schema: sw.Table.Schema})
	out := report.EventHealth{Schema: sw.Table.Schema}
	var h domainevents.Health
	err := s.read(ctx, sw, func(tx pgx.Tx) (err error) {
		h, err = store.Health(ctx, tx, limit)
		return err
	})
	if err != nil {
		out.Error = errorOf(err)
	} else {
		out.Dead, out.Owed, out.Lapsed, out.Parked = bounded(h.Dead), bounded(h.Owed), bounded(h.Lapsed), bounded(h.Parked)
		if !h.OldestOwed.IsZero() {
			out.OldestOwed = utc(&h.OldestOwed)
		}
		out.Unknown, out.UnknownIsFloor = []report.UnknownPolicy{}, h.UnknownAtLeast
		for _, word := range slices.Sorted(maps.Keys(h.Unknown)) {
			out.Unknown = append(out.Unknown, report.UnknownPolicy{Policy: string(word), Events: h.Unknown[word]})
		}
	}
	since := s.now.Add(-quietFor)
	var quiet []domainevents.Receiver
	err = s.read(ctx, sw, func(tx pgx.Tx) (err error) {
		quiet, err = store.Quiet(ctx, tx, since)
		return err
	})
	switch {
	case err == nil:
		out.Quiet, out.QuietSince = []report.QuietReceiver{}, &since
		for _, r := range quiet {
			out.Quiet = append(out.Quiet, report.QuietReceiver{Receiver: r.Name, LastSuccess: r.LastSuccess.UTC()})
		}
	case out.Error == nil:
		out.Error = errorOf(err)
	}
	s.warned = s.warned || out.Error != nil
	return out
}

func bounded(c domainevents.Count) *report.Bounded {
	return &report.Bounded{Count: c.N, IsFloor: c.AtLeast}
}
