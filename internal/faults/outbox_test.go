package faults

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy/policyfile"
)

// The sweeps of the events: by the default window, which is for dead letters too, or their own; and those that go at once.
const consumedSweep = `
  events:
    table: events
    age: recorded_at
    window: 90d
    row_window: {column: keep_seconds, unit: s}
    floor: 1s
    guard: {owed: {table: deliveries, key: {id: event_id}, state: state, terminal: [succeeded, dead, orphaned, cancelled]}}
    children: [{table: deliveries, key: {id: event_id}}]
    index: events_age
    batch: {limit: 100}
`

var (
	succeededSweep = atOnce("SUCCEEDED", "succeeded, cancelled", "events")
	settledSweep   = atOnce("SETTLED", "succeeded, dead, orphaned, cancelled", "events, events_succeeded")
	threeSweeps    = consumedSweep + succeededSweep + settledSweep
)

// atOnce is the sweep of the events with this word, which go when their deliveries are in these states.
func atOnce(word, terminal, overlaps string) string {
	sweep := named(without(without(consumedSweep, "row_window"), "floor"), "events_"+strings.ToLower(word))
	return with(sweep, "window: at_once", "only: {policy: "+word+"}", "overlaps: ["+overlaps+"]",
		"guard: {owed: {table: deliveries, key: {id: event_id}, state: state, terminal: ["+terminal+"]}}")
}

const (
	countConsumed = "select (select count(*) from events) + (select count(*) from deliveries)"
	countRecorded = "select (select count(*) from domain_events) + (select count(*) from domain_event_deliveries)"

	notOwed = `select string_agg(id::text, ',' order by id) from events e where not exists (select 1 from deliveries d where d.event_id = e.id and d.state in ('pending','failed','claimed'))`
)

// recorded installs the component and records the same events and deliveries in its tables.
var recorded = act(func(s *scene) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, s.bin, "migrate", "up", "--component", "domain_events", "--dsn", s.db.DSN).CombinedOutput(); err != nil {
		s.t.Fatalf("install the component: %v\n%s", err, out)
	}
	s.db.Exec(s.t, `insert into domain_events (id, type, payload, recorded_at, retention_policy, retention_seconds) overriding system value
  select id, kind, '{}', recorded_at, policy, keep_seconds from events;
insert into domain_event_deliveries (event_id, receiver, status, finished_at, claimed_by, claimed_at, claimed_until)
  select event_id, receiver, state, case when state in ('succeeded', 'dead', 'orphaned', 'cancelled') then updated_at end,
         case when state = 'claimed' then 'worker' end, case when state = 'claimed' then now() end, case when state = 'claimed' then now() + interval '1 minute' end
    from deliveries;
analyze domain_events, domain_event_deliveries`)
})

// ready is the component's own policy, with this limit of a batch.
func ready(limit string) string {
	text, err := policyfile.Ready("domain_events")
	if err != nil {
		panic(err) // a file of ours
	}
	return strings.Replace(string(text), "version: 1\n", "version: 1\ndefaults: {batch: {limit: "+limit+"}}\n", 1)
}

