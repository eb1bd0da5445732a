package faults

import "github.com/prunectl/prunectl/internal/report"

// patient waits for locks as long as the test needs to let them go.
var patient = with(jobsSweep, "timeouts: {lock: 25s}")

// races are faults in what others do to the rows while the sweep is on its way.
var races = []fault{
	{
		file: "short-batch-not-drained", as: "the rows stay busy", query: countJobs + " where finished_at < now() - interval '7 days'", answer: "60", rows: countJobs,
		steps: []step{
			session{text: "begin; update jobs set payload = 'note' where id <= 10"},
			run{args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 10}"), code: 3, outcome: outcome{stop: report.Locked, removed: 50, locked: 10}, left: 10},
			session{text: "commit"},
			run{name: "the next run", policy: with(jobsSweep, "batch: {limit: 10}"), outcome: outcome{stop: report.Drained, removed: 10}},
		},
	},
	{
		file: "short-batch-not-drained", as: "the rows are moved under the batch", query: countJobs + " where finished_at < now() - interval '7 days'", answer: "60", rows: countJobs,
		steps: []step{
			session{text: "begin; update jobs set payload = 'note' where id <= 10"},
			run{policy: with(patient, "batch: {limit: 10}"), outcome: outcome{stop: report.Drained, removed: 60},
				meanwhile: []step{waitsForLock, session{text: "commit"}}},
		},
	},
	{
		file: "owner-reopened-during-batch", as: "reopened", query: countEvents, answer: "10", rows: countEvents,
		steps: []step{
			session{text: "begin; update runs set status = 'queued' where id = 1"},
			run{name: "while it is being reopened", args: "sweep --detailed-exitcode", policy: eventsSweep, code: 3, outcome: outcome{stop: report.Locked, locked: 10}, left: 10},
			session{text: "commit"},
			run{name: "after", policy: eventsSweep, outcome: outcome{stop: report.Drained, held: 10}, left: 10, checked: heldBy("owner", "queued", 10, 90)},
		},
	},
	{
		file: "owner-reopened-during-batch", as: "rolled back", query: countEvents, answer: "10", rows: countEvents,
		steps: []step{
			session{text: "begin; update runs set status = 'queued' where id = 1"},
			run{name: "while it is being reopened", policy: eventsSweep, outcome: outcome{stop: report.Locked, locked: 10}, left: 10},
			session{text: "rollback"},
			run{name: "after", policy: eventsSweep, outcome: outcome{stop: report.Drained, removed: 10}},
		},
	},
	{
		file: "owner-reopened-during-batch", as: "in the midst of a batch", query: countEvents, answer: "10", rows: countEvents,
		steps: []step{
			// The batch has its owners, and sleeps in a delete: who reopens now waits for it, and finds the log gone or whole.
			sql(`create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.05); return old; end $$`),
			sql(`create trigger events_slow before delete on run_events for each row execute function slow()`),
			run{policy: eventsSweep, outcome: outcome{stop: report.Drained, removed: 10}, meanwhile: []step{
				deletes,
				session{text: "begin; update runs set status = 'queued' where id = 1"},
				fact{countEvents, "0"},
				session{text: "commit"},
			}},
		},
	},
	{
		file: "row-reopened-during-batch", as: "while the batch waits", query: countJobs + " where state = 'failed'", answer: "5", rows: countJobs,
		steps: []step{
			session{text: "begin; update jobs set state = 'queued' where id in (1,2)"},
			run{policy: with(patient, "batch: {limit: 5}"), outcome: outcome{stop: report.Drained, removed: 3, held: 2}, left: 2,
				meanwhile: []step{waitsForLock, session{text: "commit"}}},
			fact{"select string_agg(id || state, ',' order by id) from jobs", "1queued,2queued"},
		},
	},
	{
		file: "row-reopened-during-batch", as: "longer than the batch waits", query: countJobs + " where state = 'failed'", answer: "5", rows: countJobs,
		steps: []step{
			session{text: "begin; update jobs set state = 'queued' where id in (1,2)"},
			run{name: "while they are being reopened", policy: with(jobsSweep, "batch: {limit: 5}"), outcome: outcome{stop: report.Locked, removed: 3, locked: 2}, left: 2},
			session{text: "commit"},
			run{name: "after", policy: with(jobsSweep, "batch: {limit: 5}"), outcome: outcome{stop: report.Drained, held: 2}, left: 2},
			fact{"select string_agg(id || state, ',' order by id) from jobs", "1queued,2queued"},
		},
	},
	{
		file: "row-locked-by-an-idle-session", query: countJobs + " where id <> 1", answer: "29", rows: countJobs,
		steps: []step{
			session{text: "begin; select * from jobs where id = 1 for update"},
			run{name: "the others go", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 10}", "timeouts: {lock: 1s}"), code: 3,
				outcome: outcome{stop: report.Locked, removed: 29, locked: 1}, left: 1, checked: within(10)},
			run{name: "in the table", args: "sweep -o table", policy: with(jobsSweep, "batch: {limit: 10}"), left: 1,
				says: []string{"jobs: 1 locked and 0 moved by other sessions; the next run takes them"}},
			session{text: "rollback"},
			run{name: "the next run", policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 1}},
		},
	},
}

// within bounds how many seconds the run may have taken.
func within(seconds float64) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		if r.Elapsed > seconds {
			s.t.Errorf("it took %.1fs", r.Elapsed)
		}
	}
}
