package faults

import (
	"strings"

	"github.com/prunectl/prunectl/internal/report"
)

// upToTwentyDays is what the oracle of the rows of 0 to 20 days says: how many of them each window below takes.
const upToTwentyDays = `select count(*) || ' ' || count(*) filter (where finished_at < now() - interval '7 days') || ' ' || count(*) filter (where finished_at < now() - interval '28 days') from jobs`

func window(w string) string { return with(jobsSweep, "window: "+w) }

// noWindow is a run that ends before any row was touched, for what is written as the window.
func noWindow(w string, says ...string) run {
	return refused("window: "+w, window(w), 21, append(says, "prunectl.yaml:", "jobs.window")...)
}

// windows are faults of how a window, and what goes with it, is read.
var windows = []fault{
	{
		file: "window-misread", as: "zero", query: upToTwentyDays, answer: "21 14 0", rows: countJobs,
		steps: []step{
			noWindow("0", `"0" is zero`), noWindow("0d", `"0d" is zero`), noWindow("0s", `"0s" is zero`), noWindow(`"0"`, `"0" is zero`),
			refused("window missing", without(jobsSweep, "window"), 21, "jobs: window is missing"),
			noWindow("forever", `"forever"`, "write never"), noWindow("now", `"now"`, "write at_once"),
			run{name: "window: never", args: "sweep --detailed-exitcode", policy: window("never"), outcome: outcome{stop: report.Drained}, left: 21},
			refused("window: at_once with nothing that protects a row", with(window("at_once"), `guard: {none: "rows of a test, on which nothing is owed"}`), 21,
				"jobs.window", "at_once stands only beside guard.state, guard.owner or guard.owed"),
			run{name: "window: at_once", policy: window("at_once"), outcome: outcome{stop: report.Drained, removed: 21}},
		},
	},
	{
		file: "window-misread", as: "negative, empty or no number", query: upToTwentyDays, answer: "21 14 0", rows: countJobs,
		steps: []step{
			noWindow("-7d", `"-7d"`), noWindow(`""`, `""`), noWindow(`"  "`, `"  "`), noWindow("null", "null"), noWindow("", "there is no value"), noWindow("7.5d", `"7.5d"`),
			noWindow("1e3d", `"1e3d"`), noWindow("7 d", `"7 d"`), noWindow("٧d", `"٧d"`), noWindow("[7d]", "a list"), noWindow("false", "false"),
			run{name: "a variable in the policy", policy: window("${KEEP}"), env: []string{"KEEP=7d"}, code: 2, left: 21, says: []string{"jobs.window", `"${KEEP}"`}},
			run{name: "a variable that is set but empty", policy: jobsSweep, env: []string{"PRUNECTL_POLICY="}, code: 2, left: 21, says: []string{"PRUNECTL_POLICY"}},
			run{name: "a connection that is set but empty", policy: jobsSweep, env: []string{"DATABASE_URL="}, code: 2, left: 21, says: []string{"DATABASE_URL"}},
			run{name: "a flag that is empty", args: "sweep --max-time=", policy: jobsSweep, code: 2, left: 21, says: []string{"--max-time"}},
		},
	},
	{
		file: "window-misread", as: "in units", query: upToTwentyDays, answer: "21 14 0", rows: countJobs,
		steps: []step{
			noWindow("30", `"30" has no unit`), noWindow("1m", `"1m"`), noWindow("1M", `"1M"`), noWindow("1mo", `"1mo"`), noWindow("1y", `"1y"`), noWindow("P30D", `"P30D"`),
			noWindow("30 days", `"30 days"`), noWindow("1h30m", `"1h30m"`), noWindow("30D", `"30D"`),
			run{name: "window: 30d", policy: window("30d"), outcome: outcome{stop: report.Drained}, left: 21, checked: keeps(30 * 24)},
			run{name: "window: 720h", policy: window("720h"), outcome: outcome{stop: report.Drained}, left: 21, checked: keeps(720)},
			run{name: "window: 4w", policy: window("4w"), outcome: outcome{stop: report.Drained}, left: 21, checked: keeps(28 * 24)},
			run{name: "window: 168h", policy: window("168h"), outcome: outcome{stop: report.Drained, removed: 14}, left: 7, checked: keeps(7 * 24)},
			run{name: "window: 90min", policy: window("90min"), outcome: outcome{stop: report.Drained, removed: 6}, left: 1},
		},
	},
	{
		file: "window-longer-than-time", query: "select count(*) from jobs", answer: "6", rows: countJobs,
		steps: []step{
			refused("2,500,000 days", window("2500000d"), 6, "jobs.window", `"2500000d"`, "36500d"),
			refused("100,000 years", window("36500000d"), 6, "jobs.window", `"36500000d"`, "36500d"),
			refused("100,000 years in years", window("100000y"), 6, "jobs.window", `"100000y"`),
			refused("Infinity", window("Infinity"), 6, "jobs.window", `"Infinity"`),
			refused(".inf", window(".inf"), 6, "jobs.window", `".inf"`),
			run{name: "the longest", policy: window("36500d"), outcome: outcome{stop: report.Drained, undated: 1}, left: 6},
			run{name: "too old to be an age", policy: window("7d"), outcome: outcome{stop: report.Drained, undated: 1}, left: 6},
			run{name: "and an age where the policy says so", policy: with(jobsSweep, "age: {column: finished_at, since: 1970-01-01}"), outcome: outcome{stop: report.Drained, removed: 1}, left: 5},
		},
	},
	{
		file: "switched-off-at-the-top", query: upToTwentyDays, answer: "21 14 0", rows: countJobs,
		steps: []step{
			run{name: "a window for all", file: head("defaults: {schema: public, window: never}", jobsSweep), code: 2, left: 21, says: []string{`unknown key "window"`}},
			run{name: "off for all", file: head("defaults: {schema: public, enabled: false}", jobsSweep), code: 2, left: 21,
				says: []string{"key enabled is not part of the language", "comment the sweep out to switch it off"}},
			refused("off for one", with(jobsSweep, "enabled: false"), 21, "jobs: key enabled is not part of the language"),
			run{name: "never beside a window", policy: with(named(jobsSweep, "kept"), "window: never") + with(jobsSweep, "overlaps: [kept]"),
				outcome: outcome{sweep: "jobs", stop: report.Drained, removed: 14}, also: []outcome{{sweep: "kept", stop: report.Drained}}, left: 7},
		},
	},
	{
		file: "keys-not-known", query: upToTwentyDays, answer: "21 14 0", rows: countJobs,
		steps: []step{
			refused("misspelt", with(without(jobsSweep, "window"), "retension: 7d"), 21, `prunectl.yaml:10:5: jobs: unknown key "retension"; did you mean window?`),
			run{name: "one level too deep", file: fileOf(strings.Replace(jobsSweep, "    window", "      window", 1)), code: 2, left: 21, says: []string{"prunectl.yaml:6:10: "}},
			refused("in the guard", strings.Replace(without(jobsSweep, "window"), "{state:", "{window: 7d, state:", 1), 21, "prunectl.yaml:7:13: jobs.guard", `unknown key "window"`),
			refused("twice", jobsSweep+"    window: 8d\n", 21, "prunectl.yaml:11:5: ", "window"),
			refused("twice and alike", jobsSweep+"    window: 7d\n", 21, "prunectl.yaml:11:5: ", "window"),
			refused("batchsize", with(jobsSweep, "batchsize: 50"), 21, `prunectl.yaml:11:5: jobs: unknown key "batchsize"; did you mean batch`),
			refused("two sweeps of one table", jobsSweep+named(jobsSweep, "jobs_again"), 21, "prunectl.yaml:12:3: jobs_again: sweep jobs (line 4) removes from the same table; say overlaps: [jobs]"),
			refused("a sweep twice", jobsSweep+jobsSweep, 21, "prunectl.yaml:12:3: ", "jobs"),
			refused("a name with a blank behind it", with(jobsSweep, `table: "jobs "`), 21, "jobs.table", "has blanks round it"),
			run{name: "a tab", file: strings.Replace(fileOf(jobsSweep), "    window", "\twindow", 1), code: 2, left: 21, says: []string{"prunectl.yaml:7:"}},
			refused("a word where a list is due", with(jobsSweep, "guard: {state: state, terminal: done}"), 21, "prunectl.yaml:10:", "jobs.guard.terminal", `"done"`, "write [done]"),
			refused("no terminal state", with(jobsSweep, "guard: {state: state, terminal: []}"), 21, "prunectl.yaml:10:", "jobs.guard.terminal", "the list is empty"),
			refused("several at once", with(jobsSweep, "retension: 7d", "window: 7", "guard: {state: state, terminal: []}"), 21, `unknown key "retension"`, `"7" has no unit`, "the list is empty"),
			run{name: "a byte order mark", file: "\ufeff" + fileOf(jobsSweep), code: 2, left: 21, says: []string{"prunectl.yaml:1:1: the file starts with a byte order mark"}},
		},
	},
}

// head is a file with this line in the place of its defaults.
func head(line, sweeps string) string {
	return strings.Replace(fileOf(sweeps), "defaults: {schema: public}", line, 1)
}

// keeps looks for the window in the report, and for the cutoff that follows from it.
func keeps(hours int64) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		a := r.Sweeps[0].Arms[0]
		if a.Window == nil || *a.Window != hours*3600 || a.Cutoff == nil || r.Now.Sub(*a.Cutoff).Hours() != float64(hours) {
			s.t.Errorf("the report does not say that rows are kept for %d hours before %v: %+v", hours, r.Now, a)
		}
	}
}
