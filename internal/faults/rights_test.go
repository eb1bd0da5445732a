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

// Sweeps of rows with lines that go with them.
var (
	withLines    = with(jobsSweep, "children: [{table: job_lines, key: {id: job_id}}]")
	withLogLines = with(unguarded("lg", "lg_age"), "children: [{table: lg_lines, key: {id: lg_id}}]")
)

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
		file: "one-reader-still-waits", as: "a role without rights", roles: "sweeper: login", query: notOwed, answer: "1,4", rows: countConsumed,
		steps: []step{
			sql("grant select, delete on events to sweeper; grant select on deliveries to sweeper"),
			run{name: "all that is missing at once", role: "sweeper", policy: consumedSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 15,
				says: []string{"missing: DELETE on public.deliveries; UPDATE on one column of public.events, to lock a row FOR UPDATE before its children go",
					`GRANT DELETE ON "public"."deliveries" TO "sweeper"; GRANT UPDATE ("payload") ON "public"."events" TO "sweeper";`},
				lacks: []string{"permission denied"}, checked: fixes},
			run{name: "with all of them", role: "sweeper", policy: consumedSweep, outcome: outcome{stop: report.Drained, removed: 2, children: 5, held: 2}, left: 8},
		},
	},
	{
		file: "one-reader-still-waits", as: "a role that cannot lock an event", roles: "sweeper: login", query: notOwed, answer: "1,4", rows: countConsumed,
		steps: []step{
			sql("grant select, delete on events, deliveries to sweeper"),
			run{name: "the lock", role: "sweeper", policy: consumedSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 15,
				says: []string{"missing: UPDATE on one column of public.events, to lock a row FOR UPDATE before its children go"}, lacks: []string{"DELETE on", "permission denied"}, checked: fixes},
			run{name: "with it", role: "sweeper", policy: consumedSweep, outcome: outcome{stop: report.Drained, removed: 2, children: 5, held: 2}, left: 8},
		},
	},
	{
		file: "one-reader-still-waits", as: "a role that cannot see who is owed", roles: "sweeper: login", query: notOwed, answer: "1,4", rows: countConsumed,
		steps: []step{
			sql("grant select, delete, update on events to sweeper"),
			run{name: "the columns", role: "sweeper", policy: without(consumedSweep, "children"), code: 4, outcome: outcome{stop: report.Refused}, left: 15,
				says: []string{"missing: SELECT (event_id, state) on public.deliveries"}, lacks: []string{"permission denied"}, checked: fixes},
			run{name: "planned", args: "plan", role: "sweeper", policy: without(consumedSweep, "children"), outcome: outcome{stop: report.Planned, due: 2, thisRun: 2, held: 2}, left: 15},
		},
	},
	{
		file: "append-only-trigger", query: countJobs, answer: "5", rows: countJobs,
		steps: []step{
			// A sequence remembers what a transaction that is rolled back did.
			sql(`create sequence tries; create or replace function no_del() returns trigger language plpgsql as $$ begin perform nextval('tries'); if current_setting('app.retention', true) is distinct from 'on' then raise exception 'append only' using errcode = 'P0001'; end if; return old; end $$`),
			run{name: "seen before", args: "check", policy: jobsSweep, outcome: outcome{stop: report.Checked}, left: 5, says: []string{"jobs_ro fires on DELETE"}},
			run{name: "refused, and not tried row by row", policy: jobsSweep, code: 1, outcome: outcome{stop: report.Failed}, left: 5, says: []string{"append only", "P0001"}},
			fact{"select last_value from tries", "1"},
			run{name: "not quite", policy: with(jobsSweep, `set: {app.retention: "off"}`), code: 1, outcome: outcome{stop: report.Failed}, left: 5, says: []string{"append only"}},
			run{name: "as the trigger wants it", policy: with(jobsSweep, `set: {app.retention: "on"}`), outcome: outcome{stop: report.Drained, removed: 5}},
		},
	},
	{
		file: "append-only-trigger", as: "of what goes with a row", query: countJobs, answer: "5", rows: "select (select count(*) from jobs) + (select count(*) from job_lines)",
		steps: []step{
			sql(`drop trigger jobs_ro on jobs; create table job_lines (job_id bigint references jobs, line int, primary key (job_id, line));
				insert into job_lines select id, g from jobs, generate_series(1, 3) g; create trigger lines_ro before delete on job_lines for each row execute function no_del()`),
			run{name: "refused", policy: withLines, code: 1, outcome: outcome{stop: report.Failed}, left: 20, says: []string{"append only", "lines_ro on public.job_lines fires on DELETE"}},
			run{name: "as the trigger wants it", policy: with(withLines, `set: {app.retention: "on"}`), outcome: outcome{stop: report.Drained, removed: 5, children: 15}},
		},
	},
	{
		file: "published-without-identity", query: "select count(*) || ' ' || (select relreplident::text from pg_class where relname = 'lg') from lg", answer: "9 d", rows: "select count(*) from lg",
		steps: []step{
			run{name: "sweep", policy: unguarded("lg", "lg_age"), code: 4, outcome: outcome{stop: report.Refused}, left: 9,
				says: []string{"public.lg is in publication pub_all, which publishes deletes, and has no replica identity", `ALTER TABLE "public"."lg" REPLICA IDENTITY FULL;`}},
			sql("alter publication pub_all set (publish = 'insert, update')"),
			run{name: "deletes are not published", args: "check", policy: unguarded("lg", "lg_age"), outcome: outcome{stop: report.Checked}, left: 9},
			sql("alter publication pub_all set (publish = 'insert, delete')"),
			run{name: "they are again", args: "plan", policy: unguarded("lg", "lg_age"), code: 4, outcome: outcome{stop: report.Refused}, left: 9, checked: fixes},
			run{name: "with an identity", policy: unguarded("lg", "lg_age"), outcome: outcome{stop: report.Drained, removed: 9}},
		},
	},
	{
		file: "published-without-identity", as: "of what goes with a row", query: "select count(*) || ' ' || (select relreplident::text from pg_class where relname = 'lg') from lg", answer: "9 d",
		rows: "select (select count(*) from lg) + (select count(*) from lg_lines)",
		steps: []step{
			sql(`drop publication pub_all; alter table lg add primary key (id); create table lg_lines (lg_id int not null references lg, body text); create index on lg_lines (lg_id);
				insert into lg_lines select id, 'x' from lg, generate_series(1, 2); create publication pub_all for all tables`),
			run{name: "sweep", policy: withLogLines, code: 4, outcome: outcome{stop: report.Refused}, left: 27, says: []string{"public.lg_lines is in publication pub_all, which publishes deletes, and has no replica identity"},
				lacks: []string{"public.lg is in publication"}, checked: fixes},
			run{name: "with an identity", policy: withLogLines, outcome: outcome{stop: report.Drained, removed: 9, children: 18}},
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
