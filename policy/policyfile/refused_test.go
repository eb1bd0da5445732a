package policyfile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/policy/policyfile"
)

// base is a file without fault. Each case below replaces a line of it by its key, or adds one at the end (line 8).
var base = []string{
	"version: 1",
	"sweeps:",
	"  jobs:",
	"    table: public.jobs",
	"    age: at",
	"    window: 7d",
	"    guard: {state: state, terminal: [done, failed]}",
}

// sweep is the file with these lines in the sweep; a key that stands there is replaced, and "-key" takes it out.
func sweep(lines ...string) string {
	file := append([]string(nil), base...)
next:
	for _, l := range lines {
		key, _, _ := strings.Cut(strings.TrimPrefix(l, "-"), ":")
		for i, have := range file {
			if i > 2 && strings.HasPrefix(have, "    "+key+":") {
				file[i] = "    " + l
				if strings.HasPrefix(l, "-") {
					file = append(file[:i], file[i+1:]...)
				}
				continue next
			}
		}
		file = append(file, "    "+l)
	}
	return strings.Join(file, "\n") + "\n"
}

// top is the file with lines before `sweeps`.
func top(lines ...string) string {
	return strings.Join(append(append(append([]string(nil), base[:1]...), lines...), base[1:]...), "\n") + "\n"
}

func window(w string) string { return sweep("window: " + w) }

// planned is the message of a key of a later version.
func planned(at, in, key string) string {
	return fmt.Sprintf("%s: %s: key %s is planned, not in this version", at, in, key)
}

// refusal is a file that is refused, and the messages without the file's name.
type refusal struct {
	name, file string
	want       []string
}

