package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// show fills the database and shows what happens to it, step by step.
func (d *demo) show(ctx context.Context) error {
	pool, err := dial(ctx, d.config)
	if err != nil {
		return err
	}
	defer pool.Close()
	text, err := policyfile.Ready("run_events")
	if err != nil {
		return err
	}
	file, err := policyfile.Parse("run_events.yaml", text)
	if err != nil {
		return err
	}
	d.out.tell("filling in a history of %s events", report.Number(d.rows))
	if err := d.fill(ctx, pool); err != nil {
		return err
	}
	window := file.Sweeps[0].Window
	interval := fmt.Sprintf("%d days", window.Duration()/(24*time.Hour))
	before, err := d.look(ctx, pool, interval)
	if err != nil {
		return err
	}

	d.print("1. A history of %s events of %s runs over %d days; %d of the runs are live.\n\n",
		report.Number(before.events), report.Number(demoRuns), demoDays, before.liveRuns)
	d.print("2. DELETE FROM run_events WHERE created_at < now() - interval '%s' would have taken %s rows,\n   among them %s events of %d runs that are still live.\n\n",
		interval, report.Number(before.past), report.Number(before.pastLive), before.liveRunsHit)
	d.print("3. prunectl plan, with a policy that keeps events for %s and for as long as their run lives:\n", window)
	if err := d.step(ctx, pool, file, report.Planning, func(s *session) error {
		s.count(ctx, planFlags{limit: d.rows + 1, rows: policy.NoCeiling})
		return nil
	}); err != nil {
		return err
	}
	d.print("\n4. prunectl sweep:\n")
	if err := d.step(ctx, pool, file, report.Sweeping, func(s *session) error {
		return s.carryOut(ctx, &sweepFlags{maxTime: duration(), maxRows: number()})
	}); err != nil {
		return err
	}
	after, err := d.look(ctx, pool, interval)
	if err != nil {
		return err
	}
	d.print("\n5. Events of live runs: %s before, %s after. Of all events: %s before, %s after.\n",
		report.Number(before.live), report.Number(after.live), report.Number(before.events), report.Number(after.events))
	if before.live != after.live {
		return fmt.Errorf("%d events of live runs are gone; please report this", before.live-after.live)
	}
	return d.explain(ctx, pool, file)
}

// step is a command of its own on the demo's database, and prints what that would print.
func (d *demo) step(ctx context.Context, pool *pgxpool.Pool, file *policyfile.File, command string, do func(*session) error) error {
	s := &session{app: d.app, report: report.New(command, version()), file: file, sweeps: file.Sweeps, pool: pool, db: postgres.Pool(pool)}
	start := time.Now()
	server, err := postgres.Identify(ctx, s.db)
	if err != nil {
		return err
	}
	s.now = server.Now
	s.report.Now = &server.Now
	if err := do(s); err != nil {
		return err
	}
	s.finish(start, exitDone)
	if err := s.report.Table(d.out.stdout); err != nil {
		return err
	}
	for _, e := range s.report.Sweeps {
		if e.Error != nil {
			return fmt.Errorf("sweep %s: %s", e.Name, e.Error.Message)
		}
	}
	return ctx.Err()
}

// explain prints the plan of the sweep's statement.
func (d *demo) explain(ctx context.Context, pool *pgxpool.Pool, file *policyfile.File) error {
	db := postgres.Pool(pool)
	server, err := postgres.Identify(ctx, db)
	if err != nil {
		return err
	}
	arms, err := postgres.Open(ctx, db, file.Sweeps[0], postgres.Options{OneSweeper: true})
	if err != nil {
		return err
	}
	for _, a := range arms {
		spec := a.Spec()
		plan, err := a.Explain(ctx, spec.Window.Cutoff(server.Now), file.Sweeps[0].WithDefaults().Batch.Limit)
		if err != nil {
			return err
		}
		d.print("\n6. The plan of its statement, through the index %s (prunectl plan --sql prints the statement):\n%s\n", a.Index(), plan)
	}
	return nil
}

func (d *demo) print(format string, args ...any) { fmt.Fprintf(d.out.stdout, format, args...) }
