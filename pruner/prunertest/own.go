package prunertest

import (
	"context"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/policy"
)

var ownChecks = []Check{
	{"a row goes by its own window", checkOwn},
	{"an own window below the floor is raised to it", checkOwnFloor},
	{"an own window that is none keeps its row", checkOwnUnusable},
	{"zero can mean for ever", checkOwnZero},
	{"own windows have units", checkOwnUnits},
	{"own windows beside guards and children", checkOwnBeside},
}

// ownPairs are the ways in which rows with and without a window of their own are found.
var ownPairs = []struct{ index, own Index }{{AgeUnique, Index{}}, {AgeAlone, Index{}}, {DefaultAge, OwnAge}, {DefaultAge, OwnExpiry}}

// withOwn is the population with the windows of its rows in seconds, found through these indexes.
func withOwn(fix Fixture, index, own Index) Fixture {
	fix.Index, fix.OwnIndex = index, own
	if fix.Sweep.Own == nil {
		fix.Sweep.Own = &policy.RowWindow{Column: "own", Unit: time.Second}
	}
	if own.DDL != "" {
		fix.Sweep.Index = "" // there is one for each kind of row
	}
	return fix
}

// ownRow is a row of this age with a window of its own in seconds.
func ownRow(id int64, age Age, own int64) Row {
	r := entry(id, age, completed, 1)
	r.Own = policy.Int(own)
	return r
}

// ownChecked runs the passes through every pair of indexes, and holds what is left against the rows to be kept.
func ownChecked(ctx context.Context, f Factory, fix Fixture, kept func(Row) bool) error {
	for i, pair := range ownPairs {
		limit := []int{7, 100}[i%2]
		if err := passAndLeft(ctx, f, withOwn(fix, pair.index, pair.own), limit, kept); err != nil {
			return fmt.Errorf("own index on %v, limit %d: %w", pair.own.Columns, limit, err)
		}
	}
	return nil
}

const (
	seconds = int64(time.Second)
	days    = int64(day)
)

// checkOwn has rows round the end of each window, those without one of their own round the sweep's.
func checkOwn(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(noGuard)}
	kept := map[int64]bool{}
	for _, own := range []int64{0, 1 * days, 10 * days, 29*days + seconds, 30 * days, 31 * days, 300 * days, 36500 * days} {
		window := own
		if own == 0 {
			window = 30 * days
		}
		for _, d := range []time.Duration{-300 * day, -time.Second, -time.Microsecond, 0, time.Microsecond, time.Second} {
			id := int64(1000 - len(fix.Rows))
			age := Now.Add(d - time.Duration(window))
			if age.Before(policy.DefaultSince) {
				age = Now.Add(-20*365*day + d)
				kept[id] = true
			} else {
				kept[id] = d >= 0
			}
			r := ownRow(id, At(age), own/seconds)
			if own == 0 {
				r.Own = policy.Null
			}
			fix.Rows = append(fix.Rows, r)
		}
	}
	return ownChecked(ctx, f, fix, func(r Row) bool { return kept[r.ID] })
}

// checkOwnFloor has rows round the end of their own windows and round the floor.
func checkOwnFloor(ctx context.Context, f Factory) error {
	for _, floor := range []time.Duration{0, 5 * day} { // 0: the default
		fix := Fixture{Sweep: sweepOf(noGuard)}
		fix.Sweep.Floor = floor
		floor := fix.Sweep.WithDefaults().Floor
		kept := map[int64]bool{}
		for _, own := range []time.Duration{time.Second, floor - time.Second, floor, floor + time.Second} {
			for _, end := range []time.Duration{own, floor, 40 * day} {
				for _, d := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
					id := int64(1000 - len(fix.Rows))
					age := Now.Add(d - end)
					kept[id] = !age.Before(Now.Add(-max(own, floor)))
					fix.Rows = append(fix.Rows, ownRow(id, At(age), int64(own/time.Second)))
				}
			}
		}
		if err := ownChecked(ctx, f, fix, func(r Row) bool { return kept[r.ID] }); err != nil {
			return err
		}
	}
	return nil
}

// unusable are windows that are none: zero, negative, and longer than a hundred years.
var unusable = []int64{0, -1, -5, 36500*86400 + 1, 40000 * 86400}

func checkOwnUnusable(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(noGuard), Rows: entries(10)}
	for i, own := range unusable {
		for j, age := range []Age{old(i), young(i), At(Now.Add(-time.Minute)), At(Now.Add(-time.Hour)), At(Now.Add(-time.Hour - time.Microsecond))} {
			fix.Rows = append(fix.Rows, ownRow(int64(100+10*i+j), age, own))
		}
	}
	fix.Rows = append(fix.Rows, ownRow(200, old(5), 1*days/seconds), ownRow(201, old(3), 36500*days/seconds))
	return ownChecked(ctx, f, fix, func(r Row) bool { return !r.Own.IsNull() && r.ID != 200 })
}