var refused = []refusal{
	// the file itself
	{"empty", "", []string{"1:1: the file is empty; start it with version: 1"}},
	{"blank", " \n\n", []string{"1:1: the file is empty; start it with version: 1"}},
	{"only a comment", "# nothing yet\n", []string{"1:1: the file is empty; start it with version: 1"}},
	{"only a document mark", "---\n", []string{"1:1: the file is empty; start it with version: 1"}},
	{"byte order mark", "\ufeffversion: 1\n", []string{"1:1: the file starts with a byte order mark; save it as UTF-8 without one"}},
	{"not UTF-8", "version: 1\nsweeps: {\xe9: 1}\n", []string{"2:10: byte 0xe9 is not UTF-8; save the file as UTF-8"}},
	{"UTF-16", "\xff\xfev\x00", []string{"1:1: byte 0xff is not UTF-8; save the file as UTF-8"}},
	{"tab as indentation", "version: 1\nsweeps:\n\tjobs: {}\n", []string{"3:1: a tab; write spaces"}},
	{"tab behind a colon", "version:\t1\n", []string{"1:9: a tab; write spaces"}},
	{"control character", "version: 1\x1b\n", []string{"1:11: the control character U+001B; leave it out"}},
	{"escaped control character", sweep(`index: "a\0b"`), []string{`8:12: jobs.index: "a\x00b" holds a control character; leave it out`}},
	{"too large", "version: 1\n#" + strings.Repeat("x", 1<<18), []string{"1:1: the file has 262156 bytes; a policy has at most 262144"}},
	{"two documents", strings.Join(base, "\n") + "\n---\nversion: 1\n", []string{"8:1: a second document starts here; write one file for each policy"}},
	{"directive", "%YAML 1.2\n---\nversion: 1\n", []string{"1:1: directives are not part of the language; leave the line out"}},
	{"a list", "- version: 1\n", []string{"1:1: found a list; write a mapping of version, defaults, budget, sweeps, purges"}},
	{"a text", "sweep everything\n", []string{`1:1: found the text "sweep everything"; write a mapping of version, defaults, budget, sweeps, purges`}},
	{"an empty mapping", "{}\n", []string{"1:1: the mapping is empty; write one of version, defaults, budget, sweeps, purges, or leave the key out"}},

	// what makes it no YAML ends the reading at once
	{"bracket left open", sweep("overlaps: [a", "windw: 1"), []string{"9:5: not readable as YAML: ',' or ']' must be specified"}},
	{"quote left open", sweep(`index: "a`), []string{"8:12: not readable as YAML: could not find end character of double-quoted text"}},
	{"two colons", sweep("index: a: b"), []string{"8:12: not readable as YAML: mapping value is not allowed in this context"}},
	{"reserved character", sweep("index: @a"), []string{"8:12: not readable as YAML: '@' is a reserved character"}},
	{"nested too deeply", sweep("only: {a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}"),
		[]string{"8:46: not readable as YAML: lists and mappings are nested too deeply"}},
	{"entries too deep on one line", "version: " + strings.Repeat("- ", 40) + "\n", []string{"1:72: not readable as YAML: lists and mappings are nested too deeply"}},

	// what the reader lets pass, and YAML does not
	{"comma forgotten", sweep("ceiling: {batches: 1 rows: none}"), []string{`8:24: jobs.ceiling.batches: "1 rows: none" is no text without quotes; put it in quotes, or see whether a comma or a bracket is missing`}},
	{"bracket forgotten", sweep("guard: {state: s, terminal: done, failed]}"), []string{
		`7:33: jobs.guard.terminal: found the text "done", and a list is due; write [done]`,
		`7:39: jobs.guard: "failed]" is no text without quotes; put it in quotes, or see whether a comma or a bracket is missing`}},
	{"bracket too many", sweep("only: {queue: ma}il}"), []string{"8:22: not readable as YAML: value is not allowed in this context"}},
	{"colon at the front", sweep("only: {queue: :mail}"), []string{`8:19: jobs.only.queue: ":mail" is no text without quotes; put it in quotes, or see whether a comma or a bracket is missing`}},
	{"comma at the front", sweep("index: ,a"), []string{`8:12: jobs.index: ",a" is no text without quotes; put it in quotes, or see whether a comma or a bracket is missing`}},
	{"no blank behind the colon of a number", sweep("window: {1:3d}", "guard: {state: s, terminal: [1]}"), []string{"6:14: jobs.window.1: there is no blank behind the colon; write 1: and the value"}},
	{"no blank behind a colon", sweep("only: {queue:mail}"), []string{"8:12: jobs.only.queue: there is no blank behind the colon; write queue: and the value"}},

	// what YAML has and the language has not
	{"anchor", sweep("set: &s {a.b: x}"), []string{"8:10: jobs.set: anchors (&) are not part of the language; write each sweep out"}},
	{"alias", sweep("index: *s"), []string{"8:12: jobs.index: aliases (*) are not part of the language; write each sweep out, and a text that starts with * in quotes"}},
	{"merge key", sweep("<<: {index: a}"), []string{"8:5: jobs: merge keys (<<) are not part of the language; write each sweep out"}},
	{"tag", sweep("index: !!str a"), []string{"8:12: jobs.index: tags (!) are not part of the language; write the value alone, and a text that starts with ! in quotes"}},
	{"include by tag", sweep("index: !include a"), []string{"8:12: jobs.index: tags (!) are not part of the language; write the value alone, and a text that starts with ! in quotes"}},
	{"include by key", top("include: other.yaml"), []string{"2:1: key include is not part of the language: no file includes another; write each sweep out"}},
	{"variable", window("${RETENTION}"), []string{`6:13: jobs.window: "${RETENTION}" asks for a variable, and nothing is put in; write the value itself`}},
	{"variable in a key", sweep(`set: {"${X}": a}`), []string{`8:11: jobs.set: "${X}" asks for a variable, and nothing is put in; write the value itself`}},
	{"key behind a question mark", "? version\n: 1\n", []string{"1:1: a key behind a question mark is not part of the language; write key: value"}},
	{"equal keys", sweep("index: a", "batch: {limit: 1, limit: 2}"), []string{"9:23: jobs.batch: key limit stands here and in line 9; keep one of them"}},
	{"equal keys in a sweep", strings.Join(base, "\n") + "\n    window: 9d\n", []string{"8:5: jobs: key window stands here and in line 6; keep one of them"}},
	{"two sweeps of one name", strings.Join(append(append([]string(nil), base...), base[2:]...), "\n"), []string{"8:3: sweeps: key jobs stands here and in line 3; keep one of them"}},
	{"equal keys, one in quotes", sweep(`window: {"1": 1d, 1: 2d}`, "guard: {state: s, terminal: [1]}"), []string{"6:23: jobs.window: key 1 stands here and in line 6; keep one of them"}},

	// the top
	{"no version", "sweeps: {}\n", []string{"1:1: version is missing; write version: 1", "1:9: sweeps: there is no sweep; write at least one"}},
	{"newer version", "version: 2\nsweeps: &new {a: {frobnicate: 1}}\nx: 1\n", []string{"1:10: version: the file is of version 2, and this prunectl reads version 1; use a newer prunectl"}},
	{"version 0", strings.Replace(sweep(), "version: 1", "version: 0", 1), []string{"1:10: version: there is no version 0; write version: 1"}},
	{"version in quotes", strings.Replace(sweep(), "version: 1", `version: "1"`, 1), []string{`1:10: version: found the text "1"; write a whole number, as in version: 1`}},
	{"version with a dot", strings.Replace(sweep(), "version: 1", `version: 1.0`, 1), []string{`1:10: version: found the number 1.0; write a whole number, as in version: 1`}},
	{"no sweeps", "version: 1\n", []string{"1:1: sweeps is missing; write sweeps: {old_jobs: {...}}"}},
	{"sweeps without a value", "version: 1\nsweeps:\n", []string{"2:1: sweeps: there is no value; write a mapping of names to sweeps, as in sweeps: {old_jobs: {table: public.jobs, ...}}"}},
	{"sweeps as a list", "version: 1\nsweeps: [{name: a}]\n", []string{"2:9: sweeps: found a list; write a mapping of names to sweeps, as in sweeps: {old_jobs: {table: public.jobs, ...}}"}},
	{"a sweep without a value", "version: 1\nsweeps:\n  jobs:\n", []string{"3:3: jobs: there is no value; write a mapping of table, age, expires, window, row_window, floor, only, guard, children, cascades, index, batch, ceiling, timeouts, pause, set, commit, overlaps"}},
	{"name of a sweep", strings.Replace(sweep(), "  jobs:", "  Old-Jobs:", 1), []string{`3:3: Old-Jobs: "Old-Jobs" is no name of a sweep; write a lower-case letter, then letters, digits and _, 48 at most`}},
	{"long name of a sweep", strings.Replace(sweep(), "  jobs:", "  "+strings.Repeat("j", 49)+":", 1), []string{`3:3: ` + strings.Repeat("j", 49) + `: "` + strings.Repeat("j", 49) + `" is no name of a sweep; write a lower-case letter, then letters, digits and _, 48 at most`}},
	{"hours", top("hours: {allow: []}"), []string{"2:1: key hours is planned, not in this version"}},
	{"connection", top("dsn: postgres://app:secret@db/app"), []string{"2:1: key dsn is not part of the language: a policy holds no connection; give it with --dsn, DATABASE_URL or PG*"}},
	{"key of a sweep at the top", top("guard: {ended: true}"), []string{`2:1: unknown key "guard"; did you mean guard, a key of the sweep itself?`}},
	{"key of the top in a sweep", sweep("budget: {rows: 1}"), []string{`8:5: jobs: unknown key "budget"; did you mean budget, a key at the top of the file?`}},

	// defaults and budget
	{"window for all", top("defaults: {window: 3d}"), []string{`2:12: defaults: unknown key "window"; did you mean window, a key of the sweep itself?`}},
	{"off for all", top("defaults: {enabled: false}"), []string{"2:12: defaults: key enabled is not part of the language: a sweep that exists and does nothing is how tables grow; comment the sweep out to switch it off"}},
	{"low floor for all", top("defaults: {floor: 59min}"), []string{"2:19: defaults.floor: a floor below 1h is written in each sweep that needs it, and not for all; move it there"}},
	{"defaults of another kind", strings.Replace(top("defaults: public"), "public.jobs", "jobs", 1),
		[]string{`2:11: defaults: found the text "public"; write a mapping of schema, floor, batch, ceiling, timeouts, pause, commit`}},
	{"empty defaults", top("defaults: {}"), []string{"2:11: defaults: the mapping is empty; write one of schema, floor, batch, ceiling, timeouts, pause, commit, or leave the key out"}},
	{"budget of no rows", top("budget: {rows: 0}"), []string{"2:16: budget.rows: 0 is out of range; write a number from 1, or none for no ceiling"}},
	{"budget of minus one", top("budget: {rows: -1}"), []string{"2:16: budget.rows: -1 is out of range; write a number from 1, or none for no ceiling"}},
	{"budget of no time", top("budget: {time: 0s}"), []string{`2:16: budget.time: "0s" is zero; write a duration above zero`}},
	{"turn of none", top("budget: {turn: none}"), []string{`2:16: budget.turn: "none" is no duration; write a whole number and a unit, as in 90d`}},

	// table
	{"no table", sweep("-table"), []string{"3:3: jobs: table is missing; write table: public.jobs"}},
	{"no schema", sweep("table: jobs"), []string{`4:12: jobs.table: "jobs" has no schema; write public.jobs, or defaults: {schema: public} at the top`}},
	{"blank behind a name", sweep(`table: "public.jobs "`), []string{`4:12: jobs.table: "jobs " has blanks round it; write jobs`}},
	{"blank before a name", sweep(`table: [public, " jobs"]`), []string{`4:21: jobs.table: " jobs" has blanks round it; write jobs`}},
	{"blank at the dot", sweep(`table: public .jobs`), []string{`4:12: jobs.table: "public " has blanks round it; write public`}},
	{"blank that is not a space", sweep("table: \"public.jobs\u00a0\""), []string{`4:12: jobs.table: "jobs\u00a0" has blanks round it; write jobs`}},
	{"empty schema", sweep("table: .jobs"), []string{`4:12: jobs.table: ".jobs" has an empty part; write schema.table, or [schema, table] where a name has a dot`}},
	{"empty table", sweep("table: public."), []string{`4:12: jobs.table: "public." has an empty part; write schema.table, or [schema, table] where a name has a dot`}},
	{"empty name", sweep(`table: ""`), []string{`4:12: jobs.table: the name is empty; write a name as it is in the catalog`}},
	{"table without a value", sweep("table:"), []string{"4:5: jobs.table: there is no value; write a name, or [schema, table], as in table: public.jobs"}},
	{"table null", sweep("table: null"), []string{"4:12: jobs.table: found null; write a name, or [schema, table], as in table: public.jobs"}},
	{"table as a number", sweep("table: 2024"), []string{`4:12: jobs.table: found the number 2024; write it in quotes, "2024", if that is what is meant`}},
	{"table of three parts", sweep("table: [app, public, jobs]"), []string{"4:12: jobs.table: found a list of 3; write [schema, table]"}},
	{"table as a mapping", sweep("table: {schema: public, name: jobs}"), []string{"4:12: jobs.table: found a mapping; write a name, or [schema, table], as in table: public.jobs"}},
	{"long name", sweep("table: public." + strings.Repeat("ä", 32)), []string{`4:12: jobs.table: "` + strings.Repeat("ä", 32) + `" has 64 bytes; PostgreSQL cuts names at 63, so write the name as it is in the catalog`}},

	// age
	{"no age", sweep("-age"), []string{"3:3: jobs: age is missing; write age: finished_at"}},
	{"age of two columns", sweep("age: [a, b]"), []string{"5:10: jobs.age: found a list; write the name of a column, or a mapping, as in age: finished_at"}},
	{"age without a column", sweep("age: {since: 2000-01-01}"), []string{"5:5: jobs.age: column is missing; write column: finished_at"}},
	{"wall time", sweep("age: {column: at, as: wall, zone: UTC}"), []string{"5:27: jobs.age.as: wall is planned, not in this version; the age is a timestamptz column", planned("5:33", "jobs.age", "zone")}},
	{"unknown kind of age", sweep("age: {column: at, as: timestamptz}"), []string{`5:27: jobs.age.as: "timestamptz" is no kind of age; write instant, or leave the key out`}},
	{"since as an age", sweep("age: {column: at, since: 90d}"), []string{`5:30: jobs.age.since: "90d" is no date; write year-month-day, as in 1990-01-01`}},
	{"since of a day that is none", sweep("age: {column: at, since: 2025-02-29}"), []string{`5:30: jobs.age.since: "2025-02-29" is no date; write year-month-day, as in 1990-01-01`}},
	{"since the beginning", sweep("age: {column: at, since: 0001-01-01}"), []string{`5:30: jobs.age.since: "0001-01-01" is what a missing date looks like in many programs; write a later one`}},

	// window: zero, negative, empty, no number, units
	{"no window", sweep("-window"), []string{"3:3: jobs: window is missing; write window: 90d"}},
	{"window without a value", window(""), []string{"6:5: jobs.window: there is no value; write a duration, never, at_once, or a mapping of states to durations, as in window: 90d"}},
	{"window null", window("null"), []string{"6:13: jobs.window: found null; write a duration, never, at_once, or a mapping of states to durations, as in window: 90d"}},
	{"window empty", window(`""`), []string{`6:13: jobs.window: "" is empty; write a number and a unit, as in 90d`}},
	{"window blank", window(`"  "`), []string{`6:13: jobs.window: "  " is empty; write a number and a unit, as in 90d`}},
	{"window as a list", window("[90d]"), []string{"6:13: jobs.window: found a list; write a duration, never, at_once, or a mapping of states to durations, as in window: 90d"}},
	{"window 0", window("0"), []string{`6:13: jobs.window: "0" is zero, which could mean at once or for ever; write a duration above zero, or never`}},
	{"window 0d", window("0d"), []string{`6:13: jobs.window: "0d" is zero, which could mean at once or for ever; write a duration above zero, or never`}},
	{"window 0s", window("0s"), []string{`6:13: jobs.window: "0s" is zero, which could mean at once or for ever; write a duration above zero, or never`}},
	{"window forever", window("forever"), []string{`6:13: jobs.window: "forever" is no window; write never to keep for ever`}},
	{"window none", window("none"), []string{`6:13: jobs.window: "none" is no window; write never to keep for ever`}},
	{"window off", window("off"), []string{`6:13: jobs.window: "off" is no window; write never to keep for ever`}},
	{"window false", window("false"), []string{"6:13: jobs.window: found false; write a duration, never, at_once, or a mapping of states to durations, as in window: 90d"}},
	{"window negative", window("-7d"), []string{`6:13: jobs.window: "-7d" is negative; write a duration above zero, as in 90d`}},
	{"window of a fraction", window("7.5d"), []string{`6:13: jobs.window: "7.5d" is not a whole number; write a smaller unit, as in 36h for a day and a half`}},
	{"window with an exponent", window("1e3d"), []string{`6:13: jobs.window: "1e3d" is not a whole number; write a smaller unit, as in 36h for a day and a half`}},
	{"window with a blank", window("7 d"), []string{`6:13: jobs.window: "7 d" has blanks in it; write 7d`}},
	{"window in words", window("30 days"), []string{`6:13: jobs.window: "30 days" has no known unit; write one whole number and one of ms, s, min, h, d, w, as in 90d`}},
	{"window in other digits", window("٧d"), []string{`6:13: jobs.window: "٧d" is no duration; write a whole number and a unit, as in 90d`}},
	{"window without a unit", window("90"), []string{`6:13: jobs.window: "90" has no unit; write 90d, 90h or 90min`}},
	{"window in m", window("1m"), []string{`6:13: jobs.window: "1m": months have no fixed length and m is read both ways; write min for minutes or count days`}},
	{"window in M", window("1M"), []string{`6:13: jobs.window: "1M": months have no fixed length and m is read both ways; write min for minutes or count days`}},
	{"window in months", window("1mo"), []string{`6:13: jobs.window: "1mo": months have no fixed length and m is read both ways; write min for minutes or count days`}},
	{"window in years", window("1y"), []string{`6:13: jobs.window: "1y": years have no fixed length; count days, as in 365d`}},
	{"window of ISO 8601", window("P30D"), []string{`6:13: jobs.window: "P30D" is no duration; write a whole number and a unit, as in 90d`}},
	{"window of two units", window("1h30min"), []string{`6:13: jobs.window: "1h30min" has no known unit; write one whole number and one of ms, s, min, h, d, w, as in 90d`}},
	{"window in milliseconds", window("2000ms"), []string{`6:13: jobs.window: "2000ms": a window has whole seconds; write it in s, min, h, d or w`}},
	{"window too long", window("36501d"), []string{`6:13: jobs.window: "36501d" is over the longest duration; it is 36500d`}},
	{"window far too long", window("99999999999999999999d"), []string{`6:13: jobs.window: "99999999999999999999d" is over the longest duration; it is 36500d`}},
	{"window infinite", window("Infinity"), []string{`6:13: jobs.window: "Infinity" is no duration; write a whole number and a unit, as in 90d`}},
	{"window .inf", window(".inf"), []string{`6:13: jobs.window: ".inf" is no duration; write a whole number and a unit, as in 90d`}},
	{"window below the floor", window("30min"), []string{"6:13: jobs.window: 30min is below the floor of 1h; lengthen it, or write floor: 30min in this sweep"}},
	{"window below its own floor", sweep("floor: 8d"), []string{"6:13: jobs.window: 7d is below the floor of 8d; lengthen it, or write floor: 7d in this sweep"}},
	{"floor never", sweep("floor: never"), []string{"8:12: jobs.floor: never is no floor; write the shortest window that is right here, as in floor: 1h"}},
	{"floor without a unit", sweep("floor: 60", "window: 30min"), []string{`8:12: jobs.floor: "60" has no unit; write 60d, 60h or 60min`}},

	// windows by state
	{"windows of no state", window("{}"), []string{"6:13: jobs.window: the mapping is empty; write a window for each terminal state, or one for all"}},
	{"window of a state that is not terminal", window("{done: 1d, failed: 2d, discard: 3d}"), []string{`6:36: jobs.window.discard: window names state "discard", which is not in guard.terminal`}},
	{"no window for a terminal state", window("{done: 1d}"), []string{`6:13: jobs.window: no window for the terminal state "failed"; add failed: never to keep it`}},
	{"window by state, wrong", window("{done: 3m, failed: 90}"), []string{
		`6:20: jobs.window.done: "3m": months have no fixed length and m is read both ways; write min for minutes or count days`,
		`6:32: jobs.window.failed: "90" has no unit; write 90d, 90h or 90min`}},
	{"window by state, below the floor", window("{done: 1min, failed: 1h}"), []string{"6:20: jobs.window.done: 1min is below the floor of 1h; lengthen it, or write floor: 1min in this sweep"}},
	{"windows by state without states", sweep("window: {done: 1d}", "guard: {ended: true}"), []string{"6:13: jobs.window: windows by state need a guard by the row's own state; give guard.state, or one window for all"}},
	{"window of a number in quotes", sweep(`window: {"1": 1d}`, "guard: {state: s, terminal: [1]}"), []string{`6:14: jobs.window.1: the state is the text "1" here and the number 1 in guard.terminal; write it alike in both`}},
	{"windows of states that could not be read", sweep("window: {done: 1d, gone: 90}", "guard: {state: s, terminal: done}"), []string{
		`6:30: jobs.window.gone: "90" has no unit; write 90d, 90h or 90min`, `7:33: jobs.guard.terminal: found the text "done", and a list is due; write [done]`}},
	{"window of null", window("{done: 1d, failed: 1d, null: 1d}"), []string{"6:36: jobs.window.null: null is no state; leave it out: a null state always protects"}},
	{"window of a state nested too far", window("{done: {a: 1d}, failed: 1d}"), []string{"6:20: jobs.window.done: found a mapping; write a duration or never, as in 90d"}},

	// only
	{"only nothing", sweep("only: {}"), []string{"8:11: jobs.only: found an empty mapping; write a mapping of columns to values, as in only: {queue: mail}"}},
	{"only a text", sweep("only: queue = 'mail'"), []string{`8:11: jobs.only: found the text "queue = 'mail'"; write a mapping of columns to values, as in only: {queue: mail}`}},
	{"only an empty list", sweep("only: {queue: []}"), []string{"8:19: jobs.only.queue: the list is empty; write a value"}},
	{"only without a value", sweep("only: {queue: }"), []string{"8:12: jobs.only.queue: there is no value; write null to match null"}},
	{"only an operator", sweep("only: {n: {gt: 5}}"), []string{"8:15: jobs.only.n: the only operator is not; write a value, a list of values, or {not: value}"}},
	{"only two operators", sweep("only: {n: {not: 5, not_null: true}}"), []string{"8:15: jobs.only.n: the only operator is not; write a value, a list of values, or {not: value}"}},
	{"only not an empty list", sweep("only: {n: {not: []}}"), []string{"8:21: jobs.only.n: the list is empty; write a value"}},
	{"only a float", sweep("only: {n: 1.5}"), []string{"8:15: jobs.only.n: 1.5 is not a whole number; if it is a text, write it in quotes"}},
	{"only an odd number", sweep("only: {n: [010, 0x1F, 1_000, +5]}"), []string{"8:16: jobs.only.n: 010 is read in several ways; write a plain number, true, false or null, or a text in quotes"}},
	{"only an odd truth", sweep("only: {n: True}"), []string{"8:15: jobs.only.n: True is read in several ways; write a plain number, true, false or null, or a text in quotes"}},
	{"only an odd null", sweep("only: {n: ~}"), []string{"8:15: jobs.only.n: ~ is read in several ways; write a plain number, true, false or null, or a text in quotes"}},
	{"only a number too large", sweep("only: {n: 9223372036854775808}"), []string{"8:15: jobs.only.n: 9223372036854775808 is too large for a whole number here; write it in quotes"}},
	{"only a column with a blank", sweep(`only: {"queue ": mail}`), []string{`8:12: "jobs.only.queue ": "queue " has blanks round it; write queue`}},

	// guard
	{"no guard", sweep("-guard"), []string{"3:3: jobs: guard is missing; write guard: {ended: true}"}},
	{"guard without a value", sweep("guard:"), []string{"7:5: jobs.guard: there is no value; write a mapping of none, ended, state, terminal, live, final, owner, owed, hold"}},
	{"guard empty", sweep("guard: {}"), []string{`7:12: jobs.guard: nothing says which rows are still needed; give ended, state, owner, owed or hold, or none: "why nothing is owed"`}},
	{"guard none", sweep("guard: none"), []string{`7:12: jobs.guard: found the text "none"; write a mapping of none, ended, state, terminal, live, final, owner, owed, hold`}},
	{"none without a reason", sweep("guard: {none: true}"), []string{`7:19: jobs.guard.none: found true; write it in quotes, "true", if that is what is meant`}},
	{"none with an empty reason", sweep(`guard: {none: ""}`), []string{"7:19: jobs.guard.none: the reason is empty; write why nothing is owed, 10 characters or more"}},
	{"none with a short reason", sweep(`guard: {none: "because  "}`), []string{`7:19: jobs.guard.none: "because" says too little; write the reason, 10 characters or more`}},
	{"none beside another", sweep("guard: {none: written once and read once, ended: true}"), []string{"7:19: jobs.guard.none: none stands alone"}},
	{"ended false", sweep("guard: {ended: false}"), []string{"7:20: jobs.guard.ended: false guards nothing; write true, or leave the key out"}},
	{"ended by a column", sweep("guard: {ended: at}"), []string{`7:20: jobs.guard.ended: found the text "at"; write true, as in ended: true`}},
	{"terminal as a word", sweep("guard: {state: s, terminal: done}"), []string{`7:33: jobs.guard.terminal: found the text "done", and a list is due; write [done]`}},
	{"terminal as a number", sweep("guard: {state: s, terminal: 1}"), []string{`7:33: jobs.guard.terminal: found the number 1, and a list is due; write [1]`}},
	{"terminal empty", sweep("guard: {state: s, terminal: []}"), []string{"7:33: jobs.guard.terminal: the list is empty; write a list of states, as in terminal: [done, failed]"}},
	{"terminal null", sweep("guard: {state: s, terminal: null}"), []string{"7:33: jobs.guard.terminal: found null; write a list of states, as in terminal: [done, failed]"}},
	{"terminal missing", sweep("guard: {state: s}"), []string{"7:5: jobs.guard.terminal: no terminal state is given; list the states from which nothing is owed any more"}},
	{"state missing", sweep("guard: {terminal: [done]}"), []string{"7:5: jobs.guard.state: no state column is named"}},
	{"state as a list", sweep("guard: {state: [s], terminal: [done]}"), []string{"7:20: jobs.guard.state: found a list; write the name of a column, as in state: state"}},
	{"terminal with null", sweep("guard: {state: s, terminal: [done, null]}"), []string{"7:40: jobs.guard.terminal: null is no state; leave it out: a null state always protects"}},
	{"terminal with a float", sweep("guard: {state: s, terminal: [1, 2.5]}"), []string{"7:37: jobs.guard.terminal: 2.5 is not a whole number; if it is a text, write it in quotes"}},
	{"terminal with a list", sweep("guard: {state: s, terminal: [[done]]}"), []string{"7:34: jobs.guard.terminal: found a list; write a text, a whole number, true or false"}},
	{"terminal with an empty item", sweep("guard:", "  state: s", "  terminal:", "  - done", "  -"), []string{"11:8: jobs.guard.terminal: an item of the list is empty; write a value, or leave the comma out"}},
	{"terminal twice", sweep("guard: {state: s, terminal: [done, failed, done]}"), []string{`7:48: jobs.guard.terminal: state "done" is in terminal already; keep one of them`}},
	{"terminal and live", sweep("guard: {state: s, terminal: [1], live: ['1', 0]}"), []string{`7:45: jobs.guard.live: state "1" is in terminal already; keep one of them`}},
	{"final as a word", sweep("guard: {state: s, terminal: [done], final: yes}"), []string{`7:48: jobs.guard.final: found the text "yes"; write true or false, as in final: true`}},
	{"misspelt key of the guard", sweep("guard: {stat: s, terminal: [done]}"), []string{`7:13: jobs.guard: unknown key "stat"; did you mean state?`}},
	{"key of the sweep in the guard", sweep("guard: {ended: true, window: 3d}"), []string{`7:26: jobs.guard: unknown key "window"; did you mean window, a key of the sweep itself?`}},
	{"key of the guard in the sweep", sweep("terminal: [done]"), []string{`8:5: jobs: unknown key "terminal"; did you mean guard.terminal?`}},

	// owner
	{"owner by name", sweep("guard: {owner: runs}"), []string{`7:20: jobs.guard.owner: found the text "runs"; write a mapping of table, key, state, terminal, live, final, orphans, ownerless`}},
	{"owner empty", sweep("guard: {owner: {}}"), []string{"7:20: jobs.guard.owner: the mapping is empty; write one of table, key, state, terminal, live, final, orphans, ownerless, or leave the key out"}},
	{"owner with nothing but a table", sweep("guard: {owner: {table: public.runs}}"), []string{
		"7:13: jobs.guard.owner: key is missing; write key: {run_id: id}",
		"7:13: jobs.guard.owner: state is missing; write state: status",
		"7:13: jobs.guard.owner: terminal is missing; write terminal: [completed, failed]"}},
	{"owner without a schema", sweep("guard: {owner: {table: runs, key: {run_id: id}, state: s, terminal: [a]}}"), []string{
		`7:28: jobs.guard.owner.table: "runs" has no schema; write public.runs, or defaults: {schema: public} at the top`}},
	{"key to the owner as a word", sweep("guard: {owner: {table: a.b, key: id, state: s, terminal: [a]}}"), []string{
		`7:38: jobs.guard.owner.key: found the text "id"; write a mapping of columns to columns of the owner, as in key: {run_id: id}`}},
	{"key to the owner twice", sweep("guard: {owner: {table: a.b, key: {x: id, y: id}, state: s, terminal: [a]}}"), []string{
		"7:38: jobs.guard.owner.key: a column stands twice in the key"}},
	{"key to the owner with a number", sweep("guard: {owner: {table: a.b, key: {x: 1}, state: s, terminal: [a]}}"), []string{
		`7:42: jobs.guard.owner.key.x: found the number 1; write it in quotes, "1", if that is what is meant`}},
	{"orphans due", sweep("guard: {owner: {table: a.b, key: {x: id}, state: s, terminal: [a], orphans: due, ownerless: due}}"), []string{
		"7:81: jobs.guard.owner.orphans: due is planned, not in this version; write keep, or leave the key out",
		"7:97: jobs.guard.owner.ownerless: due is planned, not in this version; write keep, or leave the key out"}},
	{"orphans deleted", sweep("guard: {owner: {table: a.b, key: {x: id}, state: s, terminal: [a], orphans: delete}}"), []string{
		`7:81: jobs.guard.owner.orphans: "delete" is not known; write keep, or leave the key out`}},

	// bounds
	{"limit 0", sweep("batch: {limit: 0}"), []string{"8:20: jobs.batch.limit: 0 is out of range; write a number from 1 to 100000"}},
	{"limit negative", sweep("batch: {limit: -5}"), []string{"8:20: jobs.batch.limit: -5 is out of range; write a number from 1 to 100000"}},
	{"limit no number", sweep("batch: {limit: abc}"), []string{`8:20: jobs.batch.limit: found the text "abc"; write a whole number, as in limit: 500`}},
	{"limit in quotes", sweep(`batch: {limit: "500"}`), []string{`8:20: jobs.batch.limit: found the text "500"; write a whole number, as in limit: 500`}},
	{"limit too large", sweep("batch: {limit: 3000000000}"), []string{"8:20: jobs.batch.limit: 3000000000 is out of range; write a number from 1 to 100000"}},
	{"limit far too large", sweep("batch: {limit: 30000000000000000000}"), []string{"8:20: jobs.batch.limit: 30000000000000000000 is out of range; write a number from 1 to 100000"}},
	{"limit not a number", sweep("batch: {limit: .nan}"), []string{"8:20: jobs.batch.limit: found the number .nan; write a whole number, as in limit: 500"}},
	{"limit none", sweep("batch: {limit: none}"), []string{`8:20: jobs.batch.limit: found the text "none"; write a whole number, as in limit: 500`}},
	{"limit with an underscore", sweep("batch: {limit: 1_000}"), []string{"8:20: jobs.batch.limit: found 1_000; write a whole number, as in limit: 500"}},
	{"batch as a number", sweep("batch: 500"), []string{"8:12: jobs.batch: found the number 500; write a mapping of limit, target"}},
	{"batch size", sweep("batchsize: 500"), []string{`8:5: jobs: unknown key "batchsize"; did you mean batch.limit?`}},
	{"target 0", sweep("batch: {target: 0ms}"), []string{`8:21: jobs.batch.target: "0ms" is zero; write a duration above zero`}},
	{"ceiling of no batches", sweep("ceiling: {batches: 0}"), []string{"8:24: jobs.ceiling.batches: 0 is out of range; write a number from 1, or none for no ceiling"}},
	{"ceiling of minus one row", sweep("ceiling: {rows: -1}"), []string{"8:21: jobs.ceiling.rows: -1 is out of range; write a number from 1, or none for no ceiling"}},
	{"ceiling of too many rows", sweep("ceiling: {rows: 9223372036854775808}"), []string{"8:21: jobs.ceiling.rows: 9223372036854775808 is out of range; write a number from 1, or none for no ceiling"}},
	{"ceiling of a number of time", sweep("ceiling: {time: 10}"), []string{`8:21: jobs.ceiling.time: "10" has no unit; write 10d, 10h or 10min`}},
	{"lock timeout of none", sweep("timeouts: {lock: none}"), []string{`8:22: jobs.timeouts.lock: "none" is no duration; write a whole number and a unit, as in 90d`}},
	{"pause of nothing", sweep("pause: 0ms"), []string{`8:12: jobs.pause: "0ms" is zero; write a duration above zero`}},
	{"commit", sweep("commit: on"), []string{`8:13: jobs.commit: "on" is not known; write async or sync`}},
	{"commit true", sweep("commit: true"), []string{`8:13: jobs.commit: found true; write it in quotes, "true", if that is what is meant`}},

	// index and set
	{"index as a list", sweep("index: [a, b]"), []string{"8:12: jobs.index: found a list; write a name, as in index: jobs_finished_at_idx"}},
	{"set a truth", sweep("set: {que.skip_notify: true}"), []string{`8:28: jobs.set.que.skip_notify: found true; write it in quotes, "true", if that is what is meant`}},
	{"set nothing", sweep("set: {que.skip_notify: }"), []string{`8:11: jobs.set.que.skip_notify: there is no value; write a text, as in {que.skip_notify: "true"}`}},
	{"set a list", sweep("set: [a]"), []string{`8:10: jobs.set: found a list; write a mapping of parameters to texts, as in set: {que.skip_notify: "true"}`}},
	{"set what is ours", sweep("set: {work_mem: 1GB}"), []string{"8:21: jobs.set.work_mem: work_mem is set by prunectl in each batch; leave it out"}},
	{"set what is no parameter", sweep(`set: {"a; drop table jobs": x}`), []string{`8:33: jobs.set.a; drop table jobs: "a; drop table jobs" is no name of a parameter`}},

	// overlaps
	{"overlaps as a word", sweep("overlaps: a"), []string{`8:15: jobs.overlaps: found the text "a", and a list is due; write [a]`}},
	{"overlaps nothing", sweep("overlaps: []"), []string{"8:15: jobs.overlaps: the list is empty; write a list of sweeps, as in overlaps: [old_jobs]"}},
	{"overlaps itself", sweep("overlaps: [jobs]"), []string{"8:16: jobs.overlaps: a sweep does not overlap itself; name earlier sweeps on the same table"}},
	{"overlaps a sweep that is none", sweep("overlaps: [old]"), []string{`8:16: jobs.overlaps: there is no sweep "old"; name earlier sweeps on the same table`}},
	{"two sweeps on one table", sweep() + again("again", "public.jobs", "{ended: true}"), []string{"8:3: again: sweep jobs (line 3) removes from the same table; say overlaps: [jobs] if a row may go by either"}},
	{"one terminal state in two sweeps", sweep() + again("again", "public.jobs", "{state: state, terminal: [failed, dead]}"), []string{
		"8:3: again: sweep jobs (line 3) removes from the same table; say overlaps: [jobs] if a row may go by either"}},
	{"one terminal state in two sweeps, in quotes", sweep("guard: {state: state, terminal: [1]}") + again("again", "public.jobs", "{state: state, terminal: ['1']}"), []string{
		"8:3: again: sweep jobs (line 3) removes from the same table; say overlaps: [jobs] if a row may go by either"}},
	{"states of two columns", sweep() + again("again", "public.jobs", "{state: status, terminal: [dead]}"), []string{
		"8:3: again: sweep jobs (line 3) removes from the same table; say overlaps: [jobs] if a row may go by either"}},
	{"three sweeps on one table", sweep() + again("b", "public.jobs", "{ended: true}", "overlaps: [jobs]") + again("c", "public.jobs", "{ended: true}"), []string{
		"14:3: c: sweeps jobs (line 3), b (line 8) remove from the same table; say overlaps: [jobs, b] if a row may go by any of them"}},
	{"two sweeps on one table, one with a guard that could not be read", sweep("guard: done") + again("again", "public.jobs", "{state: state, terminal: [dead]}"), []string{
		`7:12: jobs.guard: found the text "done"; write a mapping of none, ended, state, terminal, live, final, owner, owed, hold`}},
	{"a table in two spellings", sweep() + again("b", "[public, jobs]", "{ended: true}"), []string{
		"8:3: b: sweep jobs (line 3) removes from the same table; say overlaps: [jobs] if a row may go by either"}},
	{"overlaps a later sweep", sweep("overlaps: [again]") + again("again", "public.jobs", "{ended: true}", "overlaps: [jobs]"), []string{
		"8:16: jobs.overlaps: sweep again comes later; say overlaps: [jobs] there"}},
	{"overlaps a sweep on another table", sweep() + again("again", "public.other", "{ended: true}", "overlaps: [jobs]"), []string{
		"12:16: again.overlaps: sweep jobs removes from another table, public.jobs; leave it out"}},
	{"overlaps a misspelt sweep", sweep() + again("again", "public.jobs", "{ended: true}", "overlaps: [job]"), []string{
		`12:16: again.overlaps: there is no sweep "job"; did you mean jobs?`}},
	{"overlaps twice", sweep() + again("again", "public.jobs", "{ended: true}", "overlaps: [jobs, jobs]"), []string{`12:22: again.overlaps: "jobs" stands twice`}},

	// keys
	{"misspelt key", strings.Replace(window("90"), "window", "windw", 1), []string{`6:5: jobs: unknown key "windw"; did you mean window?`}},
	{"misspelt key of a mapping", sweep("ceiling: {row: 5}"), []string{`8:15: jobs.ceiling: unknown key "row"; did you mean rows?`}},
	{"another tool's key", sweep("-window", "retension: 7d"), []string{`7:5: jobs: unknown key "retension"; did you mean window?`}},
	{"key of nobody", sweep("frobnicate: 1"), []string{`8:5: jobs: unknown key "frobnicate"; there is table, age, expires, window, row_window, floor, only, guard, children, cascades, index, batch, ceiling, timeouts, pause, set, commit, overlaps`}},
	{"key that is no word", sweep(`"a: b\n": 1`), []string{`8:5: jobs: unknown key "a: b\n"; there is table, age, expires, window, row_window, floor, only, guard, children, cascades, index, batch, ceiling, timeouts, pause, set, commit, overlaps`}},
	{"key in capitals", sweep("-window", "Window: 7d"), []string{`7:5: jobs: unknown key "Window"; did you mean window?`}},
	{"switched off", sweep("enabled: false"), []string{"8:5: jobs: key enabled is not part of the language: a sweep that exists and does nothing is how tables grow; comment the sweep out to switch it off"}},
	{"disabled", sweep("disabled: true"), []string{"8:5: jobs: key disabled is not part of the language: a sweep that exists and does nothing is how tables grow; comment the sweep out to switch it off"}},
	{"keep too deep", sweep("batch:", "  limit: 5", "  window: 7d"), []string{`10:7: jobs.batch: unknown key "window"; did you mean window, a key of the sweep itself?`}},
	{"overrides", sweep("overrides: []"), []string{planned("8:5", "jobs", "overrides")}},
	{"detach", sweep("detach: []"), []string{planned("8:5", "jobs", "detach")}},
	{"frees", sweep("frees: []"), []string{planned("8:5", "jobs", "frees")}},
	{"partitions", sweep("partitions: drop"), []string{planned("8:5", "jobs", "partitions")}},
	{"newest", sweep("guard: {newest: {keep: 1}}"), []string{planned("7:13", "jobs.guard", "newest")}},
	{"grace", sweep("age: {column: at, grace: 1d}"), []string{`5:23: jobs.age: unknown key "grace"; did you mean expires.grace?`}},
}

