package policyfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/policy/policyfile"
)

// purge is a file of one purge: the keys of base that are not given, then those that are, from line 6 on; "-key" takes one of
// base out.
func purge(lines ...string) string {
	file := []string{"version: 1", "purges:", "  tenant:"}
	for _, have := range []string{"    key: tenant_id", "    tables: [{table: public.jobs}]"} {
		key, _, _ := strings.Cut(strings.TrimSpace(have), ":")
		at := len(file)
		file = append(file, have)
		for i, l := range lines {
			switch {
			case strings.HasPrefix(l, key+":"):
				file[at] = "    " + l
			case l == "-"+key:
				file = file[:at]
			default:
				continue
			}
			lines = append(append([]string(nil), lines[:i]...), lines[i+1:]...)
			break
		}
	}
	for _, l := range lines {
		file = append(file, "    "+l)
	}
	return strings.Join(file, "\n") + "\n"
}

// refusedPurges are the refusals of what removes a tenant.
var refusedPurges = []refusal{
	// the purges themselves
	{"purges without a value", "version: 1\npurges:\n", []string{"2:1: purges: there is no value; write a mapping of names to purges, as in purges: {tenant: {key: tenant_id, tables: [...]}}"}},
	{"purges empty", "version: 1\npurges: {}\n", []string{"2:9: purges: there is no purge; write at least one, or leave the key out"}},
	{"purges empty, and a sweep", top("purges: {}"), []string{"2:9: purges: there is no purge; write at least one, or leave the key out"}},
	{"purges as a list", "version: 1\npurges: [{key: a}]\n", []string{"2:9: purges: found a list; write a mapping of names to purges, as in purges: {tenant: {key: tenant_id, tables: [...]}}"}},
	{"a purge without a name", "version: 1\npurges:\n  key: tenant_id\n  tables: [{table: public.jobs}]\n", []string{
		"3:3: purges: these are the keys of a purge, and it has no name; write one above them, as in purges: {tenant: {key: tenant_id, tables: [...]}}"}},
	{"a purge without a value", "version: 1\npurges:\n  tenant:\n", []string{"3:3: purges.tenant: there is no value; write a mapping of key, tables, exclude, batch, timeouts, pause, set"}},
	{"a purge as a column", "version: 1\npurges: {tenant: tenant_id}\n", []string{`2:18: purges.tenant: found the text "tenant_id"; write a mapping of key, tables, exclude, batch, timeouts, pause, set`}},
	{"a purge empty", "version: 1\npurges: {tenant: {}}\n", []string{"2:18: purges.tenant: the mapping is empty; write one of key, tables, exclude, batch, timeouts, pause, set, or leave the key out"}},
	{"name of a purge", strings.Replace(purge(), "tenant:", "Tenant A:", 1), []string{
		`3:3: purges.Tenant A: "Tenant A" is no name of a purge; write a lower-case letter, then letters, digits and _, 48 at most`}},
	{"a purge and no version", "purges: {tenant: {key: a, tables: [{table: b.c}]}}\n", []string{"1:1: version is missing; write version: 1"}},
	{"two purges of one name", purge() + "  tenant: {key: a, tables: [{table: b.c}]}\n", []string{"6:3: purges: key tenant stands here and in line 3; keep one of them"}},
	{"purge at the top", strings.Replace(purge(), "purges:", "purge:", 1), []string{`2:1: unknown key "purge"; did you mean purges?`}},
	{"purges in a sweep", sweep("purges: {}"), []string{`8:5: jobs: unknown key "purges"; did you mean purges, a key at the top of the file?`}},
	{"tables at the top", top("tables: [public.jobs]"), []string{`2:1: unknown key "tables"; did you mean tables, a key of the purge itself?`}},
	{"an anchor in a purge", purge("set: &s {a.b: x}"), []string{"6:10: purges.tenant.set: anchors (&) are not part of the language; write each sweep out"}},

	// key
	{"no key and no column", purge("-key"), []string{"3:3: purges.tenant.key: no column says whose the rows of public.jobs are; name it here for all tables, or as the column of each"}},
	{"no key, and a table without a column", purge("-key", "tables: [{table: public.a, column: org}, {table: public.b}, {table: public.c}]"), []string{
		"3:3: purges.tenant.key: no column says whose the rows of public.b, public.c are; name it here for all tables, or as the column of each"}},
	{"no key, and a column that could not be read", purge("-key", "tables: [{table: public.a, column: 7}]"), []string{
		`4:40: purges.tenant.tables.0.column: found the number 7; write it in quotes, "7", if that is what is meant`}},
	{"no key, and a column by another word", purge("-key", "tables: [{table: public.a, colunm: org}]"), []string{`4:32: purges.tenant.tables.0: unknown key "colunm"; did you mean column?`}},
	{"no key, and tables that could not be read", purge("-key", "tables: [{tabl: public.a}, public.b, {table: c}]"), []string{
		`4:15: purges.tenant.tables.0: unknown key "tabl"; did you mean table?`,
		`4:32: purges.tenant.tables.1: found the text "public.b"; write {table: public.b}`,
		`4:50: purges.tenant.tables.2.table: "c" has no schema; write public.c, or defaults: {schema: public} at the top`}},
	{"key of a number", purge("key: 7"), []string{`4:10: purges.tenant.key: found the number 7; write it in quotes, "7", if that is what is meant`}},
	{"key of nothing", purge("key:"), []string{"4:5: purges.tenant.key: there is no value; write the name of a column, as in key: tenant_id"}},
	{"key as a list", purge("key: [a, b]"), []string{"4:10: purges.tenant.key: found a list; write the name of a column, as in key: tenant_id"}},
	{"key with blanks", purge(`key: " a"`), []string{`4:10: purges.tenant.key: " a" has blanks round it; write a`}},
	{"key by the word tenant", purge("-key", "tenant: tenant_id"), []string{`5:5: purges.tenant: unknown key "tenant"; did you mean key?`}},
	{"key by the word tenant_id", purge("-key", "tenant_id: org"), []string{`5:5: purges.tenant: unknown key "tenant_id"; did you mean key?`}},
	{"key by the word column", purge("-key", "column: tenant_id"), []string{`5:5: purges.tenant: unknown key "column"; did you mean key?`}},

	// tables
	{"no tables", purge("-tables"), []string{"3:3: purges.tenant: tables is missing; write tables: [{table: public.messages}, {table: public.jobs, column: org}]"}},
	{"tables of nothing", purge("tables:"), []string{"5:5: purges.tenant.tables: there is no value; write a list of mappings, as in tables: [{table: public.messages}, {table: public.jobs, column: org}]"}},
	{"tables empty", purge("tables: []"), []string{"5:13: purges.tenant.tables: the list is empty; write a list of mappings, as in tables: [{table: public.messages}, {table: public.jobs, column: org}]"}},
	{"tables as a mapping", purge("tables: {table: public.jobs}"), []string{"5:13: purges.tenant.tables: found a mapping; write a list of mappings, as in tables: [{table: public.messages}, {table: public.jobs, column: org}]"}},
	{"tables as names", purge("tables: [public.jobs, 'public.runs']"), []string{
		`5:14: purges.tenant.tables.0: found the text "public.jobs"; write {table: public.jobs}`, `5:27: purges.tenant.tables.1: found the text "public.runs"; write {table: "public.runs"}`}},
	{"tables as a number", purge("tables: [7]"), []string{"5:14: purges.tenant.tables.0: found the number 7; write a mapping of table, column, children"}},
	{"a table empty", purge("tables: [{}]"), []string{"5:14: purges.tenant.tables.0: the mapping is empty; write one of table, column, children, or leave the key out"}},
	{"a column without a table", purge("tables: [{column: org}]"), []string{"5:14: purges.tenant.tables.0: table is missing; write table: public.jobs"}},
	{"a table without a schema", purge("tables: [{table: jobs}]"), []string{`5:22: purges.tenant.tables.0.table: "jobs" has no schema; write public.jobs, or defaults: {schema: public} at the top`}},
	{"a table twice", purge("tables: [{table: a.b}, {table: [a, b], column: tenant_id}]"), []string{"5:28: purges.tenant.tables.1: a.b stands twice with column tenant_id; keep one of them"}},
	{"table in the purge", purge("-tables", "table: public.jobs"), []string{`5:5: purges.tenant: unknown key "table"; did you mean tables?`}},
	{"column by the word key", purge("tables: [{table: a.b, key: org}]"), []string{`5:27: purges.tenant.tables.0: unknown key "key"; did you mean column?`}},
	{"column by the word tenant", purge("tables: [{table: a.b, tenant: org}]"), []string{`5:27: purges.tenant.tables.0: unknown key "tenant"; did you mean column?`}},
	{"column by the word tenant_id", purge("tables: [{table: a.b, tenant_id: org}]"), []string{`5:27: purges.tenant.tables.0: unknown key "tenant_id"; did you mean column?`}},
	{"a batch of one table", purge("tables: [{table: a.b, batch: {limit: 1}}]"), []string{`5:27: purges.tenant.tables.0: unknown key "batch"; did you mean batch, a key of the purge itself?`}},
	{"a window of one table", purge("tables: [{table: a.b, window: 7d}]"), []string{"5:27: purges.tenant.tables.0: key window is one of a sweep: a purge goes by whose a row is, not by how old it is"}},

	// children
	{"child", purge("tables: [{table: a.b, child: {}}]"), []string{`5:27: purges.tenant.tables.0: unknown key "child"; did you mean children?`}},
	{"children in the purge", purge("children: [{table: a.b, key: {id: x}}]"), []string{`6:5: purges.tenant: unknown key "children"; did you mean purges.tables.children?`}},
	{"a child without a key", purge("tables: [{table: a.b, children: [{table: a.c}]}]"), []string{"5:38: purges.tenant.tables.0.children.0: key is missing; write key: {id: job_id}"}},
	{"a child with a column", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}, column: org}]}]"), []string{
		`5:65: purges.tenant.tables.0.children.0: unknown key "column"; did you mean purges.tables.column?`}},
	{"a child with a guard", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}, guard: {ended: true}}]}]"), []string{
		"5:65: purges.tenant.tables.0.children.0: key guard is one of a sweep: a purge removes everything of a tenant, whatever its state; name the tables that keep their rows under exclude"}},
	{"a child twice", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}}, {table: a.c, key: {id: x}}]}]"), []string{
		"5:66: purges.tenant.tables.0.children.1: a.c stands twice with this key; keep one of them"}},
	{"a child by a column twice", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x, no: x}}]}]"), []string{
		"5:56: purges.tenant.tables.0.children.0.key: a column stands twice in the key"}},
	{"a child that is a table", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}}]}, {table: a.c}]"), []string{
		"5:46: purges.tenant.tables.0.children.0.table: a.c is in tables already; keep one of them: a row goes by a column of its own, or else by the row that it refers to"}},
	{"a child's child that is its own table", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}, children: [{table: a.b, key: {id: y}}]}]}]"), []string{
		"5:84: purges.tenant.tables.0.children.0.children.0.table: a.b is in tables already; keep one of them: a row goes by a column of its own, or else by the row that it refers to"}},

	// exclude
	{"exclude of nothing", purge("exclude:"), []string{`6:5: purges.tenant.exclude: there is no value; write a mapping of tables to reasons, as in exclude: {public.audit_log: "kept for ten years by law"}`}},
	{"exclude empty", purge("exclude: {}"), []string{`6:14: purges.tenant.exclude: found an empty mapping; write a mapping of tables to reasons, as in exclude: {public.audit_log: "kept for ten years by law"}`}},
	{"exclude as a list", purge("exclude: [public.audit_log]"), []string{`6:14: purges.tenant.exclude: found a list; write a mapping of tables to reasons, as in exclude: {public.audit_log: "kept for ten years by law"}`}},
	{"excluded without a reason", purge("exclude: {public.audit_log: , public.books: ''}"), []string{
		`6:15: purges.tenant.exclude.public.audit_log: there is no value; write why its rows stay, as in {public.audit_log: "kept for ten years by law"}`,
		"6:49: purges.tenant.exclude.public.books: no reason is given; write why its rows stay; the receipt repeats it"}},
	{"excluded without a reason, under a short name", strings.Replace(purge("exclude: {audit_log: }"), "purges:", "defaults: {schema: public}\npurges:", 1), []string{
		`7:15: purges.tenant.exclude.audit_log: there is no value; write why its rows stay, as in {public.audit_log: "kept for ten years by law"}`}},
	{"excluded by a blank", purge(`exclude: {public.audit_log: " "}`), []string{"6:33: purges.tenant.exclude.public.audit_log: no reason is given; write why its rows stay; the receipt repeats it"}},
	{"excluded by true", purge("exclude: {public.audit_log: true}"), []string{`6:33: purges.tenant.exclude.public.audit_log: found true; write it in quotes, "true", if that is what is meant`}},
	{"excluded without a schema", purge("exclude: {audit_log: by law}"), []string{`6:15: purges.tenant.exclude.audit_log: "audit_log" has no schema; write public.audit_log, or defaults: {schema: public} at the top`}},
	{"excluded with an empty part", purge("exclude: {audit_log.: by law}"), []string{`6:15: purges.tenant.exclude.audit_log.: "audit_log." has an empty part; write schema.table, or [schema, table] where a name has a dot`}},
	{"excluded by a number", purge("exclude: {7: by law}"), []string{`6:15: purges.tenant.exclude.7: found the number 7; write it in quotes, "7", if that is what is meant`}},
	{"excluded twice", strings.Replace(purge("exclude: {public.audit: by law, audit: by law}"), "purges:", "defaults: {schema: public}\npurges:", 1), []string{
		"7:44: purges.tenant.exclude.public.audit: public.audit stands twice; keep one of them"}},
	{"excluded and a table", purge("exclude: {public.jobs: by law}"), []string{"6:28: purges.tenant.exclude.public.jobs: public.jobs is in tables already; keep one of them: its rows go, or they stay"}},
	{"excluded and a child", purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}}]}]", "exclude: {a.c: by law}"), []string{
		"6:20: purges.tenant.exclude.a.c: a.c is in children already; keep one of them: its rows go, or they stay"}},
	{"keep in place of exclude", purge("keep: {public.audit: by law}"), []string{`6:5: purges.tenant: unknown key "keep"; did you mean exclude?`}},
	{"excludes", purge("excludes: {public.audit: by law}"), []string{`6:5: purges.tenant: unknown key "excludes"; did you mean exclude?`}},
	{"exclude in a sweep", sweep("exclude: {queue: mail}"), []string{
		`8:5: jobs: unknown key "exclude"; there is table, age, expires, window, row_window, floor, only, guard, children, cascades, index, batch, ceiling, timeouts, pause, set, commit, overlaps`}},

	// what bounds a batch
	{"limit of a purge", purge("batch: {limit: 100001}"), []string{"6:20: purges.tenant.batch.limit: 100001 is out of range; write a number from 1 to 100000"}},
	{"limit of none", purge("batch: {limit: none}"), []string{`6:20: purges.tenant.batch.limit: found the text "none"; write a whole number, as in limit: 500`}},
	{"target of a purge", purge("batch: {target: 100}"), []string{`6:21: purges.tenant.batch.target: "100" has no unit; write 100d, 100h or 100min`}},
	{"lock timeout of a purge", purge("timeouts: {lock: none}"), []string{`6:22: purges.tenant.timeouts.lock: "none" is no duration; write a whole number and a unit, as in 90d`}},
	{"pause of a purge", purge("pause: 0ms"), []string{`6:12: purges.tenant.pause: "0ms" is zero; write a duration above zero`}},
	{"batch size of a purge", purge("batch_size: 7"), []string{`6:5: purges.tenant: unknown key "batch_size"; did you mean batch?`}},
	{"sleep of a purge", purge("sleep: 1s"), []string{`6:5: purges.tenant: unknown key "sleep"; did you mean pause?`}},
	{"rows that a purge hides", purge(`set: {row_security: "on"}`), []string{
		"6:25: purges.tenant.set.row_security: a purge has to see every row, so row_security is set by prunectl in each batch; leave it out"}},
	{"a purge sets what is ours", purge(`set: {synchronous_commit: "off"}`), []string{"6:31: purges.tenant.set.synchronous_commit: synchronous_commit is set by prunectl in each batch; leave it out"}},
	{"a purge sets a truth", purge("set: {app.purging: true}"), []string{`6:24: purges.tenant.set.app.purging: found true; write it in quotes, "true", if that is what is meant`}},

	// what is a sweep's
	{"age of a purge", purge("age: created_at"), []string{"6:5: purges.tenant: key age is one of a sweep: a purge goes by whose a row is, not by how old it is"}},
	{"expiry of a purge", purge("expires: expires_at"), []string{"6:5: purges.tenant: key expires is one of a sweep: a purge goes by whose a row is, not by how old it is"}},
	{"window of a purge", purge("window: 7d"), []string{"6:5: purges.tenant: key window is one of a sweep: a purge goes by whose a row is, not by how old it is"}},
	{"own windows of a purge", purge("row_window: {}"), []string{"6:5: purges.tenant: key row_window is one of a sweep: a purge goes by whose a row is, not by how old it is"}},
	{"floor of a purge", purge("floor: 1d"), []string{"6:5: purges.tenant: key floor is one of a sweep: a purge goes by whose a row is, not by how old it is"}},
	{"only some rows of a tenant", purge("only: {queue: mail}"), []string{
		"6:5: purges.tenant: key only is one of a sweep: a purge removes everything of a tenant; name the tables that keep their rows under exclude"}},
	{"cascades of a purge", purge("cascades: [a.b]"), []string{
		"6:5: purges.tenant: key cascades is one of a sweep: a purge counts what it removes; name the table under tables, or under the children of one"}},
	{"index of a purge", purge("index: jobs_tenant"), []string{"6:5: purges.tenant: key index is one of a sweep: a purge picks the index of each table by itself"}},
	{"ceiling of a purge", purge("ceiling: {rows: 1}"), []string{"6:5: purges.tenant: key ceiling is one of a sweep: a purge has no ceiling, and ends when nothing of the tenant is left"}},
	{"commit of a purge", purge("commit: async"), []string{"6:5: purges.tenant: key commit is one of a sweep: the commits of a purge always wait for the disk"}},
	{"overlaps of a purge", purge("overlaps: [jobs]"), []string{"6:5: purges.tenant: key overlaps is one of a sweep: a purge may remove what others remove"}},
	{"key of nobody in a purge", purge("frobnicate: 1"), []string{`6:5: purges.tenant: unknown key "frobnicate"; there is key, tables, exclude, batch, timeouts, pause, set`}},
}

