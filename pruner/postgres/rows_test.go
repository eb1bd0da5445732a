package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// ownRow is a row of a table whose rows have windows of their own.
type ownRow struct {
	id    int
	age   *time.Time
	own   *int64 // in units, or seconds for an interval
	state string // "" for null
	hold  *bool
	kind  string
}

// ownKind is a type of the column, and ownIndex an index with what it knows of it.
type ownKind struct {
	typ  string
	unit time.Duration
	min  int64 // of the type
	max  int64
}

type ownIndex struct {
	name, ddl string
	expiry    bool
}

var ownIndexes = []ownIndex{
	{"age", "CREATE INDEX ON t (at, id)", false},
	{"age, untied", "CREATE INDEX ON t (at)", false},
	{"age, by part", "CREATE INDEX ON t (at, id) WHERE own IS NULL; CREATE INDEX ON t (at, id) WHERE own IS NOT NULL", false},
	{"expression", "CREATE INDEX ON t (at, id) WHERE own IS NULL; CREATE INDEX ON t (%s, id) WHERE own IS NOT NULL", true},
	{"generated", "ALTER TABLE t ADD until timestamptz GENERATED ALWAYS AS (%s) STORED; CREATE INDEX ON t (at, id); CREATE INDEX ON t (until, id) WHERE own IS NOT NULL", true},
	{"state and age", "CREATE INDEX ON t (state, at, id)", false},
	{"generated, whole", "ALTER TABLE t ADD until timestamptz GENERATED ALWAYS AS (%s) STORED; CREATE INDEX ON t (at, id); CREATE INDEX ON t (until)", true},
}

// ownCase is a sweep over a table t with windows of the rows' own, held and not, through an index.
type ownCase struct {
	kind  ownKind
	index string // of ownIndexes
	zero  bool   // never

	byState bool // the states have windows of their own
}

func (c ownCase) String() string {
	name := fmt.Sprintf("%s by %s, through an index by %s", c.kind.typ, policy.FormatDuration(c.kind.unit), c.index)
	if c.zero {
		name += ", zero for ever"
	}
	if c.byState {
		name += ", windows by state"
	}
	return name
}

var ownSeconds = ownKind{"bigint", time.Second, -1 << 63, 1<<63 - 1}

func (c ownCase) sweep() policy.Sweep {
	s := policy.Sweep{Name: "t", Table: policy.Name{Schema: "public", Table: "t"}, Age: "at", Window: policy.MustWindow(30 * 24 * time.Hour),
		Own:   &policy.RowWindow{Column: "own", Unit: c.kind.unit, ZeroNever: c.zero},
		Only:  []policy.Match{{Column: "kind", Values: policy.Texts("other"), Not: true}},
		Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "failed")}, Hold: "hold"}}
	if c.byState {
		s.Window = policy.Never
		s.ByState = []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(24 * time.Hour)}, {State: policy.Text("failed"), Window: policy.MustWindow(30 * 24 * time.Hour)}}
	}
	return s
}

// fill makes the table, and reports whether its index has expiries.
func (c ownCase) fill(t testing.TB, db *pgtest.DB) (expiry bool) {
	t.Helper()
	unit := map[time.Duration]string{0: "own", time.Second: "own * interval '1 second'", time.Minute: "own * interval '1 minute'", time.Hour: "own * interval '1 hour'", 24 * time.Hour: "own * interval '1 day'"}[c.kind.unit]
	i := slices.IndexFunc(ownIndexes, func(x ownIndex) bool { return x.name == c.index })
	db.Exec(t, "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, at timestamptz, own "+c.kind.typ+", state text, hold boolean, kind text);"+
		strings.ReplaceAll(ownIndexes[i].ddl, "%s", "(((at AT TIME ZONE 'UTC') + "+unit+") AT TIME ZONE 'UTC')"))
	return ownIndexes[i].expiry
}

// berlin is a zone whose clocks are put forward within the windows of the rows.
func berlin(c *pgx.ConnConfig) { c.RuntimeParams["timezone"] = "Europe/Berlin" }

