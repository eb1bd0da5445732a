package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/migrations"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
)

// Domain are domain events with their deliveries, in the project's own tables, none of them due: events with a window of their
// own, SUCCEEDED events, and a history that the default window keeps, all recorded in the 80 days before Now and in that order.
// One delivery of each SUCCEEDED event is pending; see Park.
type Domain struct {
	Own     int `json:"own_windows"` // events whose own window is not over, with five deliveries each
	Held    int `json:"held"`        // SUCCEEDED events, with three
	History int `json:"history"`     // events by the default window, with three
}

// Times is the population with its live events and its history multiplied.
func (d Domain) Times(live, history int) Domain {
	return Domain{Own: d.Own * live, Held: d.Held * live, History: d.History * history}
}

// Live is how many events are no history.
func (d Domain) Live() int { return d.Own + d.Held }

// Deliveries is how many there are.
func (d Domain) Deliveries() int { return 5*d.Own + 3*d.Held + 3*d.History }

// Population fills the tables.
func (d Domain) Population() place.Population {
	return place.Population{Name: fmt.Sprintf("domain_%d_%d_%d", d.Own, d.Held, d.History), Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		if err := migrated(ctx, config, "domain_events"); err != nil {
			return err
		}
		return filling(ctx, config, record{source: domainSource, args: []any{d.Own, d.Held, d.History}})
	}}
}

// Park makes dead letters of what is pending. The triggers of the component then park their events, a row at a time.
const Park = `UPDATE domain_event_deliveries SET status = 'dead', attempts = 20, finished_at = due_at + interval '1 minute' WHERE status = 'pending'`

// Parked is the population with its SUCCEEDED events held by a dead letter, and vacuumed after that.
func (d Domain) Parked() place.Population {
	base := d.Population()
	return place.Population{Name: base.Name + "_parked", On: &base, Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		return within(ctx, config, Park)
	}}
}

// WithDue is the same with due events before and among the others: a quarter each by the default window, by their own, by
// SUCCEEDED and by SETTLED. Each has three deliveries; one is dead where SETTLED was declared.
func (d Domain) WithDue(events int) place.Population {
	base := d.Parked()
	return place.Population{Name: fmt.Sprintf("%s_due_%d", base.Name, events), On: &base, Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		return filling(ctx, config, record{source: dueSource, args: []any{events}})
	}}
}

// WithFanout is the same with one due event that has many deliveries.
func (d Domain) WithFanout(deliveries int) place.Population {
	base := d.Parked()
	return place.Population{Name: fmt.Sprintf("%s_fanout_%d", base.Name, deliveries), On: &base, Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		return filling(ctx, config, record{source: fanoutSource, args: []any{deliveries}})
	}}
}

// Backlog are SETTLED events that are still owed: what a relay has not done yet.
func Backlog(events int) []string {
	return []string{"SET session_replication_role = replica; " + fmt.Sprintf(recordSQL, fmt.Sprintf(backlogSource, events, Now.Format(time.RFC3339)))}
}

// record is an INSERT of events with their deliveries.
type record struct {
	source string
	args   []any // $2 and on; Now is $1
}

// The sources say of each event: the number in its payload, when it was recorded, its policy, its own window in seconds, how
// many deliveries it has, and the status of the first of them.
const (
	domainSource = `
  SELECT g, $1::timestamptz - interval '80 days' * (1.001 - g::float8 / $2::int) AS at, NULL AS policy, 86400 * (100 + g % 300) AS seconds, 5 AS deliveries, 'succeeded' AS status
    FROM generate_series(1, $2::int) g
   UNION ALL
  SELECT g, $1::timestamptz - interval '80 days' * (1.001 - g::float8 / $3::int), 'SUCCEEDED', NULL, 3, 'pending' FROM generate_series(1, $3::int) g
   UNION ALL
  SELECT g, $1::timestamptz - interval '80 days' * (1.001 - g::float8 / $4::int), NULL, NULL, 3, 'succeeded' FROM generate_series(1, $4::int) g`
	dueSource = `
  SELECT g, $1::timestamptz - CASE g % 4 WHEN 0 THEN interval '95 days' ELSE interval '2 days' END - interval '75 days' * (1 - g::float8 / $2::int) AS at,
         CASE g % 4 WHEN 2 THEN 'SUCCEEDED' WHEN 3 THEN 'SETTLED' END AS policy, CASE g % 4 WHEN 1 THEN 86400 END AS seconds, 3 AS deliveries,
         CASE g % 4 WHEN 3 THEN 'dead' ELSE 'succeeded' END AS status
    FROM generate_series(1, $2::int) g`
	fanoutSource  = "SELECT 1 AS g, $1::timestamptz - interval '1 day' AS at, 'SETTLED' AS policy, NULL::int AS seconds, $2::int AS deliveries, 'succeeded' AS status"
	backlogSource = "SELECT g, timestamptz '%[2]s' - interval '1 hour' AS at, 'SETTLED' AS policy, NULL::int AS seconds, 1 AS deliveries, 'failed' AS status FROM generate_series(1, %[1]d) g"
)

