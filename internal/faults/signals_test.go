package faults

import (
	"syscall"

	"github.com/prunectl/prunectl/internal/report"
)

const leftJobs = "select count(*) from jobs"

// slowJobs takes a second a batch: the batches are not adapted.
var slowJobs = with(jobsSweep, "batch: {limit: 50, target: 1min}")

const (
	oneBatch until = "select count(*) <= 450 from jobs"
	held     until = `select exists (select from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database()))`
)

// signals are faults of runs that are ended, and of runs that meet.
var signals = []fault{
	stopped("SIGTERM", syscall.SIGTERM, 143),
	stopped("SIGINT", syscall.SIGINT, 130),
	stopped("SIGHUP", syscall.SIGHUP, 129),
	{
		file: "signal-in-mid-batch", as: "a second signal", query: leftJobs, answer: "500", rows: countJobs,
		steps: []step{
			// Two batches' worth in one, so that there is time for both signals.
			run{policy: with(slowJobs, "batch: {limit: 500, target: 1min}"), code: 130, outcome: outcome{stop: report.Signal}, left: 500, says: []string{"SIGINT: ending after what is under way", "stopped by SIGINT (exit 130)"},
				meanwhile: []step{deletes, signal(syscall.SIGINT), hears("SIGINT: ending"), deletes, signal(syscall.SIGINT), isGone}},
		},
	},
	{
		file: "signal-in-mid-batch", as: "SIGKILL", query: leftJobs, answer: "500", rows: countJobs,
		steps: []step{
			run{name: "killed", policy: slowJobs, code: -1, left: 450, meanwhile: []step{oneBatch, deletes, signal(syscall.SIGKILL), isGone}},
			sql("drop trigger jobs_slow on jobs"),
			run{name: "the next run goes on", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: 450, batches: 9}},
		},
	},
	{
		file: "signal-in-mid-batch", as: "between two sweeps", query: leftJobs, answer: "500", rows: countJobs,
		steps: []step{
			sql("create table notes (id int primary key, at timestamptz not null); create index notes_at on notes (at); insert into notes values (1, now() - interval '90 days')"),
			run{policy: with(jobsSweep, "batch: {limit: 50, target: 1min}") + unguarded("notes", "notes_at"), code: 143,
				outcome: outcome{stop: report.Signal, removed: 50}, also: []outcome{{sweep: "notes", stop: report.NotReached}}, left: 450, meanwhile: []step{deletes, signal(syscall.SIGTERM)}},
			fact{"select count(*) from notes", "1"},
		},
	},
	{
		file: "next-run-while-one-works", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			run{name: "the first", policy: slowJobs, code: -1, others: true, left: 450 - 50, meanwhile: []step{
				held,
				run{name: "the second", policy: slowJobs, code: 5, outcome: outcome{stop: report.Busy}, others: true, left: anything, says: []string{"1 of 1 sweep busy (exit 5)"}},
				run{name: "the third, where busy is well", args: "sweep --busy-ok", policy: slowJobs, outcome: outcome{stop: report.Busy}, others: true, left: anything},
				act(func(s *scene) {
					there := *s
					there.db = load(s.entry, "next-run-while-one-works")
					sql("drop trigger jobs_slow on jobs").do(&there)
					run{name: "in another database", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: 500}}.do(&there)
				}),
				run{name: "by another policy", args: "sweep --max-rows 1", policy: named(with(jobsSweep, "window: 38d"), "jobs_by_others"), outcome: outcome{stop: report.Budget, by: report.ByRows, removed: 1}, others: true, left: anything},
			}},
		},
	},
}

// stopped is a run that a signal ends after its second batch: what is in hand may end, and the report says what went.
func stopped(name string, sig syscall.Signal, code int) fault {
	return fault{
		file: "signal-in-mid-batch", as: name, query: leftJobs, answer: "500", rows: countJobs,
		steps: []step{
			run{policy: slowJobs, code: code, outcome: outcome{stop: report.Signal, removed: 100, batches: 2}, left: 400, says: []string{name + ": ending after what is under way", "stopped by " + name},
				meanwhile: []step{oneBatch, deletes, signal(sig)},
				checked: func(s *scene, r report.Report) {
					if r.Signal != name {
						s.t.Errorf("the report says signal %q", r.Signal)
					}
				}},
			isGone,
			sql("drop trigger jobs_slow on jobs"),
			run{name: "the next run goes on", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: 400}},
		},
	}
}