// again is a second sweep, of four lines and those that are given.
func again(name, table, guard string, lines ...string) string {
	s := fmt.Sprintf("  %s:\n    table: %s\n    age: at\n    window: 7d\n    guard: %s\n", name, table, guard)
	if len(lines) > 0 {
		s = fmt.Sprintf("  %s:\n    table: %s\n    age: at\n    window: 7d\n    %s\n    guard: %s\n", name, table, strings.Join(lines, "\n    "), guard)
	}
	return s
}

func TestRefused(t *testing.T) {
	for _, c := range slices.Concat(refused, refusedParents, refusedExpiries, refusedPurges) {
		t.Run(c.name, func(t *testing.T) {
			f, err := policyfile.Parse("p.yaml", []byte(c.file))
			if err == nil {
				t.Fatalf("accepted: %+v %+v\n%s", f.Sweeps, f.Purges, c.file)
			}
			if f != nil {
				t.Error("there is a file beside the error")
			}
			var errs policyfile.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("the error is a %T", err)
			}
			got := strings.ReplaceAll(err.Error(), "p.yaml:", "")
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", c.file, got, want)
			}
		})
	}
}

func TestBaseIsAccepted(t *testing.T) {
	for _, file := range []string{sweep(), top(), top("defaults: {schema: public}"), strings.ReplaceAll(sweep(), "\n", "\r\n")} {
		if _, err := policyfile.Parse("p.yaml", []byte(file)); err != nil {
			t.Errorf("%s\n%v", file, err)
		}
	}
}
