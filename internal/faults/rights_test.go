package faults

import (
	"fmt"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

const auditSweep = `
  audit:
    table: audit
    age: at
    window: 90d
    guard: {none: "an audit line, on which nothing is owed"}
`

// rights are faults of who sweeps, and of whether the server takes a delete at all.
var rights = []fault{
	{
		file: "row-security-hides-rows", roles: "sweeper: login; faults_bypass: login bypassrls", query: "select count(*) from audit", answer: "30", rows: "select count(*) from audit",
		steps: []step{
			run{role: "sweeper", policy: auditSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 30, says: []string{"row security would hide rows of public.audit from this role", "BYPASSRLS"}},
			run{name: "planned", args: "plan", role: "sweeper", policy: auditSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 30},
			run{name: "a tenant that the sweep names", role: "sweeper", policy: with(auditSweep, `set: {row_security: "on", app.tenant: t1}`), outcome: outcome{stop: report.Drained, removed: 10}, left: 20,
				says: []string{"only the rows that its policies show are swept"}},
			fact{"select string_agg(distinct tenant, ',' order by tenant) from audit", "t0,t2"},
			sql("grant select, delete on audit to faults_bypass"),
			run{name: "a role that sees all", role: "faults_bypass", policy: auditSweep, outcome: outcome{stop: report.Drained, removed: 20}},
		},
	},
	{
		file: "delete-without-select", roles: "sweeper: login", query: "select has_table_privilege('sweeper','run_events','delete') || ' ' || has_table_privilege('sweeper','run_events','select')", answer: "true false", rows: countEvents,
		steps: []step{
			run{name: "all that is missing at once", role: "sweeper", policy: eventsSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 3,
				says:  []string{"missing: SELECT on public.run_events; SELECT (tenant, id, status) on public.runs; UPDATE on one column of public.runs, to lock it FOR SHARE"},
				lacks: []string{"permission denied"}},
			sql("grant select on run_events to sweeper"),
			run{name: "the owner's columns", role: "sweeper", policy: eventsSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 3,
				says: []string{"missing: SELECT (tenant, id, status) on public.runs; UPDATE on one column of public.runs"}},
			sql("grant select (tenant, id, status) on runs to sweeper"),
			run{name: "the owner's lock", role: "sweeper", policy: eventsSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 3,
				says: []string{"missing: UPDATE on one column of public.runs, to lock it FOR SHARE", `GRANT UPDATE ("status") ON "public"."runs" TO "sweeper";`}},
			run{name: "not needed where terminal states are final", args: "plan", role: "sweeper", policy: with(eventsSweep,
				"guard: {owner: {table: runs, key: {tenant: tenant, run_id: id}, state: status, terminal: [completed, failed, cancelled], final: true}}"),
				outcome: outcome{stop: report.Planned, due: 3, thisRun: 3}, left: 3},
			sql("grant update (status) on runs to sweeper"),
			run{name: "with all of them", role: "sweeper", policy: eventsSweep, outcome: outcome{stop: report.Drained, removed: 3}},
		},
	},
	{
		file: "read-only-target", as: "by default", query: countJobs, answer: "5", rows: countJobs,
		steps: []step{
			run{policy: jobsSweep, params: "options=-c default_transaction_read_only=on", code: 1, left: 5,
				says: []string{"read-only target: transactions are read-only by default (default_transaction_read_only)"}},
			run{args: "check", policy: jobsSweep, params: "options=-c default_transaction_read_only=on", code: 1, left: 5, says: []string{"read-only target"}},
			run{args: "plan", policy: jobsSweep, params: "options=-c default_transaction_read_only=on", outcome: outcome{stop: report.Planned, due: 5, thisRun: 5}, left: 5},
		},
	},
	{
		file: "read-only-target", as: "a standby", query: countJobs, answer: "5", rows: countJobs,
		steps: []step{act(func(s *scene) {
			primary := pgtest.Own(s.t, pgserver.Options{})
			standby := pgtest.Own(s.t, pgserver.Options{StandbyOf: primary})
			onPrimary := *s
			onPrimary.db = &pgtest.DB{Name: "postgres", DSN: primary.DSN("postgres")}
			fill(s.t, onPrimary.db, "read-only-target")
			// What the primary has, the standby has seen.
			behind := &pgtest.DB{Name: "postgres", DSN: standby.DSN("postgres")}
			fact{"select pg_is_in_recovery()", "t"}.do(&scene{t: s.t, db: behind})
			until("select to_regclass('jobs') is not null").do(&scene{t: s.t, db: behind})
			until(`select count(*) = 5 from jobs`).do(&scene{t: s.t, db: behind})

			both := func(*scene) string {
				return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable", standby.Port, primary.Port)
			}
			for _, step := range []step{
				run{name: "the standby", policy: jobsSweep, dsn: func(*scene) string { return behind.DSN }, code: 1, left: 5, says: []string{"read-only target: the server is a standby"}},
				run{name: "the first of two", policy: jobsSweep, dsn: both, code: 1, left: 5, says: []string{"read-only target: the server is a standby"}},
				run{name: "the standby can be planned on", args: "plan", policy: jobsSweep, dsn: both, outcome: outcome{stop: report.Planned, due: 5, thisRun: 5}, left: 5},
				run{name: "the writable one of two", policy: jobsSweep, dsn: both, params: "target_session_attrs=read-write", outcome: outcome{stop: report.Drained, removed: 5}},
			} {
				step.do(&onPrimary)
			}
		})},
	},
}
