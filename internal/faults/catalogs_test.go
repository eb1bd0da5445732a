package faults

import (
	"strings"

	"github.com/prunectl/prunectl/internal/report"
)

const quoted = `
  audit_log:
    table: ["Audit-Log", 'Run "Events"']
    age: createdAt
    window: 30d
    guard: {state: order, terminal: [Done]}
    index: Idx.Created At
  reserved:
    table: [public, select]
    age: user
    window: 30d
    guard: {state: group, terminal: [done]}
    index: select_age
`

const injection = `x"; drop table "select"; --`

const enums = `
  j_enum:
    table: j_enum
    age: at
    window: 30d
    guard: {state: state, terminal: [done, failed]}
    index: j_enum_age
`

// catalogs are faults of names, types, constraints and indexes.
var catalogs = []fault{
	{
		file:  "names-that-need-quotes",
		query: `select (select count(*) from "Audit-Log"."Run ""Events""" where "order" = 'Done') || ' ' || (select count(*) from "select" where "group" = 'done')`, answer: "6 1",
		rows: `select (select count(*) from "Audit-Log"."Run ""Events""") + (select count(*) from "select")`,
		steps: []step{
			notThere("table", "table", `table: [public, '`+injection+`']`, `table public.x"; drop table "select"; -- does not exist`),
			notThere("column", "age", `age: '`+injection+`'`, `public.select has no column`),
			notThere("state", "guard", `guard: {state: '`+injection+`', terminal: [done]}`, `public.select has no column`),
			notThere("index", "index", `index: '`+injection+`'`, `public.select has no index`),
			notThere("owner", "guard", `guard: {owner: {table: [public, '`+injection+`'], key: {id: id}, state: group, terminal: [done]}}`, `does not exist`),
			run{name: "a value is a value", args: "plan", policy: with(reserved, `guard: {state: group, terminal: ['x''); drop table "select"; --']}`),
				outcome: outcome{stop: report.Planned, held: 2}, left: 10},
			run{name: "a word that is no label", args: "plan", policy: strings.Replace(quoted, "[Done]", `['Done''); --']`, 1), code: 4,
				outcome: outcome{sweep: "audit_log", stop: report.Refused}, also: []outcome{{sweep: "reserved", stop: report.Planned, due: 1, thisRun: 1, held: 1}}, left: 10},
			run{name: "a dot splits once", args: "plan", policy: strings.Replace(quoted, `["Audit-Log", 'Run "Events"']`, `Audit-Log.Run "Events"`, 1),
				outcome: outcome{sweep: "audit_log", stop: report.Planned, due: 6, thisRun: 6, held: 2}, also: []outcome{{sweep: "reserved", stop: report.Planned, due: 1, thisRun: 1, held: 1}}, left: 10},
			sql(`create table "x.y" as select now() - interval '90 days' as at; create index on "x.y" (at)`),
			run{name: "a dot in a name", args: "plan", policy: with(without(unguarded("dotted", ""), "index"), "table: [public, x.y]"), outcome: outcome{stop: report.Planned, due: 1, thisRun: 1}, left: 10},
			run{policy: quoted, outcome: outcome{sweep: "audit_log", stop: report.Drained, removed: 6, held: 2},
				also: []outcome{{sweep: "reserved", stop: report.Drained, removed: 1, held: 1}}, left: 3},
			fact{`select count(*) || ' ' || (select count(*) from "select") from "Audit-Log"."Run ""Events"""`, "2 1"},
		},
	},
	{
		file: "enum-states", query: "select count(*) from j_enum where state in ('done','failed')", answer: "20", rows: "select count(*) from j_enum",
		steps: []step{
			run{name: "an unknown label", policy: strings.Replace(enums, "failed]", "failed, cancelled]", 1), code: 4, outcome: outcome{stop: report.Refused}, left: 40,
				says: []string{`"cancelled" is no value of public.j_enum.state; it has queued, running, done, failed`}},
			run{policy: enums, outcome: outcome{stop: report.Drained, removed: 20, held: 20}, left: 20},
			sql("alter type st add value 'cancelled'"),
			sql("insert into j_enum select 100 + g, 'cancelled', now() - interval '90 days' from generate_series(1, 5) g"),
			run{name: "a label that no list has", policy: enums, outcome: outcome{stop: report.Drained, held: 25}, left: 25, checked: heldBy("state", "cancelled", 5, 90)},
			run{name: "a label that was added", policy: strings.Replace(enums, "failed]", "failed, cancelled]", 1), outcome: outcome{stop: report.Drained, removed: 5, held: 20}, left: 20},
		},
	},
	{
		file: "undeletable-row-at-the-head", query: "select count(*) from jobs j where not exists (select 1 from pins p where p.job_id = j.id)", answer: "49", rows: countJobs,
		steps: []step{
			sql("create table notes (id int primary key, at timestamptz not null); create index notes_at on notes (at); insert into notes select g, now() - interval '90 days' from generate_series(1, 3) g"),
			run{name: "the others go, and another table is swept", policy: with(jobsSweep, "batch: {limit: 10}") + unguarded("notes", "notes_at"), code: 1,
				outcome: outcome{stop: report.Stuck, removed: 49, stuck: 1}, also: []outcome{{sweep: "notes", stop: report.Drained, removed: 3}}, left: 1, others: true,
				says: []string{"pins_job_id_fkey", "public.pins", "1 of 2 sweeps failed (exit 1)"}},
			fact{"select (select id from jobs) || ' ' || (select count(*) from notes)", "1 0"},
			run{name: "the same story again", policy: with(jobsSweep, "batch: {limit: 10}"), code: 1, outcome: outcome{stop: report.Stuck, stuck: 1}, left: 1,
				says: []string{"pins_job_id_fkey", "public.pins"}},
			run{name: "in the table", args: "sweep -o table", policy: jobsSweep, code: 1, left: 1, says: []string{"jobs: 1 stuck on pins_job_id_fkey from public.pins"}},
			run{name: "seen before", args: "check", policy: jobsSweep, outcome: outcome{stop: report.Checked}, left: 1, says: []string{"pins_job_id_fkey", "foreign key"}},
			sql("delete from pins"),
			run{name: "let go", policy: jobsSweep, outcome: outcome{stop: report.Drained, removed: 1}},
		},
	},
	{
		file: "invalid-index-of-the-right-name", query: "select indisvalid from pg_index where indexrelid = 'jobs_age'::regclass", answer: "f", rows: countJobs,
		steps: []step{
			run{policy: jobsSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 50000,
				says: []string{"index jobs_age is not valid: a concurrent build of it failed; drop and build it again"}},
			run{name: "not named", policy: without(jobsSweep, "index"), code: 4, outcome: outcome{stop: report.Refused}, left: 50000, says: []string{"jobs_age is not valid"}},
			run{name: "planned", args: "plan", policy: jobsSweep, code: 4, outcome: outcome{stop: report.Refused}, left: 50000},
			sql("reindex index jobs_age"),
			run{name: "built again", args: "check", policy: jobsSweep, outcome: outcome{stop: report.Checked}, left: 50000},
		},
	},
	{
		file: "index-named-and-read-whole", query: "select count(*) from wi where at < now() - interval '30 days'", answer: "0", rows: "select count(*) from wi",
		steps: []step{
			run{name: "the age is the second column", policy: unguarded("wi", "wi_owner_at"), code: 4, outcome: outcome{stop: report.Refused}, left: 100000,
				says: []string{"index wi_owner_at leads with (owner, at), not with at", "CREATE INDEX CONCURRENTLY ON"}},
			run{name: "the age is an expression", policy: with(unguarded("wi", "wi_at"), `age: "at + interval '30 days'"`), code: 4, outcome: outcome{stop: report.Refused}, left: 100000,
				says: []string{`public.wi has no column "at + interval '30 days'"`}},
			run{name: "the age leads", policy: unguarded("wi", "wi_at"), outcome: outcome{stop: report.Drained}, left: 100000, checked: index("wi_at")},
			run{name: "the one that serves is found", policy: without(unguarded("wi", "wi_at"), "index"), outcome: outcome{stop: report.Drained}, left: 100000, checked: index("wi_at")},
			sql("drop index wi_at"),
			run{name: "none that serves", policy: without(unguarded("wi", "wi_at"), "index"), code: 4, outcome: outcome{stop: report.Refused}, left: 100000, says: []string{"no index leads with at"}},
		},
	},
}

var reserved = "\n  reserved:" + strings.SplitN(quoted, "  reserved:", 2)[1]

// notThere is a run whose policy names something that does not exist, with a statement in its name.
func notThere(what, key, line, says string) run {
	return run{name: what + " with a statement in its name", policy: with(without(reserved, key), line), code: 4, outcome: outcome{stop: report.Refused}, left: 10, says: []string{says}}
}

// index looks for the index that served.
func index(name string) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		if got := r.Sweeps[0].Arms[0].Index; got != name {
			s.t.Errorf("the index is %s, not %s", got, name)
		}
	}
}
