package faults

import "github.com/prunectl/prunectl/internal/report"

// costs are faults of work that grows where nobody looks: here only that it comes to its end, and what is counted.
var costs = []fault{
	{
		file: "backlog-under-a-statement-timeout", roles: "sweeper: login", query: countEvents, answer: "300000", rows: countEvents,
		steps: []step{
			refused("a batch of a million", with(eventsSweep, "batch: {limit: 1000000}"), 300000, "run_events.batch.limit", "100000"),
			sql("grant all on runs, run_events to sweeper; create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return old; end $$"),
			sql("create trigger events_slow before delete on run_events for each row execute function slow()"),
			run{name: "no row fits", role: "sweeper", policy: with(backlog, "batch: {limit: 4}"), params: "statement_timeout=400", code: 1, outcome: outcome{stop: report.Failed}, left: 300000,
				says: []string{"a batch of one row: the batch did not end within its statement timeout of 400ms"}},
			// A batch of 1,000 takes longer than the timeout: it fails, and is halved until it fits.
			sql("create or replace function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.0004); return old; end $$"),
			sql("do $$ begin execute format('alter role sweeper in database %I set statement_timeout = %L', current_database(), '400ms'); end $$"),
			run{name: "halved until they fit", args: "sweep --max-rows 2000", role: "sweeper", policy: with(backlog, "batch: {limit: 100000, target: 1h}"),
				outcome: outcome{stop: report.Budget, by: report.ByRows, removed: 2000}, left: 298000, checked: inTime(0.4)},
			sql("drop trigger events_slow on run_events"),
			run{name: "all of it, a batch a transaction", policy: with(backlog, "batch: {limit: 5000}"), params: "options=-c statement_timeout=400ms", outcome: outcome{stop: report.Drained, removed: 298000},
				checked: inTime(0.4)},
		},
	},
	{
		file: "dead-rows-of-the-batches-before", query: "select count(*) from dd", answer: "200000", rows: "select count(*) from dd",
		steps: []step{
			session{text: "begin isolation level repeatable read; select count(*) from dd where id < 10"},
			run{policy: with(unguarded("dd", "dd_at"), "batch: {limit: 5000, target: 1min}"), outcome: outcome{stop: report.Drained, removed: 200000, batches: 42}},
			session{text: "commit"},
		},
	},
	{
		file: "head-of-held-rows", query: dueEvents, answer: "10", rows: countEvents,
		steps: []step{
			// Each row is looked at once: the batch bounds what is examined, so the head costs batches of its own.
			run{policy: with(eventsSweep, "batch: {limit: 1000}", "ceiling: {batches: 3}"), outcome: outcome{stop: report.Drained, removed: 10, held: 100000, batches: 1}, left: 100000,
				checked: func(s *scene, r report.Report) {
					if n := r.Sweeps[0].Examined; n != 100010 {
						s.t.Errorf("%d rows were examined; there are 100,010", n)
					}
					heldBy("owner", "waiting_approval", 100000, 200)(s, r)
				}},
			fact{"select count(*) from run_events where run_id = 101", "0"},
		},
	},
	{
		file: "dry-run-counts-otherwise", query: countEvents, answer: "195", rows: countEvents,
		steps: []step{
			dry("sweep --dry-run", ""), dry("plan", ""), dry("sweep --dry-run", "options=-c default_transaction_read_only=on"),
			dry("sweep --dry-run --busy-ok --fail-fast --only run_events --max-time 5min", ""),
			run{args: "sweep --dry-run --detailed-exitcode", policy: threeBatches, code: 3, outcome: outcome{stop: report.Planned, due: 40, thisRun: 30, held: 150, orphan: 5}, left: 195},
			run{name: "in the table", args: "sweep --dry-run -o table", policy: threeBatches, left: 195, says: []string{
				"run_events: one run is not enough: 40 are due and it removes 30 at most", "5 kept as orphans",
				"nothing was removed; prunectl sweep would remove at most 30 rows in this run"}},
			run{name: "by rows", args: "plan --count-limit 7", policy: with(eventsSweep, "ceiling: {rows: 30}"), outcome: outcome{stop: report.Planned, held: 7}, left: 195},
			fact{"select pg_stat_get_tuples_deleted('run_events'::regclass)", "0"},
			// Batches that remove something are counted: not the fifteen of the head that is held. The five orphans are in one
			// batch with due rows, so that it removes five.
			run{name: "for real", policy: threeBatches, outcome: outcome{stop: report.Ceiling, by: report.ByBatches, removed: 25, held: 150, orphan: 5, batches: 3}, left: 170},
			run{name: "and the rest", policy: threeBatches, outcome: outcome{stop: report.Drained, removed: 15, held: 150, orphan: 5}, left: 155},
		},
	},
	{
		file: "nothing-removed-says-nothing", query: countEvents, answer: "3", rows: countEvents,
		steps: []step{
			run{policy: eventsSweep, outcome: outcome{stop: report.Drained, held: 1, orphan: 1}, left: 3, says: []string{"run_events_age"}, checked: func(s *scene, r report.Report) {
				heldBy("owner", "running", 1, 90)(s, r)
				heldBy("orphan", "", 1, 90)(s, r)
				keeps(30*24)(s, r)
				if r.Policy == nil || len(r.Policy.SHA256) != 64 || r.Elapsed <= 0 || r.Database == nil {
					s.t.Errorf("the report does not say what was asked of whom: %+v", r)
				}
			}},
			run{name: "in the table", args: "sweep -o table", policy: eventsSweep, left: 3, says: []string{
				"SWEEP", "run_events", "drained", "1 held by 1 owner in state running, the oldest from", "1 kept as orphans",
				"msg=start sweep=run_events", "msg=end sweep=run_events removed=0 held=1 batches=0 cutoff="}},
			sql(`create table empty_events (like run_events including all); create table young_events (like run_events including all);
				create table held_events (like run_events including all); create table orphan_events (like run_events including all);
				create table undated_events (like run_events including all); alter table undated_events alter created_at drop not null;
				insert into young_events select * from run_events where run_id = 1; insert into held_events select * from run_events where run_id = 2;
				insert into orphan_events select * from run_events where run_id = 3; insert into undated_events values ('a', 1, 1, null, null)`),
			run{name: "five ways to remove nothing", policy: five("empty_events", "young_events", "held_events", "orphan_events", "undated_events"),
				outcome: outcome{sweep: "empty_events", stop: report.Drained}, left: 3, also: []outcome{
					{sweep: "young_events", stop: report.Drained}, {sweep: "held_events", stop: report.Drained, held: 1},
					{sweep: "orphan_events", stop: report.Drained, orphan: 1}, {sweep: "undated_events", stop: report.Drained, undated: 1}}},
		},
	},
}