func checkOwnZero(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(noGuard), Rows: entries(10)}
	fix.Sweep.Own = &policy.RowWindow{Column: "own", Unit: time.Second, ZeroNever: true}
	for i := range fix.Rows {
		if i%2 == 0 {
			fix.Rows[i].Own = policy.Int(int64(i % 4)) // 0 and 2
		}
	}
	fix.Rows = append(fix.Rows, ownRow(100, old(3), -1))
	return ownChecked(ctx, f, fix, func(r Row) bool { return r.Own == policy.Int(0) || r.ID == 100 })
}

// checkOwnUnits has windows in each unit, and as intervals.
func checkOwnUnits(ctx context.Context, f Factory) error {
	type pair struct{ index, own Index }
	for _, c := range []struct {
		column string
		unit   time.Duration
		pairs  []pair
	}{
		{"own", time.Second, []pair{{AgeUnique, Index{}}, {DefaultAge, OwnExpiry}}},
		{"own", time.Minute, []pair{{AgeUnique, Index{}}}},
		{"own", time.Hour, []pair{{DefaultAge, OwnAge}}},
		{"own", day, []pair{{AgeUnique, Index{}}, {DefaultAge, OwnDays}}},
		{"span", 0, []pair{{AgeUnique, Index{}}, {AgeAlone, Index{}}}},
	} {
		fix := Fixture{Sweep: sweepOf(noGuard)}
		fix.Sweep.Own = &policy.RowWindow{Column: c.column, Unit: c.unit}
		unit := max(time.Second, c.unit)
		most := int64(policy.MaxWindow / unit)
		kept := map[int64]bool{}
		for _, own := range []int64{-1, 0, 1, int64(5 * day / unit), most, most + 1} {
			window := max(time.Hour, time.Duration(min(own, most))*unit)
			for _, age := range []time.Duration{window - time.Microsecond, window, window + time.Microsecond, 20 * day} {
				if own >= most {
					age = 20*day + age%day
				}
				id := int64(1000 - len(fix.Rows))
				kept[id] = own < 1 || own > most || age <= window
				fix.Rows = append(fix.Rows, ownRow(id, At(Now.Add(-age)), own))
			}
		}
		for _, p := range c.pairs {
			if err := passAndLeft(ctx, f, withOwn(fix, p.index, p.own), 9, func(r Row) bool { return kept[r.ID] }); err != nil {
				return fmt.Errorf("%s in units of %s, own index on %v: %w", c.column, c.unit, p.own.Columns, err)
			}
		}
	}
	return nil
}

// checkOwnBeside has every guard, only, windows by state and children beside own windows.
func checkOwnBeside(ctx context.Context, f Factory) error {
	parent := owedGuard()
	parent.Hold = "hold"
	only := sweepOf(stateGuard())
	only.Only = []policy.Match{{Column: "kind", Values: policy.Texts("k")}}
	only.Guard.Hold = "hold"
	for _, s := range []policy.Sweep{sweepOf(stateGuard()), sweepOf(ownerGuard()), byState(bothGuards()), familyOf(parent), only} {
		pairs := ownPairs
		if s.Guard.State != nil {
			pairs = append(pairs[:len(pairs):len(pairs)], struct{ index, own Index }{StateAge, Index{}}, struct{ index, own Index }{AgeTerminal, Index{}})
		}
		fix := Fixture{Sweep: s, Owners: owners}
		for i := range 60 {
			// Past every window, inside the sweep's, and past its own; each with a window of its own and without.
			r := entry(int64(i+1), []Age{old(i), young(i), old(0)}[i%3], completed, 1)
			r.Own = []policy.Value{policy.Null, policy.Int(10), policy.Int(2 * 86400), policy.Int(100 * 86400), policy.Int(0)}[i%5]
			switch i / 5 % 4 {
			case 0:
				r.State, r.Owner, r.Hold = running, policy.Int(2), policy.Bool(true)
			case 1:
				r.State, r.Owner, r.Kind = terminal[1], policy.Int(1), policy.Text("l")
			case 2:
				r.State, r.Owner = terminal[2], policy.Int(77)
			}
			if s.Guard.Owed != nil {
				r = noted(parts(r, completed, terminal[1], []policy.Value{completed, running, policy.Null}[i%7%3]))
			}
			fix.Rows = append(fix.Rows, r)
		}
		for _, pair := range pairs {
			err := try(ctx, f, withOwn(fix, pair.index, pair.own), func(t *trial) error {
				for _, limit := range []int{8, 100} { // each pass is held against the policy
					if _, err := t.passes(ctx, limit); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("guard %+v, own index on %v: %w", s.Guard, pair.own.Columns, err)
			}
		}
	}
	return nil
}