// TestAllErrorsOfPurgesInOneGo: the faults of sweeps and purges, in the order of the file, and none that only follows; a
// fault of a sweep says nothing about a purge of the same name, nor the other way round.
func TestAllErrorsOfPurgesInOneGo(t *testing.T) {
	const file = `version: 1
defaults: {schema: public, batch: {limit: 0}}
purges:
  jobs:
    tables:
      - {table: jobs, column: 7}
      - runs
      - {table: events, kolumn: org, children: [{table: notes}, {table: events, key: {id: event}}]}
      - {table: events}
    exclude:
      events: by law
      "": by law
      audit.log: ""
    timeouts: {lock: 0s}
    pause: soon
    set: {jit: "on", app.ok: "1"}
  Second: {key: org, tables: [{table: jobs}, {table: jobs}], window: 3}
sweeps:
  jobs:
    table: jobs
    age: at
    window: 3m
    guard: {ended: true}
    exclude: {a: b}
`
	const want = `p.yaml:2:43: defaults.batch.limit: 0 is out of range; write a number from 1 to 100000
p.yaml:6:31: purges.jobs.tables.0.column: found the number 7; write it in quotes, "7", if that is what is meant
p.yaml:7:9: purges.jobs.tables.1: found the text "runs"; write {table: runs}
p.yaml:8:25: purges.jobs.tables.2: unknown key "kolumn"; did you mean column?
p.yaml:8:49: purges.jobs.tables.2.children.0: key is missing; write key: {id: job_id}
p.yaml:8:73: purges.jobs.tables.2.children.1.table: public.events is in tables already; keep one of them: a row goes by a column of its own, or else by the row that it refers to
p.yaml:11:15: purges.jobs.exclude.public.events: public.events is in tables already; keep one of them: its rows go, or they stay
p.yaml:12:7: purges.jobs.exclude.: the name is empty; write a name as it is in the catalog
p.yaml:13:18: purges.jobs.exclude.audit.log: no reason is given; write why its rows stay; the receipt repeats it
p.yaml:14:22: purges.jobs.timeouts.lock: "0s" is zero; write a duration above zero
p.yaml:15:12: purges.jobs.pause: "soon" is no duration; write a whole number and a unit, as in 90d
p.yaml:16:16: purges.jobs.set.jit: jit is set by prunectl in each batch; leave it out
p.yaml:17:3: purges.Second: "Second" is no name of a purge; write a lower-case letter, then letters, digits and _, 48 at most
p.yaml:17:46: purges.Second.tables.1: public.jobs stands twice with column org; keep one of them
p.yaml:17:62: purges.Second: key window is one of a sweep: a purge goes by whose a row is, not by how old it is
p.yaml:22:13: jobs.window: "3m": months have no fixed length and m is read both ways; write min for minutes or count days
p.yaml:24:5: jobs: unknown key "exclude"; there is table, age, expires, window, row_window, floor, only, guard, children, cascades, index, batch, ceiling, timeouts, pause, set, commit, overlaps`
	f, err := policyfile.Parse("p.yaml", []byte(file))
	var errs policyfile.Errors
	if f != nil || !errors.As(err, &errs) || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
