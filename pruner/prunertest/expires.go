package prunertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var expiresChecks = []Check{
	{"a row goes once its expiry is past", checkExpires},
	{"a row stays for the grace after its expiry", checkGrace},
	{"an expired row that is protected stays", checkExpiresGuarded},
	{"an expired row takes its children along", checkExpiresWhole},
	{"the survey knows rows that never expire", checkSurveyExpires},
}

// expiring is the sweep whose rows expire at their age.
func expiring(s policy.Sweep) policy.Sweep {
	s.Expires, s.Window = true, policy.AtOnce
	return s
}

// expiries lie round an instant, and nowhere: those before it are past, from since on. The first five are past, those
// behind them are never due.
func expiries(at time.Time, since time.Time) []Age {
	return []Age{At(since), At(at.Add(-50 * day)), At(at.Add(-time.Hour)), At(at.Add(-time.Millisecond)), At(at.Add(-time.Microsecond)),
		At(at), At(at.Add(time.Microsecond)), At(at.Add(day)), Infinity, NoAge, MinusInfinity, At(time.Unix(0, 0)), At(since.Add(-time.Microsecond))}
}

const pastExpiries = 5

func checkExpires(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix    Index
		guard policy.Guard
		since time.Time
	}{{AgeUnique, noGuard, time.Time{}}, {AgeAlone, noGuard, time.Time{}}, {AgeUnique, endedGuard, Now.AddDate(-1, 0, 0)}, {AgeUnique, stateGuard(), time.Time{}},
		{StateAge, stateGuard(), time.Time{}}, {AgeAlone, ownerGuard(), time.Time{}}} {
		fix := Fixture{Sweep: expiring(sweepOf(c.guard)), Index: c.ix, Owners: owners}
		fix.Sweep.Since = c.since
		for i, age := range expiries(Now, fix.Sweep.WithDefaults().Since) {
			fix.Rows = append(fix.Rows, entry(int64(i+1), age, completed, 1))
		}
		for _, limit := range []int{1, 100} {
			if err := passAndLeft(ctx, f, fix, limit, func(r Row) bool { return r.ID > pastExpiries }); err != nil {
				return fmt.Errorf("guard %+v: %w", c.guard, err)
			}
		}
	}
	return nil
}

func checkGrace(ctx context.Context, f Factory) error {
	for _, grace := range []time.Duration{time.Second, 7 * day} { // the shorter is below every floor
		fix := Fixture{Sweep: expiring(sweepOf(noGuard)), Index: AgeUnique}
		fix.Sweep.Window = policy.MustWindow(grace)
		for i, age := range expiries(Now.Add(-grace), policy.DefaultSince) {
			fix.Rows = append(fix.Rows, entry(int64(i+1), age, completed, 1))
		}
		if err := passAndLeft(ctx, f, fix, 4, func(r Row) bool { return r.ID > pastExpiries }); err != nil {
			return fmt.Errorf("grace %s: %w", grace, err)
		}
	}
	return nil
}

func checkExpiresGuarded(ctx context.Context, f Factory) error {
	hold := policy.Guard{Hold: "hold"}
	for _, c := range []struct {
		ix    Index
		guard policy.Guard
		keeps func(Row) bool
	}{
		{AgeUnique, stateGuard(), func(r Row) bool { return !isTerminal(r.State) }},
		{StateAge, stateGuard(), func(r Row) bool { return !isTerminal(r.State) }},
		{AgeTerminal, stateGuard(), func(r Row) bool { return !isTerminal(r.State) }},
		{AgeUnique, ownerGuard(), func(r Row) bool { return r.Owner != policy.Int(1) }},
		{AgeUnique, hold, func(r Row) bool { return r.Hold == policy.Bool(true) }},
	} {
		fix := Fixture{Sweep: expiring(sweepOf(c.guard)), Index: c.ix, Owners: owners}
		for i, age := range expiries(Now, policy.DefaultSince) {
			for j, state := range []policy.Value{terminal[i%3], running, policy.Null} {
				r := entry(int64(10*i+j+1), age, state, int64(1+j))
				r.Hold = []policy.Value{policy.Null, policy.Bool(true), policy.Bool(false)}[j]
				fix.Rows = append(fix.Rows, r)
			}
		}
		for _, limit := range []int{2, 100} {
			if err := passAndLeft(ctx, f, fix, limit, func(r Row) bool { return r.ID > 10*pastExpiries || c.keeps(r) }); err != nil {
				return fmt.Errorf("guard %+v: %w", c.guard, err)
			}
		}
	}
	return nil
}

func checkExpiresWhole(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		guard policy.Guard
		keeps func(Row) bool
	}{{noGuard, func(Row) bool { return false }}, {owedGuard(), owes}} {
		fix := Fixture{Sweep: expiring(familyOf(c.guard)), Index: AgeUnique}
		for i, age := range expiries(Now, policy.DefaultSince) {
			fix.Rows = append(fix.Rows, parts(entry(int64(2*i+1), age, completed, 1), completed, terminal[1]),
				parts(entry(int64(2*i+2), age, completed, 1), completed, running))
		}
		for _, limit := range []int{1, 100} {
			if err := wholeAndLeft(ctx, f, fix, limit, func(r Row) bool { return r.ID > 2*pastExpiries || c.keeps(r) }); err != nil {
				return fmt.Errorf("guard %+v: %w", c.guard, err)
			}
		}
	}
	return nil
}

// checkSurveyExpires: a row without an expiry is not undated, one before since is; what is held is among what is past.
func checkSurveyExpires(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix   Index
		want int
	}{{AgeUnique, 3}, {AgeExpires, 3}, {StateAge, 3}} {
		fix := Fixture{Sweep: expiring(sweepOf(stateGuard())), Index: c.ix}
		for i, age := range expiries(Now, policy.DefaultSince) {
			fix.Rows = append(fix.Rows, entry(int64(2*i+1), age, running, 1), entry(int64(2*i+2), age, completed, 1))
		}
		err := try(ctx, f, fix, func(t *trial) error {
			undated := 0
			for arm := range t.arms {
				s, err := t.surveyor(ctx, arm)
				if s == nil || err != nil {
					return err
				}
				n, err := s.Undated(ctx, 1000)
				if n == nil || err != nil {
					return errors.Join(fmt.Errorf("arm %s: %s rows are undated", t.arms[arm], count(n)), err)
				}
				undated += *n
				if !t.arms[arm].CountsHeld() {
					continue
				}
				held := []pruner.HeldBy{{Reason: "state", Value: running.String(), Rows: pastExpiries, Oldest: &policy.DefaultSince}}
				if err := heldBy(ctx, s, t.cutoff(arm), held); err != nil {
					return fmt.Errorf("arm %s: %w", t.arms[arm], err)
				}
			}
			if undated != c.want {
				return fmt.Errorf("%d rows are undated; want %d", undated, c.want)
			}
			return t.untouched(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
