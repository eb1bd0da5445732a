package prunertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var modeChecks = []Check{
	{"stepping over removes nothing", checkStep},
	{"skipping locked rows removes what nobody holds", checkSkip},
	{"a locked row is an error until it is skipped", checkLocked},
	{"a locked owner keeps its rows", checkLockedOwner},
	{"a locked table is named", checkLockedTable},
	{"a refused row is named and rolls the batch back", checkRefused},
}

// mixed is a population with due, held and orphaned rows and its sweep.
func mixed() Fixture {
	rows := entries(24)
	for i := range rows {
		switch i % 4 {
		case 0:
			rows[i].Owner = policy.Int(2)
		case 1:
			rows[i].Owner = policy.Int(77)
		}
	}
	return Fixture{Sweep: sweepOf(ownerGuard()), Index: AgeUnique, Rows: rows, Owners: owners}
}

func checkStep(ctx context.Context, f Factory) error {
	for _, mode := range []pruner.Mode{pruner.StepStuck, pruner.StepLocked} {
		for _, ix := range []Index{AgeUnique, AgeAlone} {
			fix := mixed()
			fix.Index = ix
			for i := range 6 { // some equal ages
				fix.Rows[i].Age = old(12)
			}
			for _, limit := range []int{1, 5} {
				err := try(ctx, f, fix, func(t *trial) error {
					sum, err := t.batches(ctx, 0, limit, mode, nil)
					if err != nil {
						return err
					}
					got, other := sum.Stuck, sum.Locked
					if mode == pruner.StepLocked {
						got, other = other, got
					}
					if got != 12 || other != 0 || sum.Removed != 0 || sum.Held != 6 || sum.Orphan != 6 || sum.Examined != 24 {
						return fmt.Errorf("mode %s over 12 due, 6 held and 6 orphaned rows counted %+v", mode, sum)
					}
					return t.untouched(ctx)
				})
				if err != nil {
					return fmt.Errorf("limit %d: %w", limit, err)
				}
			}
		}
	}
	return nil
}

// lockable lists the guards under which row locks are checked.
func lockable() []policy.Guard { return []policy.Guard{noGuard, stateGuard(), ownerGuard()} }

