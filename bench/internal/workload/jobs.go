package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/policy"
)

// Jobs are those of a queue, with a state of their own: a million that wait in a paused queue, put there first, and behind
// them finished ones that are due, in three states with a window each. They finish in another order than they began.
type Jobs struct {
	Waiting, Due int
	AgeLed       bool // the index leads with the age; else with the state
}

const jobsSQL = `
CREATE TABLE jobs (
  id           bigint      PRIMARY KEY,
  state        text        NOT NULL,
  queue        text        NOT NULL,
  kind         text        NOT NULL,
  priority     smallint    NOT NULL,
  attempt      smallint    NOT NULL,
  max_attempts smallint    NOT NULL,
  args         jsonb       NOT NULL,
  metadata     jsonb       NOT NULL,
  tags         text[]      NOT NULL,
  created_at   timestamptz NOT NULL,
  scheduled_at timestamptz NOT NULL,
  attempted_at timestamptz,
  finalized_at timestamptz
)`

// A row has some 500 bytes, most of them arguments. Ages go back from four weeks to twelve: past the longest window. The
// product of a prime spreads the ends of jobs over an hour around their order.
const jobsFillSQL = `
INSERT INTO jobs
SELECT g, CASE WHEN waits THEN 'available' ELSE (ARRAY['completed', 'completed', 'completed', 'cancelled', 'discarded'])[1 + g % 5] END,
       CASE WHEN waits THEN 'paused' ELSE 'default' END, 'send_message', 1, CASE WHEN waits THEN 0 ELSE 1 END, 25,
       jsonb_build_object('recipient', md5(g::text), 'template', 'welcome', 'body', repeat('x', 200)), jsonb_build_object('trace', md5(g::text)), '{message}',
       began, began, CASE WHEN NOT waits THEN began END,
       CASE WHEN NOT waits THEN began + interval '1 second' * (g * 7919::bigint % 3600) END
  FROM (SELECT g, g <= $1::int AS waits, $3::timestamptz - interval '84 days' + interval '56 days' * greatest(0, g - $1)::float8 / $2::int AS began
          FROM generate_series(1, $1::int + $2::int) g) x`

// Population fills the table.
func (j Jobs) Population() place.Population {
	base := place.Population{Name: fmt.Sprintf("jobs_%d_%d", j.Waiting, j.Due), Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err = conn.Exec(ctx, jobsSQL); err == nil {
			_, err = conn.Exec(ctx, jobsFillSQL, j.Waiting, j.Due, Now)
		}
		return err
	}}
	led, columns := "state", "state, finalized_at, id"
	if j.AgeLed {
		led, columns = "age", "finalized_at, id"
	}
	return place.Population{Name: base.Name + "_" + led, On: &base, Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, "CREATE INDEX jobs_retention ON jobs ("+columns+") WHERE finalized_at IS NOT NULL")
		return err
	}}
}

// jobWindows are those of the terminal states.
var jobWindows = []struct {
	state  string
	window time.Duration
}{{"completed", 24 * time.Hour}, {"cancelled", 48 * time.Hour}, {"discarded", 7 * 24 * time.Hour}}

// JobsSweep is the sweep of finished jobs.
func JobsSweep() policy.Sweep {
	s := policy.Sweep{
		Name: "jobs", Table: policy.Name{Schema: "public", Table: "jobs"}, Age: "finalized_at",
		Guard:   policy.Guard{State: &policy.StateGuard{Column: "state"}},
		Ceiling: policy.Ceiling{Rows: policy.NoCeiling, Time: policy.NoCeiling},
	}
	for _, w := range jobWindows {
		s.Guard.State.Terminal = append(s.Guard.State.Terminal, policy.Text(w.state))
		s.ByState = append(s.ByState, policy.StateWindow{State: policy.Text(w.state), Window: policy.MustWindow(w.window)})
	}
	return s
}

// Log is a table of its own rows and nothing else, to measure what does not depend on a row's shape.
type Log struct{ Rows int }

// Population fills the table; every row is due.
func (l Log) Population() place.Population {
	return place.Population{Name: fmt.Sprintf("log_%d", l.Rows), Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		for _, sql := range []string{
			"CREATE TABLE audit_log (id bigint NOT NULL, at timestamptz NOT NULL)",
			fmt.Sprintf("INSERT INTO audit_log SELECT g, timestamptz '2024-01-01 UTC' + g * interval '1 second' FROM generate_series(1, %d) g", l.Rows),
			"CREATE INDEX audit_log_retention ON audit_log (at)",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}}
}

// LogPolicy is a policy file for the log.
const LogPolicy = `version: 1
defaults: {schema: public}
budget: {time: none}
sweeps:
  audit_log:
    table: audit_log
    age: at
    window: 30d
    guard: {none: "nothing is owed to a line of this log"}
    ceiling: {rows: none, time: none}
`

// LogNow is a time at which every row of the log is due.
func (l Log) LogNow() time.Time {
	return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(l.Rows)*time.Second + 31*24*time.Hour)
}