// recordSQL is one INSERT for all events of a source, and one for all deliveries.
const recordSQL = `
WITH source AS MATERIALIZED (SELECT row_number() OVER (ORDER BY x.at, x.policy, x.seconds, x.g) AS n, x.* FROM (%s) x),
e AS (
  INSERT INTO domain_events (type, payload, recorded_at, occurred_at, retention_policy, retention_seconds)
  SELECT 'order.placed', jsonb_build_object('n', s.n, 'order', s.g, 'note', repeat('x', 200)), s.at, s.at, s.policy, s.seconds FROM source s ORDER BY s.n
  RETURNING id, (payload ->> 'n')::bigint AS n)
INSERT INTO domain_event_deliveries (event_id, receiver, target, status, due_at, attempts, finished_at)
SELECT e.id, 'receiver-' || d %% 5, CASE WHEN s.deliveries > 5 THEN 'target-' || d ELSE '' END, x.status, s.at, 1, CASE WHEN x.status NOT IN ('pending', 'failed') THEN s.at + interval '1 second' END
  FROM e JOIN source s ON s.n = e.n CROSS JOIN LATERAL generate_series(1, s.deliveries) d CROSS JOIN LATERAL (SELECT CASE d WHEN 1 THEN s.status ELSE 'succeeded' END AS status) x
 ORDER BY e.id, d`

// filling records without firing a trigger: what they would do is in the rows already, and the keys are right.
func filling(ctx context.Context, config *pgx.ConnConfig, r record) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err = conn.Exec(ctx, "SET session_replication_role = replica"); err == nil {
		_, err = conn.Exec(ctx, fmt.Sprintf(recordSQL, r.source), append([]any{Now}, r.args...)...)
	}
	return err
}

// migrated brings a component's tables into the database.
func migrated(ctx context.Context, config *pgx.ConnConfig, component string) error {
	m, err := migrations.New(config, migrations.Options{Component: component})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	_, err = m.Up(ctx)
	return err
}

