package prunertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var guardChecks = []Check{
	{"the owner's state guards", checkOwner},
	{"the row's own state guards", checkState},
	{"both guards must let go", checkBoth},
	{"the owner's whole key counts", checkTenants},
	{"orphans and ownerless rows stay", checkOrphans},
	{"a null age is live under ended", checkEnded},
	{"without a guard the age decides", checkUnguarded},
	{"an owner reopened between batches keeps the rest", checkOwnerReopened},
	{"a row reopened between batches stays", checkRowReopened},
}

// passAndLeft runs the passes in batches of at most limit rows and then holds what is left against the rows to be kept. The
// list of what is kept is made without asking the policy.
func passAndLeft(ctx context.Context, f Factory, fix Fixture, limit int, kept func(Row) bool) error {
	return try(ctx, f, fix, func(t *trial) error {
		if _, err := t.passes(ctx, limit); err != nil {
			return err
		}
		return t.left(ctx, ids(fix.Rows, kept)...)
	})
}

func checkOwner(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(ownerGuard())}
	keep := map[policy.Value]bool{}
	for i, state := range slices.Concat(protecting(), terminal) {
		o := Owner{"a", int64(i + 1), state}
		fix.Owners = append(fix.Owners, o)
		keep[policy.Int(o.ID)] = !isTerminal(state)
	}
	// The rows of the owners are mixed, and their own state is never the owner's.
	for i := range 3 * len(fix.Owners) {
		o := fix.Owners[i%len(fix.Owners)]
		fix.Rows = append(fix.Rows, entry(int64(i+1), old(100-i), policy.Text("x"), o.ID))
	}
	for _, ix := range []Index{AgeUnique, AgeAlone} {
		fix.Index = ix
		if err := passAndLeft(ctx, f, fix, 8, func(r Row) bool { return keep[r.Owner] }); err != nil {
			return err
		}
	}
	return nil
}

func checkState(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(stateGuard())}
	for i, state := range slices.Repeat(slices.Concat(protecting(), terminal), 3) {
		fix.Rows = append(fix.Rows, entry(int64(i+1), old(100-i), state, 1))
	}
	for _, ix := range []Index{AgeUnique, AgeAlone, StateAge, AgeTerminal} {
		fix.Index = ix
		if err := passAndLeft(ctx, f, fix, 8, func(r Row) bool { return !isTerminal(r.State) }); err != nil {
			return err
		}
	}
	return nil
}

func checkBoth(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(bothGuards()), Owners: owners}
	for i, state := range slices.Repeat(slices.Concat(protecting(), terminal), 3) {
		fix.Rows = append(fix.Rows, entry(int64(i+1), old(100-i), state, int64(1+i%3))) // owner 3 does not exist
	}
	for _, ix := range []Index{AgeUnique, StateAge, AgeTerminal} {
		fix.Index = ix
		if err := passAndLeft(ctx, f, fix, 8, func(r Row) bool { return !isTerminal(r.State) || r.Owner != policy.Int(1) }); err != nil {
			return err
		}
	}
	return nil
}

func checkTenants(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(ownerGuard()), Index: AgeUnique, Owners: []Owner{{"a", 1, completed}, {"b", 1, running}, {"b", 2, completed}, {"c", 2, running}}}
	for i := range 24 {
		o := fix.Owners[i%4]
		r := entry(int64(i+1), old(i), completed, o.ID)
		r.Tenant = policy.Text(o.Tenant)
		fix.Rows = append(fix.Rows, r)
	}
	return passAndLeft(ctx, f, fix, 5, func(r Row) bool {
		return r.Tenant == policy.Text("b") && r.Owner == policy.Int(1) || r.Tenant == policy.Text("c")
	})
}

func checkOrphans(ctx context.Context, f Factory) error {
	rows := entries(20)
	none := policy.Null
	for i, key := range [][2]policy.Value{{policy.Text("a"), policy.Int(77)}, {policy.Text("z"), policy.Int(1)}, {none, policy.Int(1)}, {policy.Text("a"), none}, {none, none}} {
		rows[3*i].Tenant, rows[3*i].Owner = key[0], key[1]
	}
	fix := Fixture{Sweep: sweepOf(ownerGuard()), Index: AgeUnique, Rows: rows, Owners: owners}
	for _, limit := range []int{1, 6, 100} {
		err := try(ctx, f, fix, func(t *trial) error {
			sum, err := t.passes(ctx, limit)
			if err != nil {
				return err
			}
			if sum.Orphan != 5 || sum.Removed != 15 {
				return fmt.Errorf("%d orphans were counted and %d rows removed; want 5 and 15", sum.Orphan, sum.Removed)
			}
			return t.left(ctx, ids(rows, func(r Row) bool { return r.Tenant != policy.Text("a") || r.Owner != policy.Int(1) })...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func checkEnded(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(endedGuard), Rows: entries(12)}
	for i := 0; i < 12; i += 2 {
		fix.Rows[i].Age = NoAge
	}
	for _, ix := range []Index{AgeUnique, AgeAlone} {
		fix.Index = ix
		if err := passAndLeft(ctx, f, fix, 4, func(r Row) bool { return r.Age == NoAge }); err != nil {
			return err
		}
	}
	return nil
}

func checkUnguarded(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(noGuard), Index: AgeUnique, Rows: entries(12)}
	for i := range fix.Rows {
		fix.Rows[i].State, fix.Rows[i].Owner = protecting()[i%len(protecting())], policy.Int(2)
	}
	fix.Owners = owners
	fix.Rows = append(fix.Rows, entry(100, young(1), completed, 1))
	return passAndLeft(ctx, f, fix, 5, func(r Row) bool { return r.ID == 100 })
}

func checkOwnerReopened(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(ownerGuard()), Index: AgeUnique, Rows: entries(20), Owners: owners}
	return try(ctx, f, fix, func(t *trial) error {
		sum, err := t.batches(ctx, 0, 8, pruner.Remove, func(n int, _ pruner.Result) error {
			if n != 1 {
				return nil
			}
			return t.setOwner(ctx, Owner{"a", 1, running})
		})
		if err != nil {
			return err
		}
		if sum.Removed != 8 || sum.Held != 12 {
			return fmt.Errorf("%d rows were removed and %d held; want the 8 of the first batch and 12", sum.Removed, sum.Held)
		}
		return t.left(ctx, ids(fix.Rows, func(r Row) bool { return r.ID <= 12 })...) // the lowest numbers are the youngest
	})
}

func checkRowReopened(ctx context.Context, f Factory) error {
	for _, ix := range []Index{AgeUnique, StateAge, AgeTerminal} {
		fix := Fixture{Sweep: sweepOf(stateGuard()), Index: ix, Rows: entries(20)}
		err := try(ctx, f, fix, func(t *trial) error {
			for arm := range t.arms {
				_, err := t.batches(ctx, arm, 8, pruner.Remove, func(n int, _ pruner.Result) error {
					if n != 1 || arm != 0 {
						return nil
					}
					return errors.Join(t.SetState(ctx, 2, running), t.SetState(ctx, 3, policy.Null))
				})
				if err != nil {
					return err
				}
			}
			return t.left(ctx, 2, 3)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
