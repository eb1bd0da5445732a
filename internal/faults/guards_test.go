package faults

import (
	"strings"
	"time"

	"github.com/prunectl/prunectl/internal/report"
)

const (
	countEvents = "select count(*) from run_events"
	countJobs   = "select count(*) from jobs"

	dueEvents = `select count(*) from run_events e join runs r on (r.tenant, r.id) = (e.tenant, e.run_id) where r.status in ('completed','failed','cancelled')`
)

// guards are faults of what protects a row.
var guards = []fault{
	{
		file: "guard-after-limit", query: dueEvents + " and e.created_at < now() - interval '30 days'", answer: "40", rows: countEvents,
		steps: []step{
			run{policy: with(eventsSweep, "batch: {limit: 50}"), outcome: outcome{stop: report.Drained, removed: 40, held: 150, batches: 1}, left: 150,
				says: []string{"waiting_approval"}, checked: heldBy("owner", "waiting_approval", 150, 190)},
			fact{"select count(*) from run_events where run_id = 1", "150"},
		},
	},
	{
		file: "old-but-waiting", query: dueEvents, answer: "9", rows: countEvents,
		steps: []step{
			run{policy: eventsSweep, outcome: outcome{stop: report.Drained, removed: 9, held: 15}, left: 15, checked: heldBy("owner", "retry_pending", 3, 120)},
			fact{"select string_agg(distinct run_id::text, ',' order by run_id::text) from run_events", "4,5,6,7,8"},
		},
	},
	{
		file: "state-added-later", query: `select count(*) from run_events e join runs r on (r.tenant, r.id) = (e.tenant, e.run_id) where r.status = 'timed_out'`, answer: "4", rows: countEvents,
		steps: []step{
			run{policy: eventsSweep, outcome: outcome{stop: report.Drained, removed: 4, held: 4}, left: 4, checked: heldBy("owner", "timed_out", 4, 90)},
			fact{"select count(*) from run_events where run_id = 2", "4"},
			run{name: "in the table", args: "sweep -o table", policy: eventsSweep, left: 4, says: []string{"4 held by 1 owner in state timed_out"}},
			run{name: "unknown where both lists are given", policy: with(eventsSweep,
				"guard: {owner: {table: runs, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed, failed, cancelled], live: [running]}}"),
				outcome: outcome{stop: report.Drained, held: 4}, left: 4, says: []string{`["timed_out"] occurs in public.runs.status and is in neither terminal nor live`}},
		},
	},
	{
		file: "terminal-states-that-do-not-exist", query: `select count(*) from runs where status in ('completed','failed','terminated')`, answer: "10", rows: countEvents,
		steps: []step{
			run{name: "the column says what it can be", policy: terminated, code: 4, outcome: outcome{stop: report.Refused}, left: 40,
				says: []string{`"completed" is no value of public.runs.status; it has failed, queued, running, skipped, success`, `"terminated" is no value of public.runs.status`}},
			sql("alter table runs drop constraint runs_status_ck"),
			run{name: "nothing says what it can be", args: "check", policy: terminated, outcome: outcome{stop: report.Checked}, left: 40,
				says: []string{`["completed" "terminated"] does not occur among the first 10000 rows of public.runs.status, which has ["failed" "skipped" "success"]`}},
			run{name: "swept all the same", policy: terminated, outcome: outcome{stop: report.Drained, removed: 10, held: 30}, left: 30,
				says: []string{`["completed" "terminated"] does not occur`}, checked: heldBy("owner", "success", 20, 90)},
			run{name: "and warned of in the table", args: "sweep -o table", policy: terminated, left: 30, says: []string{"20 held by 20 owners in state success"}},
		},
	},
	{
		file: "owner-row-gone", query: `select count(*) from run_events e left join runs r on (r.tenant, r.id) = (e.tenant, e.run_id) where r.id is null`, answer: "5", rows: countEvents,
		steps: []step{
			run{name: "they may not go yet", policy: with(eventsSweep,
				"guard: {owner: {table: runs, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed, failed, cancelled], orphans: due}}"),
				code: 2, left: 10, says: []string{"run_events.guard.owner.orphans", "planned, not in this version"}},
			session{text: "begin; insert into runs values ('t1', 9, 'running', now(), null)"},
			run{name: "the owner is being inserted", policy: eventsSweep, outcome: outcome{stop: report.Drained, removed: 5, orphan: 5}, left: 5, checked: heldBy("orphan", "", 5, 90)},
			session{text: "rollback"},
			run{name: "in the table", args: "sweep -o table", policy: eventsSweep, left: 5, says: []string{"run_events: 5 kept as orphans: their owner is not in public.runs"}},
			fact{"select count(*) from run_events where run_id = 9", "5"},
		},
	},
	{
		file: "nullable-owner-key", query: `select count(*) from e2 join r2 on e2.tenant is not distinct from r2.tenant and e2.run_id = r2.id where r2.status = 'completed'`, answer: "6", rows: "select count(*) from e2",
		steps: []step{
			run{name: "the key is an expression", policy: nullableOwner, code: 4, outcome: outcome{stop: report.Refused}, left: 9,
				says: []string{"(tenant, id) is no primary key or unique index of public.r2"}},
			// A unique index takes several nulls for several keys.
			sql("create unique index r2_plain on r2 (tenant, id)"),
			run{name: "the key is unique but for nulls", policy: nullableOwner, outcome: outcome{stop: report.Drained, removed: 3, held: 3, orphan: 3}, left: 6, checked: heldBy("ownerless", "", 3, 90)},
			fact{"select string_agg(coalesce(tenant, '-') || run_id, ',' order by tenant nulls first) from e2", "-1,-1,-1,a1,a1,a1"},
		},
	},
	{
		file: "null-ages", query: `select count(*) filter (where finished_at < now() - interval '7 days') || ' ' || count(*) filter (where finished_at is null) from jobs`, answer: "4 4", rows: countJobs,
		steps: []step{
			run{policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 4, undated: 4}, left: 8},
			fact{"select count(finished_at) || ' ' || count(*) from jobs", "4 8"},
			run{name: "in the table", args: "sweep -o table", policy: jobsSweep, left: 8, says: []string{"jobs: 4 kept as undated: finished_at is null or too old to be an age"}},
			run{name: "warned of where no state says that the row is live", args: "check", policy: with(jobsSweep, `guard: {none: "rows of a test, on which nothing is owed"}`),
				outcome: outcome{stop: report.Checked}, left: 8, says: []string{"finished_at can be null; such rows are kept and counted as undated"}},
			run{name: "live while null", policy: with(jobsSweep, "guard: {ended: true}"), outcome: outcome{stop: report.Drained}, left: 8},
		},
	},
	{
		file: "hold-flag-that-is-null", query: countJobs + " where hold is not true", answer: "8", rows: countJobs,
		steps: []step{
			run{name: "planned", args: "plan --detailed-exitcode", policy: holding, code: 3, outcome: outcome{stop: report.Planned, due: 8, thisRun: 8, held: 4}, left: 12},
			run{name: "planned in the table", args: "plan -o table", policy: holding, left: 12, says: []string{"rows whose hold is true are kept"}},
			run{policy: holding, outcome: outcome{stop: report.Drained, removed: 8, held: 4, batches: 1}, left: 4, checked: heldBy("hold", "", 4, 39)},
			fact{"select count(*) filter (where hold) || ' ' || count(*) from jobs", "4 4"},
			run{name: "in the table", args: "sweep -o table", policy: holding, left: 4, says: []string{"jobs: 4 held by hold, the oldest from"}},
			run{name: "no flag", policy: strings.Replace(holding, "hold: hold", "hold: payload", 1), code: 4, outcome: outcome{stop: report.Refused}, left: 4,
				says: []string{"public.jobs.payload is text; a hold is true or not", "name a boolean column"}},
			sql("update jobs set hold = null where id = 1; update jobs set hold = false where id = 2"),
			run{name: "let go", policy: holding, outcome: outcome{stop: report.Drained, removed: 2, held: 2}, left: 2, checked: heldBy("hold", "", 2, 39)},
		},
	},
}

