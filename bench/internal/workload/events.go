package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/policy"
)

// Now is the time that subjects are told.
var Now = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	eventsWindow = 30 * 24 * time.Hour
	eventsSpan   = 200 * 24 * time.Hour / 3 // 55 % of it is past the window
	abreast      = 50                       // runs that are written to at one time, one of them live
)

// Events are the events of runs, in the project's own tables: written in the order of their ages, 50 runs at a time, so that
// the events of a run lie among those of others. Every 50th run is live, 55 % of the events are past their window.
type Events struct {
	Runs   int // a multiple of 50
	PerRun int // events of each
	Head   int // events of live runs that are older than all others
	Note   int // characters in each event
}

// Rows is how many events there are.
func (e Events) Rows() int { return e.Runs*e.PerRun + e.Head }

// Population fills the tables.
func (e Events) Population() place.Population {
	return place.Population{Name: fmt.Sprintf("events_%d_%d_%d", e.Runs, e.PerRun, e.Head), Fill: e.fill}
}

func (e Events) fill(ctx context.Context, config *pgx.ConnConfig) error {
	if err := migrated(ctx, config, "run_events"); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	live, terminal := States()
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{runsSQL, []any{e.Runs, abreast, live, terminal, Now}},
		{headSQL, []any{e.Head, Now.Add(-eventsSpan - time.Hour), e.Note, live[0]}},
		{eventsSQL, []any{e.Runs, abreast, e.PerRun, Now.Add(-eventsSpan), eventsSpan.Seconds(), e.Note}},
	} {
		if _, err := conn.Exec(ctx, step.sql, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// names are the keys of a run.
const names = `'tenant-' || r % 20, 'run-' || lpad(r::text, 8, '0')`

const runsSQL = `
INSERT INTO runs (tenant_id, id, status, created_at, updated_at)
SELECT ` + names + `, CASE WHEN r % $2::int = 0 THEN ($3::text[])[1 + r / $2 % cardinality($3)] ELSE ($4::text[])[1 + r % cardinality($4)] END, $5, $5
  FROM generate_series(0, $1::int - 1) r`

const headSQL = `
WITH head AS (INSERT INTO runs (tenant_id, id, status, created_at, updated_at)
              SELECT 'tenant-head', 'run-' || r, $4::text, $2, $2 FROM generate_series(0, ($1::int + 999) / 1000 - 1) r)
INSERT INTO run_events (tenant_id, run_id, sequence, type, event, created_at)
SELECT 'tenant-head', 'run-' || g % greatest(1, ($1 + 999) / 1000), 1 + g, 'step', jsonb_build_object('step', g, 'note', repeat('x', $3::int)),
       $2::timestamptz + g * interval '1 millisecond'
  FROM generate_series(0, $1 - 1) g ORDER BY g`

const eventsSQL = `
INSERT INTO run_events (tenant_id, run_id, sequence, type, event, created_at)
SELECT ` + names + `, s, 'step', jsonb_build_object('step', s, 'note', repeat('x', $6::int)),
       $4::timestamptz + ((b::bigint * $3::int + s - 1) * $2::int + o) * ($5::float8 / ($1::int::bigint * $3)) * interval '1 second'
  FROM (SELECT b * $2::int + o AS r, s, b, o
          FROM generate_series(0, $1::int / $2 - 1) b, generate_series(1, $3::int) s, generate_series(0, $2 - 1) o) x
 ORDER BY b, s, o`

// States are those of a run, by what they mean to a sweep.
func States() (live, terminal []string) {
	for _, s := range eventlog.States() {
		if s.Terminal() {
			terminal = append(terminal, string(s))
		} else {
			live = append(live, string(s))
		}
	}
	return live, terminal
}

// EventsSweep is the sweep of run events. final says that the states of a run are, so that it need not be locked.
func EventsSweep(final bool) policy.Sweep {
	_, terminal := States()
	return policy.Sweep{
		Name: "run_events", Table: policy.Name{Schema: "public", Table: "run_events"}, Age: "created_at", Window: policy.MustWindow(eventsWindow),
		Guard: policy.Guard{Owner: &policy.OwnerGuard{
			Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "tenant_id", Owner: "tenant_id"}, {Target: "run_id", Owner: "id"}},
			Column: "status", Terminal: policy.Texts(terminal...), Final: final,
		}},
		Ceiling: policy.Ceiling{Rows: policy.NoCeiling, Time: policy.NoCeiling},
	}
}

// EventsCutoff is that of the sweep.
func EventsCutoff() policy.Cutoff { return policy.MustWindow(eventsWindow).Cutoff(Now) }

// EventsReading reads, through the index alone, the held rows that the population has at its head.
const EventsReading = `SELECT count(*) FROM run_events WHERE created_at < $1`

// HeadEnd is behind the last row of the head.
var HeadEnd = Now.Add(-eventsSpan)