func within(ctx context.Context, config *pgx.ConnConfig, sqls ...string) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range sqls {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// DomainSweeps are the sweeps of the ready policy, with a limit.
func DomainSweeps(limit int) []policy.Sweep {
	text, err := policyfile.Ready("domain_events")
	if err != nil {
		panic("bench: " + err.Error())
	}
	f, err := policyfile.Parse("domain_events.yaml", text)
	if err != nil {
		panic("bench: " + err.Error())
	}
	for i := range f.Sweeps {
		f.Sweeps[i].Batch.Limit = limit
	}
	return f.Sweeps
}

// DomainOurs is the sweeps of the ready policy, four arms one after the other, at each of the times.
func DomainOurs(limit int, times ...time.Time) Subject {
	return Sweeps("ours", DomainSweeps(limit), limit, times...)
}

// duePolicy is what one policy lets go, as people write it; $1 is the time.
type duePolicy struct{ name, where string }

// duePolicies are those of the component.
func duePolicies() []duePolicy {
	owed := func(terminal []domainevents.Status) string {
		var words []string
		for _, s := range terminal {
			words = append(words, string(s))
		}
		return "NOT EXISTS (SELECT FROM domain_event_deliveries d WHERE d.event_id = e.id AND NOT " + inStates("d.status", words) + ")"
	}
	settled := owed(domainevents.Terminal())
	return []duePolicy{
		{"default", "e.retention_seconds IS NULL AND e.recorded_at < $1::timestamptz - interval '90 days' AND " + settled},
		{"own", "e.retention_seconds IS NOT NULL AND e.expires_at < $1 AND " + settled},
		{"SUCCEEDED", "e.retention_policy = 'SUCCEEDED' AND NOT e.parked AND e.recorded_at < $1 AND " + owed(domainevents.Done())},
		{"SETTLED", "e.retention_policy = 'SETTLED' AND NOT e.parked AND e.recorded_at < $1 AND " + settled},
	}
}

// fetchedDeleted fetches the ids of due events and deletes by them, first the deliveries and then the events. limit counts rows
// of both, four for an event. The conditions are run one after the other, each until it finds fewer than a batch.
func fetchedDeleted(name, about string, limit int, conditions ...string) Subject {
	events := max(1, limit/4)
	return Subject{Name: name, About: about, Limit: limit, Open: ready(func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error {
		for _, where := range conditions {
			fetch := "SELECT e.id FROM domain_events e WHERE " + where + " ORDER BY e.recorded_at LIMIT $2"
			err := loop(ctx, limit, each, func(ctx context.Context) (removed int, last bool, err error) {
				rows, err := conn.Query(ctx, fetch, Now, events)
				if err != nil {
					return 0, false, err
				}
				ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
				if err != nil || len(ids) == 0 {
					return 0, true, err
				}
				err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
					for _, sql := range []string{"DELETE FROM domain_event_deliveries WHERE event_id = ANY ($1)", "DELETE FROM domain_events WHERE id = ANY ($1)"} {
						tag, err := tx.Exec(ctx, sql, ids)
						if err != nil {
							return err
						}
						removed += int(tag.RowsAffected())
					}
					return nil
				})
				return removed, len(ids) < events, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})}
}

// DomainByPolicy is one statement for each policy.
func DomainByPolicy(limit int) Subject {
	var all []string
	for _, p := range duePolicies() {
		all = append(all, p.where)
	}
	return fetchedDeleted("ids fetched, by policy", "ids of due events fetched, a statement for each policy, then deliveries and events deleted by them", limit, all...)
}

// DomainORed is one statement for all policies.
func DomainORed(limit int) Subject {
	var all []string
	for _, p := range duePolicies() {
		all = append(all, p.where)
	}
	return fetchedDeleted("ids fetched, policies OR-ed", "the same with one statement for all policies", limit, anyOf(all))
}

// WholeOwn is an index of events with a window of their own by when they were recorded: what OwnFiltered goes by.
const WholeOwn = "CREATE INDEX domain_events_own_recorded ON domain_events (recorded_at, id) WHERE retention_seconds IS NOT NULL"

// OwnFiltered looks for events whose own window is over by a filter on all that have one.
func OwnFiltered(limit int) Subject {
	return fetchedDeleted("own windows filtered", "recorded_at + the row's window filtered from all rows with one", limit,
		"e.retention_seconds IS NOT NULL AND e.recorded_at + e.retention_seconds * interval '1 second' < $1")
}

// OwnByExpiry looks for the same by the indexed expiry.
func OwnByExpiry(limit int) Subject {
	return fetchedDeleted("own windows by expiry", "the same by an indexed expiry", limit, "e.retention_seconds IS NOT NULL AND e.expires_at < $1")
}

// ChunksFromStart empties the event with many deliveries by `ctid IN (SELECT .. LIMIT n)`, from its first delivery on each time.
func ChunksFromStart(limit int) Subject {
	return repeated("ctid IN, from the first", "ctid IN (SELECT .. LIMIT n) of one event's deliveries", limit, statement{`DELETE FROM domain_event_deliveries WHERE ctid IN (
 SELECT d.ctid FROM domain_event_deliveries d WHERE d.event_id = (SELECT max(id) FROM domain_events) ORDER BY d.receiver, d.target LIMIT $1)`, nil})
}
