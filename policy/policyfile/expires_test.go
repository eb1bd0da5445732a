package policyfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/policy"
)

// fullExpiries says every key of rows that expire. The floor of all sweeps is about windows, and there is none here.
const fullExpiries = `version: 1
defaults: {schema: app, floor: 2h}
sweeps:
  leases:
    table: leases
    expires: Expires At
    guard: {none: "an expired lease is nobody's"}
  jobs:
    table: jobs
    expires: {column: expires_at, as: instant, since: 2001-02-03, grace: 10min}
    guard: {state: state, terminal: [done], hold: legal}
    children: [{table: logs, key: {id: job_id}}]
`

func TestEveryKeyOfExpiries(t *testing.T) {
	leases := policy.Sweep{
		Name: "leases", Table: policy.Name{Schema: "app", Table: "leases"}, Age: "Expires At", Expires: true, Window: policy.AtOnce,
		Guard: policy.Guard{None: "an expired lease is nobody's"},
	}
	jobs := policy.Sweep{
		Name: "jobs", Table: policy.Name{Schema: "app", Table: "jobs"}, Age: "expires_at", Expires: true, Window: policy.MustWindow(10 * time.Minute),
		Since:    time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC),
		Guard:    policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}, Hold: "legal"},
		Children: []policy.Child{{Table: policy.Name{Schema: "app", Table: "logs"}, Key: []policy.ChildKey{{Parent: "id", Child: "job_id"}}}},
	}
	f := parse(t, fullExpiries)
	if d := cmp.Diff([]policy.Sweep{leases, jobs}, f.Sweeps, compare); d != "" {
		t.Error(d)
	}
	for key, want := range map[string]string{"expires": "p.yaml:10:14", "expires.grace": "p.yaml:10:74"} {
		if got := f.Position("jobs", key); got != want {
			t.Errorf("Position(%q) = %s, want %s", key, got, want)
		}
	}
}

// expiring is the file with an expiry in place of the age and the window.
func expiring(expires string, lines ...string) string {
	return sweep(append([]string{"-age", "-window", "expires: " + expires}, lines...)...)
}

// refusedExpiries are the refusals of an expiry, and of what cannot stand beside it.
var refusedExpiries = []refusal{
	{"expires without a value", expiring(""), []string{"6:5: jobs.expires: there is no value; write the name of a column, or a mapping, as in expires: expires_at"}},
	{"expires as a list", expiring("[a, b]"), []string{"6:14: jobs.expires: found a list; write the name of a column, or a mapping, as in expires: expires_at"}},
	{"expires true", expiring("true"), []string{`6:14: jobs.expires: found true; write it in quotes, "true", if that is what is meant`}},
	{"expires with blanks", expiring(`" at"`), []string{`6:14: jobs.expires: " at" has blanks round it; write at`}},
	{"expires empty", expiring("{}"), []string{"6:14: jobs.expires: the mapping is empty; write one of column, as, since, grace, or leave the key out"}},
	{"expires without a column", expiring("{grace: 1d}"), []string{"6:5: jobs.expires: column is missing; write column: expires_at"}},
	{"expires in wall time", expiring("{column: at, as: wall, zone: UTC}"), []string{
		"6:31: jobs.expires.as: wall is planned, not in this version; the age is a timestamptz column", planned("6:37", "jobs.expires", "zone")}},
	{"expires as nothing known", expiring("{column: at, as: date_time}"), []string{`6:31: jobs.expires.as: "date_time" is no kind of age; write instant, or leave the key out`}},
	{"expires since a year", expiring("{column: at, since: 2015}"), []string{`6:34: jobs.expires.since: "2015" is no date; write year-month-day, as in 1990-01-01`}},
	{"a window in the expiry", expiring("{column: at, window: 1d}"), []string{`6:27: jobs.expires: unknown key "window"; did you mean window, a key of the sweep itself?`}},
	{"grace of never", expiring("{column: at, grace: never}"), []string{"6:34: jobs.expires.grace: never would keep what has expired for ever; write a duration, as in grace: 1d"}},
	{"grace of at once", expiring("{column: at, grace: at_once}"), []string{"6:34: jobs.expires.grace: at_once is no duration; leave the key out: a row then goes as soon as it has expired"}},
	{"grace without a unit", expiring("{column: at, grace: 90}"), []string{`6:34: jobs.expires.grace: "90" has no unit; write 90d, 90h or 90min`}},
	{"grace by state", expiring("{column: at, grace: {done: 1d}}"), []string{"6:34: jobs.expires.grace: found a mapping; write a duration, as in grace: 1d"}},
	{"grace in the sweep", expiring("at", "grace: 1d"), []string{`7:5: jobs: unknown key "grace"; did you mean expires.grace?`}},

	{"age beside expires", sweep("-window", "expires: at"), []string{"5:5: jobs.age: expires stands in the place of age; keep one of them"}},
	{"window beside expires", sweep("-age", "expires: at"), []string{
		"5:5: jobs.window: expires stands in the place of window; leave it out, and write grace in expires to keep rows for longer"}},
	{"age and a wrong window beside expires", sweep("window: {done: 90}", "expires: at"), []string{
		"5:5: jobs.age: expires stands in the place of age; keep one of them",
		"6:5: jobs.window: expires stands in the place of window; leave it out, and write grace in expires to keep rows for longer"}},
	{"row_window beside expires", expiring("at", "row_window: {column: keep, unit: s}"), []string{
		"7:5: jobs.row_window: a row that says when it expires has no window beside it; leave it out, or write age and window in place of expires"}},
	{"overrides beside expires", expiring("at", "overrides: []"), []string{planned("7:5", "jobs", "overrides")}},
	{"floor beside expires", expiring("at", "floor: 1s"), []string{"7:5: jobs.floor: an expiry has no floor: what wrote it has decided how long the row is kept; leave it out"}},
	{"a wrong floor beside expires", expiring("at", "floor: 1"), []string{`7:12: jobs.floor: "1" has no unit; write 1d, 1h or 1min`}},
	{"no guard beside expires", expiring("at", "-guard"), []string{"3:3: jobs: guard is missing; write guard: {ended: true}"}},

	{"expires misspelt", sweep("-age", "-window", "expire: at"), []string{`6:5: jobs: unknown key "expire"; did you mean expires?`}},
	{"expires by another word", sweep("-age", "-window", "expiration: at"), []string{`6:5: jobs: unknown key "expiration"; did you mean expires?`}},
	{"expires with the name of the column", sweep("-age", "-window", "expires_at: at"), []string{`6:5: jobs: unknown key "expires_at"; did you mean expires?`}},
}

func TestAcceptedExpiries(t *testing.T) {
	for _, file := range []string{
		expiring("at"), expiring(`"at"`), expiring("{column: at}"), expiring("{column: at, grace: 1s}"), expiring("{column: at, grace: 36500d}"),
		expiring("at", "guard: {ended: true}"), expiring("at", "guard: {none: nothing refers to it}"), expiring("at", "guard: {hold: legal}"),
		strings.Replace(expiring("at"), "sweeps:", "defaults: {floor: 1d}\nsweeps:", 1),
	} {
		if s := parse(t, file).Sweeps[0]; !s.Expires || s.Age != "at" || s.Floor != 0 {
			t.Errorf("%s\n%+v", file, s)
		}
	}
}
