package faults

import "github.com/prunectl/prunectl/internal/report"

// bounds are faults of limits, ceilings and time.
var bounds = []fault{
	{
		file: "limit-zero-or-nonsense", query: countJobs, answer: "1", rows: countJobs,
		steps: []step{
			refused("batch 0", with(jobsSweep, "batch: {limit: 0}"), 1, "jobs.batch.limit", `0`),
			refused("batch -5", with(jobsSweep, "batch: {limit: -5}"), 1, "jobs.batch.limit", `-5`),
			refused("batch of a word", with(jobsSweep, "batch: {limit: abc}"), 1, "jobs.batch.limit", `"abc"`),
			refused("batch NaN", with(jobsSweep, "batch: {limit: .nan}"), 1, "jobs.batch.limit", `.nan`),
			refused("batch 3000000000", with(jobsSweep, "batch: {limit: 3000000000}"), 1, "jobs.batch.limit", "3000000000", "100000"),
			refused("ceiling of no batches", with(jobsSweep, "ceiling: {batches: 0}"), 1, "jobs.ceiling.batches", `0`),
			refused("ceiling of no rows", with(jobsSweep, "ceiling: {rows: 0}"), 1, "jobs.ceiling.rows", `0`),
			refused("ceiling NaN", with(jobsSweep, "ceiling: {rows: NaN}"), 1, "jobs.ceiling.rows", `"NaN"`),
			refused("ceiling of no time", with(jobsSweep, "ceiling: {time: 0s}"), 1, "jobs.ceiling.time", `"0s"`),
			run{args: "sweep --max-rows 0", policy: jobsSweep, code: 2, left: 1, says: []string{"--max-rows", `"0"`}},
			run{args: "sweep --max-rows -1", policy: jobsSweep, code: 2, left: 1, says: []string{"--max-rows"}},
			run{args: "sweep --max-time 0s", policy: jobsSweep, code: 2, left: 1, says: []string{"--max-time", `"0s"`}},
			run{name: "and the least that is right", policy: with(jobsSweep, "batch: {limit: 1}", "ceiling: {batches: 1, rows: 1}"), outcome: outcome{stop: report.Drained, removed: 1}},
		},
	},
	{
		file: "equal-ages-at-the-batch-edge", as: "with an index that orders them", query: "select count(*) || ' ' || count(distinct finished_at) from jobs", answer: "250 1", rows: countJobs,
		steps: []step{
			run{policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 250, batches: 3}},
		},
	},
	{
		file: "equal-ages-at-the-batch-edge", as: "each batch counted by a trigger", query: "select count(*) || ' ' || count(distinct finished_at) from jobs", answer: "250 1", rows: countJobs,
		steps: []step{
			sql("create table batches (n int)"),
			sql("create function counts() returns trigger language plpgsql as $$ begin insert into batches select count(*) from gone; return null; end $$"),
			sql("create trigger jobs_counted after delete on jobs referencing old table as gone for each statement execute function counts()"),
			run{policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 250, batches: 3}},
			fact{"select string_agg(n::text, ',' order by n desc) from batches where n > 0", "100,100,50"},
		},
	},
	{
		file: "equal-ages-at-the-batch-edge", as: "with an index on the age alone", query: "select count(*) || ' ' || count(distinct finished_at) from jobs", answer: "250 1", rows: countJobs,
		steps: []step{
			sql("drop index jobs_age; create index jobs_age on jobs (finished_at); analyze jobs"),
			run{policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 250, batches: 3}, says: []string{"about 250 rows share one age, more than a batch examines, and jobs_age does not order them"}},
		},
	},
	{
		file: "ceiling-looks-finished", as: "the last batch just full", query: countJobs, answer: "1000", rows: countJobs,
		steps: []step{
			run{name: "four batches", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 50}", "ceiling: {batches: 4}"), code: 3,
				outcome: outcome{stop: report.Ceiling, by: report.ByBatches, removed: 200, batches: 4}, left: 800, says: []string{"1 of 1 sweep may have left more due"}},
			fact{"select min(id) || ' ' || count(*) from jobs", "201 800"},
			run{name: "sixteen more", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 50}", "ceiling: {batches: 16}"),
				outcome: outcome{stop: report.Drained, removed: 800, batches: 16}},
			run{name: "nothing more", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 50}", "ceiling: {batches: 16}"), outcome: outcome{stop: report.Drained}},
		},
	},
	{
		file: "ceiling-looks-finished", as: "one row more", query: countJobs, answer: "1000", rows: countJobs,
		steps: []step{
			sql("insert into jobs (state, created_at, finished_at) values ('done', now() - interval '40 days', now() - interval '20 days')"),
			run{name: "four batches", policy: with(jobsSweep, "batch: {limit: 50}", "ceiling: {batches: 4}"),
				outcome: outcome{stop: report.Ceiling, by: report.ByBatches, removed: 200, batches: 4}, left: 801},
			run{name: "sixteen more", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 50}", "ceiling: {batches: 16}"), code: 3,
				outcome: outcome{stop: report.Ceiling, by: report.ByBatches, removed: 800, batches: 16}, left: 1},
			run{name: "one more", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 50}", "ceiling: {batches: 16}"), outcome: outcome{stop: report.Drained, removed: 1}},
		},
	},
	{
		file: "ceiling-looks-finished", as: "by rows", query: countJobs, answer: "1000", rows: countJobs,
		steps: []step{
			run{name: "of the sweep", args: "sweep --detailed-exitcode", policy: with(jobsSweep, "ceiling: {rows: 250}"), code: 3,
				outcome: outcome{stop: report.Ceiling, by: report.ByRows, removed: 250, batches: 3}, left: 750},
			run{name: "of the run", args: "sweep --detailed-exitcode --max-rows 250", policy: jobsSweep, code: 3,
				outcome: outcome{stop: report.Budget, by: report.ByRows, removed: 250, batches: 3}, left: 500},
			run{name: "all that is left", args: "sweep --detailed-exitcode --max-rows 500", policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 500, batches: 5}},
		},
	},
	{
		file: "time-below-one-batch", as: "of the sweep", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			run{args: "sweep --detailed-exitcode", policy: with(jobsSweep, "batch: {limit: 100, target: 1min}", "ceiling: {time: 1s}"), code: 3,
				outcome: outcome{stop: report.Ceiling, by: report.ByTime, removed: 100, batches: 1}, left: 400, checked: slowest(2)},
		},
	},
	{
		file: "time-below-one-batch", as: "of the run", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			run{args: "sweep --detailed-exitcode --max-time 1s", policy: with(jobsSweep, "batch: {limit: 100, target: 1min}"), code: 3,
				outcome: outcome{stop: report.Budget, by: report.ByTime, removed: 100, batches: 1}, left: 400, checked: slowest(2)},
		},
	},
}

// refused is a run that ends before any row was touched, for what is wrong in the policy.
func refused(name, policy string, left int, says ...string) run {
	return run{name: name, policy: policy, code: 2, left: left, says: says}
}

// slowest looks for the time of the slowest batch, by which the ceiling can be seen to be too low.
func slowest(seconds float64) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		if got := r.Sweeps[0].SlowestBatch; got < seconds || got > r.Elapsed {
			s.t.Errorf("the slowest batch took %.2fs of %.2fs; each takes %.0fs or more", got, r.Elapsed, seconds)
		}
	}
}