// TestOwnWindows holds what the engine removes and counts of rows with windows of their own, held and not, against the
// decision of the policy, for each type of the column and each index. No window, however nonsensical, ends a batch.
func TestOwnWindows(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, berlin)
	const day = 24 * time.Hour
	cases := []ownCase{{kind: ownSeconds, index: "age", zero: true}, {kind: ownSeconds, index: "generated", zero: true}, {kind: ownKind{"interval", 0, -1 << 40, 1 << 40}, index: "age", zero: true},
		{kind: ownSeconds, index: "age", byState: true}, {kind: ownSeconds, index: "state and age", byState: true}, {kind: ownSeconds, index: "generated", byState: true}}
	for _, k := range []ownKind{
		{"smallint", day, -1 << 15, 1<<15 - 1}, {"integer", time.Second, -1 << 31, 1<<31 - 1}, {"integer", time.Hour, -1 << 31, 1<<31 - 1},
		{"bigint", time.Minute, -1 << 63, 1<<63 - 1}, ownSeconds, {"interval", 0, -1 << 40, 1 << 40},
	} {
		for _, x := range ownIndexes {
			cases = append(cases, ownCase{kind: k, index: x.name})
		}
	}
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			if err := c.run(t.Context(), t, db, Conn(conn), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// ownRows are rows around every edge that there is.
func ownRows(now time.Time, k ownKind, expiry bool) (rows []ownRow) {
	const day = 24 * time.Hour
	unit := max(k.unit, time.Second)
	var ages []*time.Time
	for _, before := range []time.Duration{-day, 0, time.Hour - time.Microsecond, time.Hour, time.Hour + time.Microsecond, day - time.Microsecond, day, day + time.Microsecond,
		30*day - time.Microsecond, 30 * day, 30*day + time.Microsecond, 400 * day} {
		at := now.Add(-before)
		ages = append(ages, &at)
	}
	old := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	ages = append(ages, nil, &old)
	windows := []*int64{nil}
	longest := int64(policy.MaxWindow / unit)
	for _, n := range []int64{0, -5, 1, int64(time.Hour / unit), int64(time.Hour/unit) - 1, int64(day / unit), int64(30 * day / unit), int64(20 * 365 * day / unit), longest, longest + 1, k.min, k.max} {
		if expiry && (n == k.min || n == k.max) {
			continue // the server itself keeps such a row out of the index
		}
		if n = min(n, k.max); n >= k.min {
			windows = append(windows, &n)
		}
	}
	yes, no := true, false
	for _, at := range ages {
		for _, own := range windows {
			for _, state := range []string{"done", "failed", "open", ""} {
				for _, hold := range []*bool{nil, &yes, &no} {
					r := ownRow{len(rows) + 1, at, own, state, hold, "one"}
					if r.id%7 == 0 {
						r.kind = "other"
					}
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

func (r ownRow) decide(s policy.Sweep, now time.Time, k ownKind) (policy.Verdict, int64) {
	in := policy.Row{Age: r.age, Columns: map[string]policy.Value{"state": policy.Null, "hold": policy.Null, "kind": policy.Text(r.kind)}}
	if r.state != "" {
		in.Columns["state"] = policy.Text(r.state)
	}
	if r.hold != nil {
		in.Columns["hold"] = policy.Bool(*r.hold)
	}
	seconds := int64(0)
	if r.own != nil {
		unit := int64(max(k.unit, time.Second) / time.Second)
		if seconds = *r.own * unit; *r.own != 0 && seconds/unit != *r.own {
			seconds = -1 // beyond all numbers is as unusable as below zero
		}
		in.Own = &seconds
	}
	return s.Decide(now, in).Verdict, seconds
}

// ownCounts are what a case is judged by.
type ownCounts struct{ removed, held, unusable, raised, undated int }

// expect is what the policy says of the rows, and how far the one that is longest past its own window is past it.
func (c ownCase) expect(rows []ownRow, now time.Time, expiry bool) (want ownCounts, due map[int]bool, late time.Duration) {
	due = map[int]bool{}
	s := c.sweep()
	for _, r := range rows {
		verdict, seconds := r.decide(c.sweep(), now, c.kind)
		switch verdict {
		case policy.Due:
			want.removed++
			due[r.id] = true
			w := s.WindowOf(policy.Text(r.state))
			if r.own != nil {
				w, _ = s.OwnWindow(seconds)
			}
			late = max(late, now.Sub(*r.age)-w.Duration())
		case policy.Held:
			want.held++
		case policy.Unusable:
			if !expiry || seconds <= 0 { // a window that is too long ends in a hundred years
				want.unusable++
			}
		case policy.Undated:
			if !expiry || r.age == nil || r.own == nil || seconds < int64(10*365*24*time.Hour/time.Second) { // and so with an age of long ago
				want.undated++
			}
		}
		if seconds > 0 && seconds < 3600 && (verdict == policy.Due || verdict == policy.Held) {
			want.raised++
		}
	}
	return want, due, late
}

// run fills the table, drains it arm by arm, and says what is other than the policy has it.
func (c ownCase) run(ctx context.Context, t testing.TB, db *pgtest.DB, to *DB, edit func(shape, string) string) error {
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC) // the day after the clocks were put forward
	expiry := c.fill(t, db)
	rows := ownRows(now, c.kind, expiry)
	var values []string
	for _, r := range rows {
		values = append(values, fmt.Sprintf("(%d, %s, %s, %s, %s, '%s')", r.id, sqlOf(r.age), ownSQL(r.own, c.kind), sqlOf(r.state), sqlOf(r.hold), r.kind))
	}
	db.Exec(t, "INSERT INTO t (id, at, own, state, hold, kind) VALUES "+strings.Join(values, ", "))
	arms, err := Open(ctx, to, c.sweep(), Options{})
	if err != nil {
		return err
	}
	var got, planned ownCounts
	outside, held := 0, 0
	var overdue time.Duration
	for _, a := range arms {
		a.edit = edit
		if a.arm.Expiry != (expiry && a.arm.Own != nil) {
			return fmt.Errorf("%s goes through %s by expiry: %t", a.arm.Name, a.Index(), a.arm.Expiry)
		}
		cutoff := a.arm.Window.Cutoff(now)
		p, err := a.Plan(ctx, cutoff, 100_000)
		if err != nil {
			return err
		}
		planned.removed, planned.held, planned.unusable, planned.raised, outside = planned.removed+p.Due, planned.held+p.Held, planned.unusable+p.Unusable, planned.raised+p.Raised, outside-p.Outside
		overdue = max(overdue, p.Overdue)
		by, err := a.HeldBy(ctx, cutoff, 100_000)
		if err != nil {
			return err
		}
		for _, h := range by {
			held += h.Rows
			if h.Reason != "state" && (h.Reason != "hold" || h.Value != "") {
				return fmt.Errorf("rows are held by %+v", h)
			}
		}
		n, err := a.Undated(ctx, 100_000)
		if err != nil || n == nil {
			return fmt.Errorf("undated rows: %v, %w", n, err)
		}
		got.undated += *n
		for at, end := (pruner.Cursor{}), false; !end; {
			res, err := a.Prune(ctx, pruner.Batch{Cutoff: cutoff, Limit: 40, After: at})
			if err != nil {
				return err
			}
			got.removed, got.held, got.unusable, got.raised, outside = got.removed+res.Removed, got.held+res.Held, got.unusable+res.Unusable, got.raised+res.Raised, outside+res.Outside
			if res.Moved+res.Stuck+res.Locked > 0 {
				return fmt.Errorf("a batch counted %+v", res)
			}
			at, end = res.Next, res.End
		}
	}
	planned.undated = got.undated
	if planned != got || outside != 0 || held != got.held {
		return fmt.Errorf("the plan was %+v with %d held, and the batches counted %+v; %d more outside", planned, held, got, outside)
	}
	want, due, late := c.expect(rows, now, expiry)
	if overdue != late {
		return fmt.Errorf("the plan says overdue by %s; want %s", overdue, late)
	}
	if len(arms) > 2 { // by state, they see terminal rows alone
		want.held, want.unusable, want.raised = got.held, got.unusable, got.raised
	}
	if got != want {
		return fmt.Errorf("the batches counted %+v; want %+v", got, want)
	}
	left := " " + db.Text(t, "SELECT string_agg(id::text, ' ') FROM t") + " "
	for _, r := range rows {
		if there := strings.Contains(left, fmt.Sprintf(" %d ", r.id)); due[r.id] == there {
			return fmt.Errorf("a row is there: %t, and due: %t: age %s, own window %s, state %q, hold %s, kind %s", there, due[r.id], sqlOf(r.age), ownSQL(r.own, c.kind), r.state, sqlOf(r.hold), r.kind)
		}
	}
	return nil
}

func ownSQL(own *int64, k ownKind) string {
	switch {
	case own == nil:
		return "NULL"
	case k.unit == 0 && *own%86400 == 0:
		return fmt.Sprintf("interval '%d days'", *own/86400) // as people write it
	case k.unit == 0:
		return fmt.Sprintf("'%d hours %d seconds'::interval", *own/3600, *own%3600)
	}
	return fmt.Sprintf("'%d'::%s", *own, k.typ)
}

func sqlOf(v any) string {
	switch v := v.(type) {
	case *time.Time:
		if v != nil {
			return literal(timestamptz(v.UnixMicro()))
		}
	case *bool:
		if v != nil {
			return fmt.Sprint(*v)
		}
	case string:
		if v != "" {
			return literal(v)
		}
	}
	return "NULL"
}
