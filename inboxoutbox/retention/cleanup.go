package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/inboxoutbox"
	store "github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// CleanupOptions are those of a cleanup. The zero CleanupOptions are of use.
type CleanupOptions struct {
	Schema string // of the tables; inboxoutbox.DefaultSchema when empty
	By     string // who records the policy, where there is none yet; "": the role of the session
	Budget policy.Budget
	Drain  drain.Options
}

// Cleanup agrees on the settings, see [Agree], and then drains the sweeps of [Sweeps], the
// oldest rows first, in bounded batches that are each committed. It never replaces a
// recorded policy: a program that is refused must not sweep. A policy that takes the place of
// this one while the sweeps run is found by the next cleanup. Where another sweeper is at work
// on one of the ledgers, that one is left to it, and its report says busy.
//
// One ledger that fails does not stop the others. The error joins what they failed with, see
// [drain.RunAll]; the report is exact beside it.
func Cleanup(ctx context.Context, pool *pgxpool.Pool, settings inboxoutbox.Settings, o CleanupOptions) (CleanupReport, error) {
	report := CleanupReport{Schema: cmp.Or(o.Schema, inboxoutbox.DefaultSchema)}
	agreed, err := Agree(ctx, pool, report.Schema, settings, Options{By: o.By})
	if err != nil {
		return report, err
	}
	report.Policy, report.Action = agreed.Policy, agreed.Action
	db := postgres.Pool(pool)
	server, err := postgres.Identify(ctx, db)
	if err != nil {
		return report, fmt.Errorf("clean up: %w", err)
	}
	var (
		drains []drain.Sweep
		errs   []error
	)
	for _, s := range Sweeps(report.Schema, settings) {
		l := Ledger{Name: s.Name, Window: s.Window, Cutoff: s.Window.Cutoff(server.Now)}
		arms, err := postgres.Open(ctx, db, s, postgres.Options{OneSweeper: true})
		if err != nil {
			l.Report.Stop, l.Report.Err = drain.StopRefused, err
			errs = append(errs, fmt.Errorf("sweep %s: %w", s.Name, err))
		} else {
			drains = append(drains, drain.SweepOf(s, arms, server.Now))
			l.Index = arms[0].Index()
		}
		report.Ledgers = append(report.Ledgers, l)
	}
	done, err := drain.RunAll(ctx, drains, o.Budget, o.Drain)
	errs = append(errs, err)
	for _, d := range done {
		for i := range report.Ledgers {
			if report.Ledgers[i].Name == d.Name {
				report.Ledgers[i].Report = d.Report
			}
		}
	}
	if err := report.look(ctx, pool); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return report, fmt.Errorf("clean up: %w", err)
	}
	return report, nil
}

// look counts what is there now.
func (r *CleanupReport) look(ctx context.Context, pool *pgxpool.Pool) error {
	args := []any{policy.DefaultSince}
	for _, l := range r.Ledgers {
		args = append(args, l.Cutoff.Time())
	}
	var due, within [3]int
	row := pool.QueryRow(ctx, render(r.Schema).left, append(args, int64(countBound)+1)...)
	if err := row.Scan(&due[0], &within[0], &due[1], &within[1], &due[2], &within[2]); err != nil {
		return fmt.Errorf("after the cleanup: count what is left: %w", err)
	}
	h, err := store.New(store.Options{Schema: r.Schema}).Health(ctx, pool, countBound)
	if err != nil {
		return fmt.Errorf("after the cleanup: %w", err)
	}
	for i := range r.Ledgers {
		l := &r.Ledgers[i]
		l.Counted, l.Left, l.Within = true, bounded(due[i]), bounded(within[i])
		switch l.Name {
		case inbox:
			l.Held, l.Oldest = h.Unfinished, h.OldestUnfinished
		case outbox:
			l.Held, l.Oldest = h.Undelivered, h.Waiting
		case leases: // what is in force is what is within its time
			l.Held, l.Within = l.Within, inboxoutbox.Count{}
		}
	}
	return nil
}

// CleanupReport is what a cleanup did, ledger by ledger, and what it left.
type CleanupReport struct {
	Schema  string
	Policy  Policy // that the ledgers were swept by
	Action  Action // what was done to agree on it
	Ledgers []Ledger
}

// Ledger is what a cleanup did to one of the tables.
type Ledger struct {
	Name   string        // inbox, outbox or leases
	Window policy.Window // at_once for leases
	Cutoff policy.Cutoff
	Index  string // that it was swept through
	// Report says how many rows were removed, how many somebody else had locked, and why it
	// ended.
	Report drain.Report

	// Counted says that the numbers below were read, after the sweep and up to a bound.
	Counted bool
	// Held counts what never goes, whatever its age: inbox rows that are not completed, outbox
	// records that are not delivered, leases in force. Oldest is since when the first of them
	// waits, in UTC: zero where none does, and for leases.
	Held   inboxoutbox.Count
	Oldest time.Time
	Within inboxoutbox.Count // finished, and kept because their window has not passed
	Left   inboxoutbox.Count // due, and still there: Report.Stop says why
}

// Drained reports whether nothing due was left behind in any ledger.
func (r CleanupReport) Drained() bool {
	for _, l := range r.Ledgers {
		if !l.Report.Drained() {
			return false
		}
	}
	return len(r.Ledgers) > 0
}
