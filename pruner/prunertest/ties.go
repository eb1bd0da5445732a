package prunertest

import (
	"context"
	"fmt"
	"slices"

	"github.com/prunectl/prunectl/policy"
)

var tieChecks = []Check{
	{"equal ages at the edge of a batch", checkTies},
	{"more equal ages than many limits", checkManyTies},
	{"held rows among equal ages", checkHeldTies},
}

// tied makes groups of equal ages of these sizes, the first the oldest, with a single row before and behind each.
func tied(sizes ...int) []Row {
	var rows []Row
	second := 0
	put := func(n int) {
		for range n {
			// Within a group the numbers go up and down.
			id := int64(len(rows) + 1)
			rows = append(rows, entry(id^1, old(second), completed, 1))
		}
		second++
	}
	for _, n := range sizes {
		put(1)
		put(n)
	}
	put(1)
	return rows
}

func checkTies(ctx context.Context, f Factory) error {
	fix := Fixture{Rows: tied(9, 10, 11, 20), Owners: owners}
	for _, c := range []struct {
		ix     Index
		g      policy.Guard
		limits []int
	}{
		{AgeUnique, noGuard, []int{1, 9, 10, 11, 12}}, {AgeUnique, ownerGuard(), []int{10}}, {AgeUnique, stateGuard(), []int{10}},
		{AgeAlone, noGuard, []int{1, 10, 11}}, {AgeAlone, ownerGuard(), []int{10}}, {AgeAlone, stateGuard(), []int{10}},
		{StateAge, stateGuard(), []int{3, 10}},
	} {
		fix.Index, fix.Sweep = c.ix, sweepOf(c.g)
		for _, limit := range c.limits {
			if err := passAndLeft(ctx, f, fix, limit, func(Row) bool { return false }); err != nil {
				return fmt.Errorf("limit %d: %w", limit, err)
			}
		}
	}
	return nil
}

func checkManyTies(ctx context.Context, f Factory) error {
	fix := Fixture{Rows: tied(57), Owners: owners}
	for _, c := range []struct {
		ix Index
		g  policy.Guard
	}{{AgeUnique, ownerGuard()}, {AgeAlone, ownerGuard()}, {AgeAlone, noGuard}, {StateAge, bothGuards()}, {AgeTerminal, bothGuards()}} {
		fix.Index, fix.Sweep = c.ix, sweepOf(c.g)
		if err := passAndLeft(ctx, f, fix, 5, func(Row) bool { return false }); err != nil {
			return err
		}
	}
	return nil
}

// checkHeldTies keeps the rows that stay in a group below ten limits: beyond that, an index that does not tell equal ages
// apart may end the group.
func checkHeldTies(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix     Index
		g      policy.Guard
		limits []int
	}{{AgeUnique, ownerGuard(), []int{1, 5, 8}}, {AgeUnique, stateGuard(), []int{1, 5}}, {AgeAlone, ownerGuard(), []int{5, 8}}, {AgeAlone, stateGuard(), []int{5}}} {
		fix := Fixture{Sweep: sweepOf(c.g), Index: c.ix, Rows: tied(8, 40), Owners: owners}
		for i := range fix.Rows {
			r := &fix.Rows[i]
			switch {
			case i%4 == 0:
				r.State, r.Owner = running, policy.Int(2)
			case i%7 == 0 && c.g.Owner != nil:
				r.Owner = policy.Int(77)
			}
		}
		kept := func(r Row) bool { return r.State == running || r.Owner == policy.Int(77) }
		for _, limit := range c.limits {
			if err := passAndLeft(ctx, f, fix, limit, kept); err != nil {
				return fmt.Errorf("limit %d: %w", limit, err)
			}
		}
		// A group in which every row stays must not stop the pass.
		for i := range fix.Rows {
			if i >= 2 && i < 10 {
				fix.Rows[i].State, fix.Rows[i].Owner = running, policy.Int(2)
			}
		}
		if err := passAndLeft(ctx, f, fix, slices.Max(c.limits), kept); err != nil {
			return fmt.Errorf("a group that stays whole: %w", err)
		}
	}
	return nil
}
