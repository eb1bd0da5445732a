package faults

import (
	"syscall"

	"github.com/prunectl/prunectl/internal/report"
)

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
		file: "signal-in-mid-batch", as: "a second signal", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			// Two batches' worth in one, so that there is time for both signals.
			run{policy: with(slowJobs, "batch: {limit: 500, target: 1min}"), code: 130, outcome: outcome{stop: report.Signal}, left: 500, says: []string{"SIGINT: ending after what is under way", "stopped by SIGINT (exit 130)"},
				meanwhile: []step{deletes, signal(syscall.SIGINT), hears("SIGINT: ending"), deletes, signal(syscall.SIGINT), isGone}},
		},
	},
	{
		file: "signal-in-mid-batch", as: "SIGKILL", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			// The batch in hand is done or not, as a whole, and nobody is left to count it.
			run{name: "killed", policy: slowJobs, code: -1, left: anything, meanwhile: []step{oneBatch, deletes, signal(syscall.SIGKILL), isGone}},
			fact{"select count(*) in (350, 400, 450) from jobs", "t"},
			sql("drop trigger jobs_slow on jobs"),
			run{name: "the next run goes on", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: anything}},
		},
	},
	{
		file: "signal-in-mid-batch", as: "between two sweeps", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			sql("create table notes (id int primary key, at timestamptz not null); create index notes_at on notes (at); insert into notes values (1, now() - interval '90 days')"),
			sql("update jobs set finished_at = finished_at + id * interval '1 second'"),
			run{policy: with(jobsSweep, "batch: {limit: 50, target: 1min}") + unguarded("notes", "notes_at"), code: 143,
				outcome: outcome{stop: report.Signal, removed: 50}, also: []outcome{{sweep: "notes", stop: report.NotReached}}, left: 450, meanwhile: []step{deletes, signal(syscall.SIGTERM)}},
			fact{"select count(*) from notes", "1"},
		},
	},
	{
		file: "next-run-while-one-works", query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			sql("create table notes (id int primary key, at timestamptz not null); create index notes_at on notes (at); insert into notes values (1, now() - interval '90 days')"),
			run{name: "the first", policy: slowJobs, code: -1, left: anything, meanwhile: []step{
				held,
				run{name: "the second", policy: slowJobs, code: 5, outcome: outcome{stop: report.Busy}, left: anything, others: true, says: []string{"1 of 1 sweep busy (exit 5)"}},
				run{name: "the third, where busy is well", args: "sweep --busy-ok", policy: slowJobs, outcome: outcome{stop: report.Busy}, left: anything, others: true},
				run{name: "by another policy", policy: unguarded("notes", "notes_at"), outcome: outcome{stop: report.Drained, removed: 1}, left: anything, others: true},
				act(func(s *scene) {
					there := *s
					there.db = load(s.t, "next-run-while-one-works")
					sql("drop trigger jobs_slow on jobs").do(&there)
					run{name: "in another database", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: 500}}.do(&there)
				}),
				deletes, signal(syscall.SIGKILL), isGone,
			}},
			fact{"select count(*) % 50 = 0 and count(*) > 0 from jobs", "t"},
			sql("drop trigger jobs_slow on jobs"),
			run{name: "the next, with nothing cleaned up by hand", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: anything}},
		},
	},
}

// stopped is a run that a signal ends in its second batch: what is in hand may end, and the report says what went.
func stopped(name string, sig syscall.Signal, code int) fault {
	return fault{
		file: "signal-in-mid-batch", as: name, query: countJobs, answer: "500", rows: countJobs,
		steps: []step{
			run{policy: slowJobs, code: code, outcome: outcome{stop: report.Signal, removed: anything}, left: anything, says: []string{name + ": ending after what is under way", "stopped by " + name},
				meanwhile: []step{oneBatch, deletes, signal(sig)},
				checked: func(s *scene, r report.Report) {
					if r.Signal != name {
						s.t.Errorf("the report says signal %q", r.Signal)
					}
				}},
			fact{"select count(*) in (350, 400) from jobs", "t"},
			isGone,
			sql("drop trigger jobs_slow on jobs"),
			run{name: "the next run goes on", policy: slowJobs, outcome: outcome{stop: report.Drained, removed: anything}},
		},
	}
}