// holding is the sweep of the jobs that leaves those with a flag.
var holding = with(jobsSweep, "guard: {state: state, terminal: [done, failed, cancelled], hold: hold}")

const nullableOwner = `
  e2:
    table: e2
    age: created_at
    window: 30d
    guard: {owner: {table: r2, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed]}}
`

var terminated = with(eventsSweep, "guard: {owner: {table: runs, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed, failed, terminated]}}")

// heldBy looks for a reason of the first sweep, its rows and how many days old the oldest of them is.
func heldBy(reason, value string, rows, days int) func(*scene, report.Report) {
	return heldIn(0, reason, value, rows, days)
}

// heldIn is the same for a sweep in the order of the file.
func heldIn(sweep int, reason, value string, rows, days int) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		s.t.Helper()
		for _, h := range r.Sweeps[sweep].HeldBy {
			is := ""
			if h.Value != nil {
				is = *h.Value
			}
			if h.Reason != reason || is != value {
				continue
			}
			if h.Rows != rows {
				s.t.Errorf("%d rows are held by %s %s, not %d", h.Rows, reason, value, rows)
			}
			if h.Oldest == nil || r.Now.Sub(*h.Oldest).Round(24*time.Hour) != time.Duration(days)*24*time.Hour {
				s.t.Errorf("the oldest of them is of %v, and not %d days old", h.Oldest, days)
			}
			return
		}
		s.t.Errorf("nothing is held by %s %s: %+v", reason, value, r.Sweeps[sweep].HeldBy)
	}
}

// each looks for several things in one report.
func each(checks ...func(*scene, report.Report)) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		s.t.Helper()
		for _, check := range checks {
			check(s, r)
		}
	}
}