// backlog is the sweep of the run events without a ceiling of batches.
var backlog = without(eventsSweep, "ceiling")

// inTime bounds each batch by the statement timeout in force: the call takes little more than the statement. It does not
// hold on a machine that stops for a while, so it is wide.
func inTime(timeout float64) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		if got := r.Sweeps[0].SlowestBatch; got > 5*timeout {
			s.t.Errorf("a batch took %.1fs under a statement timeout of %.1fs", got, timeout)
		}
		if n := r.Sweeps[0].Batches; n < 3 {
			s.t.Errorf("all went in %d batches", n)
		}
	}
}

var threeBatches = with(eventsSweep, "batch: {limit: 10}", "ceiling: {batches: 3}")

// dry is a run that removes nothing and says what a real one would.
func dry(args, params string) run {
	r := run{args: args, policy: threeBatches, params: params, outcome: outcome{stop: report.Planned, due: 40, thisRun: 30, held: 150, orphan: 5}, left: 195, checked: keeps(30 * 24)}
	if params != "" {
		r.name = args + " where nothing can be written"
	}
	return r
}

// five is the sweep of the run events, for each of these tables.
func five(tables ...string) string {
	var all string
	for _, name := range tables {
		all += named(with(without(eventsSweep, "index"), "table: "+name), name)
	}
	return all
}