func checkSkip(ctx context.Context, f Factory) error {
	for _, guard := range lockable() {
		fix := Fixture{Sweep: sweepOf(guard), Index: AgeUnique, Rows: entries(20), Owners: owners}
		fix.Rows[8].State, fix.Rows[8].Owner = running, policy.Int(2)
		keep := []int64{}
		if guard.None == "" {
			keep = append(keep, 9)
		}
		err := try(ctx, f, fix, func(t *trial) error {
			if err := errors.Join(t.Lock(ctx, 5), t.Lock(ctx, 17)); err != nil {
				return err
			}
			sum, err := t.batches(ctx, 0, 6, pruner.SkipLocked, nil)
			if err != nil {
				return err
			}
			if sum.Locked != 2 || sum.Held != len(keep) || sum.Removed != 18-len(keep) {
				return fmt.Errorf("with 2 of 20 rows locked and %d held it counted %+v", len(keep), sum)
			}
			if err := t.left(ctx, append([]int64{5, 17}, keep...)...); err != nil {
				return err
			}
			if err := t.Unlock(ctx); err != nil {
				return err
			}
			_, err = t.batches(ctx, 0, 6, pruner.SkipLocked, nil)
			return errors.Join(err, t.left(ctx, keep...))
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", guard, err)
		}
	}
	return nil
}

func checkLocked(ctx context.Context, f Factory) error {
	for _, guard := range lockable() {
		fix := Fixture{Sweep: sweepOf(guard), Index: AgeUnique, Rows: entries(10), Owners: owners}
		err := try(ctx, f, fix, func(t *trial) error {
			if err := t.Lock(ctx, 5); err != nil {
				return err
			}
			res, err := t.prune(ctx, 0, pruner.Batch{Limit: 100})
			var lock *pruner.LockTimeoutError
			if !errors.As(err, &lock) {
				return fmt.Errorf("with a row locked the error is %v; want a LockTimeoutError", err)
			}
			if lock.Table != "" || !lock.CanSkip {
				return fmt.Errorf("with a row locked the error names the table %q and says it can skip: %t; want none and true", lock.Table, lock.CanSkip)
			}
			if accounted(res) != 0 {
				return fmt.Errorf("beside the error it counted %+v; want nothing", res)
			}
			if err := t.untouched(ctx); err != nil {
				return err
			}
			if err := t.Unlock(ctx); err != nil {
				return err
			}
			_, err = t.batches(ctx, 0, 100, pruner.Remove, nil)
			return errors.Join(err, t.left(ctx))
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", guard, err)
		}
	}
	return nil
}

func checkLockedOwner(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: sweepOf(ownerGuard()), Index: AgeUnique, Rows: entries(20), Owners: append(owners[:2:2], Owner{"a", 3, completed})}
	for i := range fix.Rows {
		if i%5 == 0 {
			fix.Rows[i].Owner = policy.Int(3)
		}
	}
	for _, mode := range []pruner.Mode{pruner.Remove, pruner.SkipLocked} {
		err := try(ctx, f, fix, func(t *trial) error {
			if err := t.LockOwner(ctx, Owner{Tenant: "a", ID: 3}); err != nil {
				return err
			}
			sum, err := t.batches(ctx, 0, 6, mode, nil)
			if err != nil {
				return err
			}
			if sum.Locked != 4 || sum.Removed != 16 {
				return fmt.Errorf("mode %s, with the owner of 4 among 20 rows locked, counted %+v", mode, sum)
			}
			if err := t.left(ctx, ids(fix.Rows, func(r Row) bool { return r.Owner == policy.Int(3) })...); err != nil {
				return err
			}
			if err := t.Unlock(ctx); err != nil {
				return err
			}
			_, err = t.batches(ctx, 0, 6, mode, nil)
			return errors.Join(err, t.left(ctx))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func checkLockedTable(ctx context.Context, f Factory) error {
	return try(ctx, f, Fixture{Sweep: sweepOf(stateGuard()), Index: AgeUnique, Rows: entries(10)}, func(t *trial) error {
		for _, mode := range []pruner.Mode{pruner.Remove, pruner.SkipLocked} {
			if err := t.LockTable(ctx); err != nil {
				return err
			}
			_, err := t.prune(ctx, 0, pruner.Batch{Limit: 100, Mode: mode})
			var lock *pruner.LockTimeoutError
			if !errors.As(err, &lock) || !strings.Contains(lock.Table, Table) {
				return fmt.Errorf("mode %s, with the table locked: the error is %v; want a LockTimeoutError that names it", mode, err)
			}
			if err := t.Unlock(ctx); err != nil {
				return err
			}
			if err := t.untouched(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func checkRefused(ctx context.Context, f Factory) error {
	for _, guard := range []policy.Guard{noGuard, ownerGuard()} {
		fix := Fixture{Sweep: sweepOf(guard), Index: AgeUnique, Rows: entries(10), Owners: owners}
		err := try(ctx, f, fix, func(t *trial) error {
			if err := t.Pin(ctx, 7); err != nil { // the fourth oldest
				return err
			}
			for _, limit := range []int{4, 100} {
				res, err := t.prune(ctx, 0, pruner.Batch{Limit: limit})
				var refused *pruner.RefusedError
				if !errors.As(err, &refused) {
					return fmt.Errorf("with a row pinned the error is %v; want a RefusedError", err)
				}
				if refused.Block.Constraint != PinConstraint || !strings.Contains(refused.Block.Table, PinTable) {
					return fmt.Errorf("the error names constraint %q of %q; want %q of %q", refused.Block.Constraint, refused.Block.Table, PinConstraint, PinTable)
				}
				if accounted(res) != 0 {
					return fmt.Errorf("beside the error it counted %+v; want nothing", res)
				}
				if err := t.untouched(ctx); err != nil {
					return err
				}
			}
			// The way of a drain: up to the row, over it, and on.
			first, err := t.prune(ctx, 0, pruner.Batch{Limit: 3})
			if err != nil || first.Removed != 3 {
				return fmt.Errorf("the batch before the row removed %d with the error %v; want 3 and none", first.Removed, err)
			}
			step, err := t.prune(ctx, 0, pruner.Batch{Limit: 1, After: first.Next, Mode: pruner.StepStuck})
			if err != nil || step.Stuck != 1 {
				return fmt.Errorf("stepping over the row counted %+v with the error %v; want 1 stuck and none", step, err)
			}
			rest, err := t.prune(ctx, 0, pruner.Batch{Limit: 100, After: step.Next})
			if err != nil || rest.Removed != 6 || !rest.End {
				return fmt.Errorf("the batch behind the row counted %+v with the error %v; want 6 removed, the end and none", rest, err)
			}
			return t.left(ctx, 7)
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", guard, err)
		}
	}
	return nil
}