// outboxes are faults of events that several readers need, and that go by what was said when they were recorded.
var outboxes = []fault{
	{
		file: "one-reader-still-waits", query: notOwed, answer: "1,4", rows: countConsumed,
		steps: []step{
			ledger("events", "deliveries"),
			run{name: "planned", args: "plan", policy: consumedSweep, outcome: outcome{stop: report.Planned, due: 2, thisRun: 2, held: 2}, left: 15},
			run{name: "planned in the table", args: "plan -o table", policy: consumedSweep, left: 15, says: []string{
				"events: rows to which public.deliveries refers are kept, unless state is", "events: rows of public.deliveries go with them", "nothing was removed; prunectl sweep would remove 2 rows in this run, fewer where the rows that go with them reach a ceiling first"}},
			run{policy: consumedSweep, outcome: outcome{stop: report.Drained, removed: 2, children: 5, held: 2, batches: 1}, left: 8,
				checked: each(inBatches(100), heldBy("owed", "pending", 1, 200), heldBy("owed", "claimed", 1, 200))},
			fact{"select string_agg(event_id || state, ',' order by id) from deliveries", "2succeeded,2pending,2succeeded,3claimed,3dead,3dead"},
			fact{"select string_agg(id::text, ',' order by id) from events", "2,3"},
			run{name: "in the table", args: "sweep -o table --detailed-exitcode", policy: consumedSweep, left: 8, says: []string{
				"events: 1 held as owed in state claimed by rows of public.deliveries, the oldest from", "events: 1 held as owed in state pending by rows of public.deliveries"}},
			sql("update deliveries set state = 'succeeded' where state = 'pending'"),
			run{name: "the last reader of one has it", policy: consumedSweep, outcome: outcome{stop: report.Drained, removed: 1, children: 3, held: 1}, left: 4, checked: heldBy("owed", "claimed", 1, 200)},
		},
	},
	{
		file: "one-reader-still-waits", as: "in the tables of the component", query: notOwed, answer: "1,4", rows: countRecorded,
		steps: []step{
			sql("update events set policy = 'SETTLED' where id in (3, 4); update events set policy = 'SUCCEEDED' where id = 2"),
			recorded,
			run{name: "sweep", file: ready("100"), outcome: outcome{stop: report.Drained, removed: 2, children: 5, held: 2},
				also: []outcome{{sweep: "domain_events_succeeded", stop: report.Drained, held: 1}, {sweep: "domain_events_settled", stop: report.Drained, held: 1}}, left: 8,
				checked: each(heldIn(1, "owed", "pending", 1, 200), heldIn(2, "owed", "claimed", 1, 200))},
			fact{"select string_agg(event_id || status, ',' order by id) from domain_event_deliveries", "2succeeded,2pending,2succeeded,3claimed,3dead,3dead"},
			// What went had been delivered to two of the readers.
			fact{"select string_agg(receiver, ',' order by receiver) from domain_event_receivers", "a,b"},
		},
	},
	{
		file: "dead-letters-under-one-clock", query: deadLettersGo, answer: "3,4,5,6", rows: countConsumed,
		steps: []step{
			ledger("events", "deliveries"),
			run{name: "planned", args: "plan", policy: threeSweeps, outcome: outcome{stop: report.Planned, due: 3, thisRun: 3},
				also: []outcome{{sweep: "events_succeeded", stop: report.Planned, held: 2}, {sweep: "events_settled", stop: report.Planned, due: 2, thisRun: 2}}, left: 12},
			run{policy: threeSweeps, outcome: outcome{stop: report.Drained, removed: 3, children: 3},
				also: []outcome{{sweep: "events_succeeded", stop: report.Drained, held: 1}, {sweep: "events_settled", stop: report.Drained, removed: 1, children: 1}}, left: 4,
				checked: each(inBatches(100), heldIn(1, "owed", "dead", 1, 10))},
			fact{"select string_agg(id || coalesce(policy, '-'), ',' order by id) from events", "1-,2SUCCEEDED"},
			// The dead letter of SUCCEEDED stays for the default window, whatever that is.
			run{name: "past the default window", policy: strings.Replace(threeSweeps, "window: 90d", "window: 9d", 1), outcome: outcome{stop: report.Drained, removed: 2, children: 2},
				also: []outcome{{sweep: "events_succeeded", stop: report.Drained}, {sweep: "events_settled", stop: report.Drained}}},
		},
	},
	{
		file: "dead-letters-under-one-clock", as: "in the tables of the component", query: deadLettersGo, answer: "3,4,5,6", rows: countRecorded,
		steps: []step{
			recorded,
			fact{"select string_agg(id::text, ',' order by id) from domain_events where parked", "2,5"},
			run{name: "planned", args: "plan", file: ready("100"), outcome: outcome{stop: report.Planned, due: 3, thisRun: 3},
				also: []outcome{{sweep: "domain_events_succeeded", stop: report.Planned}, {sweep: "domain_events_settled", stop: report.Planned, due: 2, thisRun: 2}}, left: 12},
			run{name: "sweep", file: ready("100"), outcome: outcome{stop: report.Drained, removed: 3, children: 3},
				also: []outcome{{sweep: "domain_events_succeeded", stop: report.Drained}, {sweep: "domain_events_settled", stop: report.Drained, removed: 1, children: 1}}, left: 4},
			fact{"select string_agg(id || coalesce(retention_policy, '-') || parked, ',' order by id) from domain_events", "1-false,2SUCCEEDEDtrue"},
			fact{"select count(*) from domain_event_receivers", "0"},
			// Requeued, it is owed; delivered, it goes at once. The other has no policy: its window is not over.
			sql("update domain_event_deliveries set status = 'pending', finished_at = null"),
			run{name: "requeued", file: ready("100"), outcome: outcome{stop: report.Drained},
				also: []outcome{{sweep: "domain_events_succeeded", stop: report.Drained, held: 1}, {sweep: "domain_events_settled", stop: report.Drained}}, left: 4,
				checked: heldIn(1, "owed", "pending", 1, 10)},
			sql("update domain_event_deliveries set status = 'succeeded', finished_at = now()"),
			run{name: "delivered", file: ready("100"), outcome: outcome{stop: report.Drained},
				also: []outcome{{sweep: "domain_events_succeeded", stop: report.Drained, removed: 1, children: 1}, {sweep: "domain_events_settled", stop: report.Drained}}, left: 2},
			fact{"select string_agg(id::text, ',') || (select string_agg(receiver, ',') from domain_event_receivers) from domain_events", "1r"},
		},
	},
	{
		file: "fan-out-in-one-transaction", query: countConsumed, answer: "20005", rows: countConsumed,
		steps: []step{
			ledger("events", "deliveries"),
			sql("analyze"),
			run{name: "planned", args: "plan", policy: fanOut, outcome: outcome{stop: report.Planned, due: 3, thisRun: 3}, left: 20005,
				says: []string{"no index walks the rows of public.deliveries that refer to one row in the order of a unique key"}},
			run{args: "sweep --max-rows 5001 --detailed-exitcode", policy: fanOut, code: 3, outcome: outcome{stop: report.Budget, by: report.ByRows, removed: 1, children: 5000}, left: 15004,
				checked: inBatches(1000)},
			fact{"select string_agg(id::text, ',' order by id) || ' ' || (select count(*) from deliveries where event_id = 2) from events", "2,3 15001"},
			run{name: "what is left is no live event", args: "plan", policy: fanOut, outcome: outcome{stop: report.Planned, due: 2, thisRun: 2}, left: 15004},
			sql("update deliveries set state = 'failed' where id = (select max(id) from deliveries where event_id = 2)"),
			run{name: "reopened meanwhile", policy: fanOut, outcome: outcome{stop: report.Drained, removed: 1, children: 1, held: 1}, left: 15002, checked: each(inBatches(1000), heldBy("owed", "failed", 1, 200))},
			sql("update deliveries set state = 'succeeded' where state = 'failed'; create index deliveries_walk on deliveries (event_id, id)"),
			run{name: "the next run ends it", policy: fanOut, outcome: outcome{stop: report.Drained, removed: 1, children: 15001}, checked: inBatches(1000),
				lacks: []string{"no index walks the rows"}},
		},
	},
	{
		file: "fan-out-in-one-transaction", as: "in the tables of the component", query: countConsumed, answer: "20005", rows: countRecorded,
		steps: []step{
			recorded,
			run{name: "a stop in the middle", args: "sweep --max-rows 5001", file: ready("1000"), outcome: outcome{stop: report.Budget, by: report.ByRows, removed: 1, children: 5000}, left: 15004},
			fact{"select string_agg(id::text, ',' order by id) || ' ' || (select count(*) from domain_event_deliveries where event_id = 2) from domain_events", "2,3 15001"},
			// Each chunk has remembered the receivers of what it removed, which are as many as the deliveries.
			fact{remembered, "5000 true"},
			run{name: "the next run ends it", file: ready("1000"), outcome: outcome{stop: report.Drained, removed: 2, children: 15002}},
			fact{remembered, "20001 true"},
		},
	},
	{
		file: "no-window-of-its-own", query: "select count(*) filter (where keep_seconds is null) || ' ' || count(keep_seconds) from events", answer: "7 1", rows: "select count(*) from events",
		steps: []step{
			run{name: "planned", args: "plan", policy: consumedSweep, outcome: outcome{stop: report.Planned, due: 8, thisRun: 8}, left: 8, checked: dueBy("events 7, own window 1")},
			// Longer than the default, and over or not over by itself.
			sql("insert into events (kind, recorded_at, keep_seconds) values ('k', now() - interval '100 days', 200 * 86400), ('k', now() - interval '100 days', 99 * 86400), ('k', now() - interval '2 hours', 3600)"),
			run{policy: consumedSweep, outcome: outcome{stop: report.Drained, removed: 10}, left: 1},
			fact{"select keep_seconds / 86400 from events", "200"},
		},
	},
	{
		file: "no-window-of-its-own", as: "in the tables of the component", query: "select count(*) filter (where keep_seconds is null) || ' ' || count(keep_seconds) from events", answer: "7 1", rows: countRecorded,
		steps: []step{
			recorded,
			run{name: "planned", args: "plan", file: ready("100"), outcome: outcome{stop: report.Planned, due: 8, thisRun: 8}, left: 8,
				also:    []outcome{{sweep: "domain_events_succeeded", stop: report.Planned}, {sweep: "domain_events_settled", stop: report.Planned}},
				checked: dueBy("domain_events 7, own window 1"), says: []string{"domain_events_default", "domain_events_own"}},
			run{name: "a window for this run", args: "sweep --only domain_events --window 101d", file: ready("100"), outcome: outcome{stop: report.Drained, removed: 1}, left: 7},
			run{name: "sweep", file: ready("100"), outcome: outcome{stop: report.Drained, removed: 7}},
		},
	},
	{
		file: "no-window-of-its-own", as: "windows that are none", query: "select count(*) from events", answer: "8", rows: "select count(*) from events",
		steps: []step{
			sql("insert into events (kind, recorded_at, keep_seconds) select 'k', now() - interval '80 days', s from unnest(array[0, -5, 60, 40000]) s"),
			run{name: "planned", args: "plan", policy: without(consumedSweep, "floor"), outcome: outcome{stop: report.Planned, due: 10, thisRun: 10, unusable: 2, raised: 1}, left: 12},
			run{name: "zero is no window but for ever", policy: with(without(consumedSweep, "floor"), "row_window: {column: keep_seconds, unit: s, zero: never}", "window: never"),
				outcome: outcome{stop: report.Drained, removed: 3, unusable: 1, raised: 1}, left: 9},
			run{policy: consumedSweep, outcome: outcome{stop: report.Drained, removed: 7, unusable: 2}, left: 2},
			sql("insert into events (kind, recorded_at, keep_seconds) values ('k', now() - interval '80 days', 36501), ('k', now() - interval '80 days', 79), ('k', now() - interval '80 days', 81)"),
			run{name: "in days", policy: with(consumedSweep, "row_window: {column: keep_seconds, unit: d}"), outcome: outcome{stop: report.Drained, removed: 1, unusable: 3}, left: 4},
			run{name: "in the table", args: "sweep -o table", policy: with(consumedSweep, "row_window: {column: keep_seconds, unit: d}"), left: 4,
				says: []string{"events: 3 rows have an unusable own window (zero, negative or over 36500d); they are kept"}},
			fact{"select string_agg(keep_seconds::text, ',' order by keep_seconds) from events", "-5,0,81,36501"},
		},
	},
}

const deadLettersGo = `select string_agg(row_number::text, ',' order by row_number) from (select row_number() over (order by id), * from events) e where policy = 'SETTLED' or recorded_at < now() - interval '90 days'`

// remembered counts the receivers that a sweep has remembered, and says whether no transaction did so for more than 1,000.
// The component's tables take no ledger: a trigger of somebody else's is a difference that its preflight refuses.
const remembered = "select sum(n) || ' ' || (max(n) <= 1000) from (select count(*) as n from domain_event_receivers group by xmin::text) x"

// fanOut is the sweep of the events in batches of 1,000 rows.
var fanOut = with(consumedSweep, "batch: {limit: 1000}")

// dueBy looks for how many rows of the first sweep are due by each of its arms.
func dueBy(want string) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		s.t.Helper()
		var each []string
		for _, a := range r.Sweeps[0].Arms {
			each = append(each, a.Arm+" "+report.Number(a.Due))
		}
		if is := strings.Join(each, ", "); is != want {
			s.t.Errorf("due: %s\nnot:  %s", is, want)
		}
	}
}
