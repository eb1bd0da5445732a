package prunertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
)

var windowChecks = []Check{
	{"states keep their own windows", checkWindows},
	{"states that are kept for ever stay", checkNever},
}

// byState gives the three terminal states windows of 30 and 40 days and never.
func byState(g policy.Guard) policy.Sweep {
	s := sweepOf(g)
	s.Window = policy.Never
	s.ByState = []policy.StateWindow{{State: terminal[0], Window: policy.MustWindow(30 * day)}, {State: terminal[1], Window: policy.MustWindow(40 * day)},
		{State: terminal[2], Window: policy.Never}}
	return s
}

// checkWindows has rows round each cutoff in every state. A state that is not terminal is held from the shortest window on.
func checkWindows(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix Index
		g  policy.Guard
	}{{AgeUnique, stateGuard()}, {AgeAlone, stateGuard()}, {StateAge, stateGuard()}, {AgeTerminal, stateGuard()}, {AgeUnique, bothGuards()}} {
		fix := Fixture{Sweep: byState(c.g), Index: c.ix, Owners: owners}
		var kept []int64
		for _, days := range []int{50, 40, 35, 30, 20} {
			cutoff := Now.Add(-time.Duration(days) * day)
			for _, d := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
				for _, state := range slices.Concat(terminal, []policy.Value{running, policy.Null, policy.Text("archived")}) {
					r := entry(int64(1000-len(fix.Rows)), At(cutoff.Add(d)), state, 1)
					fix.Rows = append(fix.Rows, r)
					past := func(days int) bool { return r.Age.Instant().Before(Now.Add(-time.Duration(days) * day)) }
					if !(state == terminal[0] && past(30) || state == terminal[1] && past(40)) {
						kept = append(kept, r.ID)
					}
				}
			}
		}
		for _, limit := range []int{7, 100} {
			if err := passAndLeft(ctx, f, fix, limit, func(r Row) bool { return slices.Contains(kept, r.ID) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNever(ctx context.Context, f Factory) error {
	fix := Fixture{Rows: entries(12)}
	for i := range fix.Rows {
		fix.Rows[i].State = terminal[i%3]
	}
	for _, ix := range []Index{AgeUnique, StateAge, AgeTerminal} {
		fix.Index, fix.Sweep = ix, byState(stateGuard())
		if err := passAndLeft(ctx, f, fix, 5, func(r Row) bool { return r.State == terminal[2] }); err != nil {
			return err
		}
		fix.Sweep = sweepOf(stateGuard())
		fix.Sweep.Window = policy.Never
		if err := passAndLeft(ctx, f, fix, 5, func(Row) bool { return true }); err != nil {
			return fmt.Errorf("a window of never: %w", err)
		}
	}
	return nil
}

// checkAny holds populations that nobody thought of against the policy.
func checkAny(ctx context.Context, f Factory) error {
	for draw := range 16 {
		rnd := rand.New(rand.NewPCG(uint64(draw), 1))
		// Every guard, with and without windows by state and with and without only.
		fix := anyFixture(rnd, []policy.Guard{noGuard, stateGuard(), ownerGuard(), bothGuards()}[draw%4], draw&4 != 0, draw&8 != 0)
		limit := 1 + rnd.IntN(20)
		if slices.Equal(fix.Index.Columns, AgeAlone.Columns) {
			limit = 10 // see checkHeldTies
		}
		err := try(ctx, f, fix, func(t *trial) error {
			first, err := t.passes(ctx, limit)
			if err != nil {
				return err
			}
			second, err := t.passes(ctx, limit)
			if err == nil && second.Removed != 0 {
				err = fmt.Errorf("the second drain removed %d rows after %d", second.Removed, first.Removed)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("population %d, limit %d: %w", draw, limit, err)
		}
	}
	return nil
}

func anyFixture(rnd *rand.Rand, guard policy.Guard, ownWindows, only bool) Fixture {
	of := func(vs ...policy.Value) policy.Value { return vs[rnd.IntN(len(vs))] }
	fix := Fixture{Sweep: sweepOf(guard), Index: []Index{AgeUnique, AgeAlone}[rnd.IntN(2)]}
	if guard.State != nil {
		if ownWindows {
			fix.Sweep = byState(guard)
		}
		if rnd.IntN(3) == 0 {
			fix.Index = StateAge
		}
	}
	if only {
		fix.Sweep.Only = []policy.Match{{Column: "kind", Values: []policy.Value{policy.Text("k"), policy.Null}, Not: rnd.IntN(2) == 0}}
	}
	for id := range int64(8) {
		fix.Owners = append(fix.Owners, Owner{[]string{"a", "b"}[id%2], id / 2, of(slices.Concat(terminal, terminal, protecting())...)})
	}
	for id := range int64(80) {
		age := At(Now.Add(-time.Duration(rnd.IntN(55))*day + time.Duration(rnd.IntN(3)-1)*time.Microsecond))
		if rnd.IntN(15) == 0 {
			age = []Age{NoAge, Infinity, MinusInfinity}[rnd.IntN(3)]
		}
		fix.Rows = append(fix.Rows, Row{ID: id + 1, Age: age, State: of(slices.Concat(terminal, terminal, protecting())...),
			Kind: of(policy.Null, policy.Text("k"), policy.Text("l")), Tenant: of(policy.Text("a"), policy.Text("a"), policy.Text("b"), policy.Null),
			Owner: of(policy.Int(0), policy.Int(1), policy.Int(2), policy.Int(3), policy.Int(9))})
	}
	rnd.Shuffle(len(fix.Rows), func(i, j int) { fix.Rows[i], fix.Rows[j] = fix.Rows[j], fix.Rows[i] })
	return fix
}
