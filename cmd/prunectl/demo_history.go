package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/migrations"
)

// The history of the demo: runs that began over the last 180 days, each twentieth of them live in one of the live states
// and writing to this day, the others ended within three days; a few of them lost their row since. The numbers are the
// same each time, only the clock moves on.
const (
	demoDays    = 180
	demoRuns    = 1_000
	demoOrphans = 3
)

// historySQL makes the runs. $1 how many, $2 the live states, $3 the terminal ones.
const historySQL = `
CREATE TEMPORARY TABLE history AS
SELECT r.i, 'tenant-' || r.i % 7 AS tenant_id, 'run-' || lpad(r.i::text, 5, '0') AS id, r.live, r.began,
       CASE WHEN r.live THEN now() - interval '1 minute'
            ELSE least(now() - interval '1 minute', r.began + (1 + r.i * 31 % 72) * interval '1 hour') END AS ended,
       CASE WHEN r.live THEN ($2::text[])[1 + r.i / 20 % cardinality($2::text[])] ELSE ($3::text[])[1 + r.i % cardinality($3::text[])] END AS status
  FROM (SELECT i, i % 20 = 0 AS live, now() - interval '1 day' * $4::int * ((i * 7919::bigint % $1::int) + 0.5) / $1::int AS began
          FROM generate_series(1, $1::int) i) r`

// eventsSQL makes their events, in the order of time. $1 how many.
const eventsSQL = `
INSERT INTO run_events (tenant_id, run_id, sequence, type, event, created_at)
SELECT e.tenant_id, e.id, e.sequence, (ARRAY['step-started', 'tool-called', 'tool-answered', 'message', 'step-ended'])[1 + e.sequence % 5],
       jsonb_build_object('text', repeat(md5(e.id || e.sequence), 3)), e.at
  FROM (SELECT h.*, g / $2::int + 1 AS sequence, h.began + (h.ended - h.began) * ((g / $2::int + 0.5) / ($1::float8 / $2::int + 1)) AS at
          FROM generate_series(0, $1::int - 1) g JOIN history h ON h.i = g % $2::int + 1) e
 ORDER BY e.at`

// fill migrates the database and makes the history.
func (d *demo) fill(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := migrations.New(d.config.ConnConfig, migrations.Options{Component: "run_events"})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	if _, err := m.Up(ctx); err != nil {
		return err
	}
	live, terminal := states()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, step := range []struct {
			sql  string
			args []any
		}{
			{historySQL, []any{demoRuns, live, terminal, demoDays}},
			{`INSERT INTO runs (tenant_id, id, status, created_at, updated_at, last_sequence)
			  SELECT tenant_id, id, status, began, ended, $1::int / $2::int + 1 FROM history
			   WHERE live OR i % 20 <> 1 OR i > $3::int * 20 ORDER BY began`, []any{d.rows, demoRuns, demoOrphans}},
			{eventsSQL, []any{d.rows, demoRuns}},
		} {
			if _, err := tx.Exec(ctx, step.sql, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		_, err = pool.Exec(ctx, "VACUUM (ANALYZE) runs, run_events")
	}
	if err != nil {
		return fmt.Errorf("fill in the history: %w", err)
	}
	return nil
}

// states are those of a run, by what they mean to a sweep.
func states() (live, terminal []string) {
	for _, s := range eventlog.States() {
		if s.Terminal() {
			terminal = append(terminal, string(s))
		} else {
			live = append(live, string(s))
		}
	}
	return live, terminal
}

// liveJoin are the events of live runs.
const liveJoin = ` JOIN runs r ON r.tenant_id = e.tenant_id AND r.id = e.run_id AND r.status <> ALL ($1::text[])`

// tally are counts of the demo that its own statements have no part in.
type tally struct{ events, live, past, pastLive, liveRuns, liveRunsHit int }

// look counts in plain SQL. cutoff is where the plain DELETE would begin to keep.
func (d *demo) look(ctx context.Context, pool *pgxpool.Pool, window string) (t tally, err error) {
	_, terminal := states()
	err = pool.QueryRow(ctx, `
SELECT (SELECT count(*) FROM run_events),
       (SELECT count(*) FROM run_events e`+liveJoin+`),
       (SELECT count(*) FROM run_events e WHERE e.created_at < now() - $2::interval),
       (SELECT count(*) FROM run_events e`+liveJoin+` WHERE e.created_at < now() - $2::interval),
       (SELECT count(*) FROM runs r WHERE r.status <> ALL ($1::text[])),
       (SELECT count(DISTINCT (r.tenant_id, r.id)) FROM run_events e`+liveJoin+` WHERE e.created_at < now() - $2::interval)`,
		terminal, window).Scan(&t.events, &t.live, &t.past, &t.pastLive, &t.liveRuns, &t.liveRunsHit)
	if err != nil {
		return t, fmt.Errorf("count: %w", err)
	}
	return t, nil
}
