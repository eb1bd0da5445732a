package prunertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var childChecks = []Check{
	{"children go with their row, and theirs with them", checkChildren},
	{"a row that fits in the policy's limit goes whole", checkWhole},
	{"a row with more children than the policy's limit goes in chunks", checkChunks},
	{"an interrupted row goes on where it was", checkInterrupted},
	{"a row that is reopened between its chunks keeps the rest", checkChunkReopened},
	{"two sweepers empty a row together", checkTwoSweepersOfFamilies},
	{"equal ages with children", checkFamilyTies},
	{"stepping over removes no children", checkStepFamily},
	{"a locked row with children is counted", checkLockedFamily},
	{"a locked child is an error until it is stepped over", checkLockedChild},
	{"a refused row keeps its children", checkRefusedFamily},
	{"any population with children", checkAnyFamily},
}

// families are entries with up to four parts in terminal states, some of them with notes.
func families(n int) []Row {
	rows := entries(n)
	for i := range rows {
		rows[i] = noted(parts(rows[i], slices.Repeat(terminal, 2)[:i*3%5]...))
	}
	return rows
}

// sized is the sweep with this limit as the policy's.
func sized(s policy.Sweep, limit int) policy.Sweep {
	s.Batch.Limit = limit
	return s
}

func none(Row) bool { return false }

func checkChildren(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix    Index
		guard policy.Guard
	}{{AgeUnique, noGuard}, {AgeAlone, noGuard}, {AgeUnique, owedGuard()}, {AgeUnique, stateGuard()}, {StateAge, stateGuard()}, {AgeUnique, ownerGuard()}} {
		fix := Fixture{Sweep: familyOf(c.guard), Index: c.ix, Rows: families(30), Owners: owners}
		youngs := noted(parts(entry(100, young(1), completed, 1), completed, completed, completed))
		fix.Rows = append(fix.Rows, youngs)
		limits := []int{1, 2, 3, 11, 100}
		if c.guard.Owed == nil {
			limits = []int{7}
		}
		for _, limit := range limits {
			if err := wholeAndLeft(ctx, f, fix, limit, func(r Row) bool { return r.ID == 100 }); err != nil {
				return fmt.Errorf("guard %+v, limit %d: %w", c.guard, limit, err)
			}
		}
	}
	return nil
}

// checkWhole has a row that just fits, and one that does not by a child. That the first loses nothing ahead of itself is
// held by each pass.
func checkWhole(ctx context.Context, f Factory) error {
	for _, limit := range []int{1, 2, 5, 6, 7, 8} {
		fix := Fixture{Sweep: sized(familyOf(owedGuard()), 6), Index: AgeUnique, Rows: entries(6)}
		fix.Rows[2] = parts(fix.Rows[2], slices.Repeat(terminal, 3)[:5]...)
		fix.Rows[3] = noted(parts(fix.Rows[3], slices.Repeat(terminal, 3)[:3]...)) // and three notes: six children
		fix.Rows[4] = parts(fix.Rows[4], completed)
		if err := wholeAndLeft(ctx, f, fix, limit, none); err != nil {
			return fmt.Errorf("limit %d: %w", limit, err)
		}
	}
	return nil
}

// fan is a population with a row of many parts between small ones, and held rows before and behind it.
func fan(n int) Fixture {
	rows := entries(8)
	for i := range rows {
		rows[i] = parts(rows[i], completed)
	}
	rows[4] = parts(rows[4], slices.Repeat(terminal, n)[:n]...)
	rows[2] = parts(rows[2], running)
	rows[5] = parts(rows[5], running)
	return Fixture{Sweep: sized(familyOf(owedGuard()), 6), Index: AgeUnique, Rows: rows}
}

func checkChunks(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix       Index
		n, limit int
	}{{AgeUnique, 5, 1}, {AgeUnique, 6, 1}, {AgeUnique, 7, 6}, {AgeUnique, 25, 3}, {AgeUnique, 25, 6}, {AgeAlone, 6, 3}, {AgeAlone, 25, 6}} {
		fix := fan(c.n)
		fix.Index = c.ix
		if err := wholeAndLeft(ctx, f, fix, c.limit, owes); err != nil {
			return fmt.Errorf("%d children, limit %d: %w", c.n, c.limit, err)
		}
	}
	// The largest limit is no way round the policy's, and one row may be all there is.
	for _, notes := range []bool{false, true} {
		fix := Fixture{Sweep: sized(familyOf(noGuard), 5), Index: AgeUnique, Rows: []Row{parts(entry(1, old(1), running, 1), slices.Repeat(terminal, 6)...)}}
		if notes {
			fix.Rows[0] = noted(fix.Rows[0])
		}
		err := try(ctx, f, fix, func(t *trial) error {
			chunks := 0
			_, err := t.batches(ctx, 0, 5, pruner.Remove, func(_ int, res pruner.Result) error {
				if res.Removed == 0 && res.Children > 0 {
					chunks++
				}
				return nil
			})
			if all := len(fix.Rows[0].Parts); err == nil && chunks < all/5 {
				err = fmt.Errorf("a row with %d parts lost children in %d batches of at most 5 before it went", all, chunks)
			}
			return errors.Join(err, t.left(ctx), t.partsLeft(ctx, nil))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inTheMiddle runs batches until the row with many parts has lost some.
func inTheMiddle(ctx context.Context, t *trial, id int64, limit int) (pruner.Result, Row, error) {
	var at pruner.Cursor
	before := t.children(t.rows[id])
	for range 50 {
		res, err := t.prune(ctx, 0, pruner.Batch{Limit: limit, After: at})
		if err == nil {
			err = sane(res, limit, t.f.Sweep.WithDefaults().Batch.Limit)
		}
		if err != nil {
			return res, Row{}, err
		}
		if _, err := t.forget(ctx); err != nil {
			return res, Row{}, err
		}
		r, there := t.rows[id]
		switch left := t.children(r); {
		case !there || res.End:
			return res, r, fmt.Errorf("row %d with %d children did not go in chunks", id, before)
		case left < before && left == 0:
			return res, r, fmt.Errorf("row %d lost all of its %d children in one batch of at most %d", id, before, limit)
		case left < before:
			return res, r, nil
		}
		at = res.Next
	}
	return pruner.Result{}, Row{}, errors.New("50 batches did not come to the row with many parts")
}

func checkInterrupted(ctx context.Context, f Factory) error {
	return try(ctx, f, fan(25), func(t *trial) error {
		if _, _, err := inTheMiddle(ctx, t, 5, 4); err != nil {
			return err
		}
		// Whoever comes next begins at the beginning, and knows nothing of the chunks.
		t.pruners = map[int]pruner.Pruner{}
		if _, err := t.passes(ctx, 4); err != nil {
			return fmt.Errorf("after an interruption: %w", err)
		}
		return t.left(ctx, ids(t.f.Rows, owes)...)
	})
}

func checkChunkReopened(ctx context.Context, f Factory) error {
	for _, come := range []bool{false, true} {
		err := try(ctx, f, fan(25), func(t *trial) error {
			res, r, err := inTheMiddle(ctx, t, 5, 4)
			if err != nil {
				return err
			}
			if come {
				err = t.insertPart(ctx, 5, Part{ID: 1, State: running})
			} else {
				err = t.setPartState(ctx, r.Parts[len(r.Parts)-1].ID, running)
			}
			if err != nil {
				return err
			}
			kept := t.rows[5]
			held := 0
			for at := res.Next; ; {
				res, err := t.prune(ctx, 0, pruner.Batch{Limit: 4, After: at})
				if err != nil {
					return err
				}
				if held += res.Held; res.End {
					break
				}
				at = res.Next
			}
			if held != 2 {
				return fmt.Errorf("from the row on, %d were held; want it and one behind it", held)
			}
			want := []Row{kept}
			for _, r := range t.f.Rows {
				if owes(r) {
					want = append(want, r)
				}
			}
			return errors.Join(t.left(ctx, ids(want, func(Row) bool { return true })...), t.partsLeft(ctx, want))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTwoSweepersOfFamilies has each find what the other left of the row, or that it is gone.
func checkTwoSweepersOfFamilies(ctx context.Context, f Factory) error {
	for _, ix := range []Index{AgeUnique, AgeAlone} {
		fix := fan(25)
		fix.Index = ix
		err := try(ctx, f, fix, func(t *trial) error {
			if err := t.twoSweepers(ctx, 3, 4); err != nil {
				return err
			}
			owed := slices.DeleteFunc(slices.Clone(fix.Rows), func(r Row) bool { return !owes(r) })
			return errors.Join(t.left(ctx, ids(owed, owes)...), t.partsLeft(ctx, owed))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func checkFamilyTies(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix     Index
		guard  policy.Guard
		limits []int
	}{{AgeUnique, owedGuard(), []int{1, 10}}, {AgeUnique, noGuard, []int{5}}, {AgeAlone, owedGuard(), []int{5, 100}}, {AgeAlone, noGuard, []int{10}}} {
		fix := Fixture{Sweep: sized(familyOf(c.guard), 12), Index: c.ix, Rows: tied(8, 40)}
		for i := range fix.Rows {
			fix.Rows[i] = noted(parts(fix.Rows[i], slices.Repeat(terminal, 2)[:i*3%5]...))
			if c.guard.Owed != nil && i%6 == 0 {
				fix.Rows[i] = parts(fix.Rows[i], running)
			}
		}
		fix.Rows[20] = parts(fix.Rows[20], slices.Repeat(terminal, 7)...)
		kept := func(r Row) bool { return c.guard.Owed != nil && owes(r) }
		for _, limit := range c.limits {
			if err := wholeAndLeft(ctx, f, fix, limit, kept); err != nil {
				return fmt.Errorf("guard %+v, limit %d: %w", c.guard, limit, err)
			}
		}
	}
	return nil
}

func checkStepFamily(ctx context.Context, f Factory) error {
	for _, mode := range []pruner.Mode{pruner.StepStuck, pruner.StepLocked} {
		for _, limit := range []int{1, 5} {
			err := try(ctx, f, fan(25), func(t *trial) error {
				sum, err := t.batches(ctx, 0, limit, mode, nil)
				if err != nil {
					return err
				}
				got, other := sum.Stuck, sum.Locked
				if mode == pruner.StepLocked {
					got, other = other, got
				}
				if got != 6 || other != 0 || sum.Removed+sum.Children != 0 || sum.Held != 2 || sum.Examined != 8 {
					return fmt.Errorf("mode %s over 6 due and 2 owed rows counted %+v", mode, sum)
				}
				return t.untouched(ctx)
			})
			if err != nil {
				return fmt.Errorf("limit %d: %w", limit, err)
			}
		}
	}
	return nil
}

// checkLockedFamily: rows with children are never waited for.
func checkLockedFamily(ctx context.Context, f Factory) error {
	for _, guard := range []policy.Guard{owedGuard(), noGuard} {
		for _, mode := range []pruner.Mode{pruner.Remove, pruner.SkipLocked} {
			fix := Fixture{Sweep: familyOf(guard), Index: AgeUnique, Rows: families(20)}
			owed := 0
			if guard.Owed != nil {
				fix.Rows[11] = parts(fix.Rows[11], running)
				owed = 1
			}
			err := try(ctx, f, fix, func(t *trial) error {
				if err := errors.Join(t.Lock(ctx, 5), t.Lock(ctx, 17)); err != nil {
					return err
				}
				sum, err := t.batches(ctx, 0, 6, mode, nil)
				if err != nil {
					return err
				}
				if sum.Locked != 2 || sum.Held != owed || sum.Removed != 18-owed {
					return fmt.Errorf("mode %s, with 2 of 20 rows locked and %d owed, counted %+v", mode, owed, sum)
				}
				want := []Row{fix.Rows[4], fix.Rows[16]}
				if owed > 0 {
					want = append(want, fix.Rows[11])
				}
				if err := errors.Join(t.left(ctx, ids(want, func(Row) bool { return true })...), t.partsLeft(ctx, want), t.Unlock(ctx)); err != nil {
					return err
				}
				_, err = t.batches(ctx, 0, 6, mode, nil)
				return errors.Join(err, t.left(ctx, ids(want[2:], owes)...))
			})
			if err != nil {
				return fmt.Errorf("guard %+v: %w", guard, err)
			}
		}
	}
	return nil
}

func checkLockedChild(ctx context.Context, f Factory) error {
	for _, guard := range []policy.Guard{owedGuard(), noGuard} {
		fix := Fixture{Sweep: familyOf(guard), Index: AgeUnique, Rows: families(10)}
		err := try(ctx, f, fix, func(t *trial) error {
			if err := t.LockPart(ctx, fix.Rows[6].Parts[1].ID); err != nil { // of the fourth oldest
				return err
			}
			for _, b := range []pruner.Batch{{Limit: 100}, {Limit: 100, Mode: pruner.SkipLocked}} {
				res, err := t.prune(ctx, 0, b)
				var lock *pruner.LockTimeoutError
				if !errors.As(err, &lock) || lock.Table != "" {
					return fmt.Errorf("mode %s, with a child locked: the error is %v; want a LockTimeoutError that names no table", b.Mode, err)
				}
				if accounted(res)+res.Children != 0 {
					return fmt.Errorf("beside the error it counted %+v; want nothing", res)
				}
				if err := t.untouched(ctx); err != nil {
					return err
				}
			}
			// The way of a drain: row by row, over the one that stands alone, and on.
			sum, err := rowByRow(ctx, t, pruner.StepLocked, func(err error) bool {
				var lock *pruner.LockTimeoutError
				return errors.As(err, &lock)
			})
			if err != nil {
				return err
			}
			if sum.Locked != 1 || sum.Removed != 9 || sum.Stuck != 0 {
				return fmt.Errorf("row by row, with a child of 1 of 10 rows locked, it counted %+v", sum)
			}
			if err := errors.Join(t.left(ctx, 7), t.partsLeft(ctx, fix.Rows[6:7]), t.Unlock(ctx)); err != nil {
				return err
			}
			_, err = t.batches(ctx, 0, 100, pruner.Remove, nil)
			return errors.Join(err, t.left(ctx), t.partsLeft(ctx, nil))
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", guard, err)
		}
	}
	return nil
}

// rowByRow is a pass at the limit of 1 that steps over the rows at which a batch ends with such an error.
func rowByRow(ctx context.Context, t *trial, step pruner.Mode, over func(error) bool) (sum pruner.Result, err error) {
	b := pruner.Batch{Limit: 1}
	for range 100 {
		res, err := t.prune(ctx, 0, b)
		switch {
		case err != nil && b.Mode == pruner.Remove && over(err):
			b.Mode = step
			continue
		case err != nil:
			return sum, err
		}
		add(&sum, res)
		if res.End {
			return sum, nil
		}
		b.After, b.Mode = res.Next, pruner.Remove
	}
	return sum, errors.New("100 batches of 1 row did not end the pass")
}

func checkRefusedFamily(ctx context.Context, f Factory) error {
	for _, guard := range []policy.Guard{owedGuard(), noGuard} {
		fix := Fixture{Sweep: familyOf(guard), Index: AgeUnique, Rows: families(10)}
		err := try(ctx, f, fix, func(t *trial) error {
			if err := t.Pin(ctx, 7); err != nil { // the fourth oldest
				return err
			}
			isRefused := func(err error) bool {
				var refused *pruner.RefusedError
				return errors.As(err, &refused) && refused.Block.Constraint == PinConstraint && strings.Contains(refused.Block.Table, PinTable)
			}
			res, err := t.prune(ctx, 0, pruner.Batch{Limit: 100})
			if !isRefused(err) {
				return fmt.Errorf("with a row pinned the error is %v; want a RefusedError that names %s", err, PinConstraint)
			}
			if accounted(res)+res.Children != 0 {
				return fmt.Errorf("beside the error it counted %+v; want nothing", res)
			}
			if err := t.untouched(ctx); err != nil {
				return err
			}
			sum, err := rowByRow(ctx, t, pruner.StepStuck, isRefused)
			if err != nil {
				return err
			}
			if sum.Stuck != 1 || sum.Removed != 9 || sum.Locked != 0 {
				return fmt.Errorf("row by row, with 1 of 10 rows pinned, it counted %+v", sum)
			}
			return errors.Join(t.left(ctx, 7), t.partsLeft(ctx, fix.Rows[6:7]))
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", guard, err)
		}
	}
	return nil
}

// checkAnyFamily holds populations that nobody thought of against the policy.
func checkAnyFamily(ctx context.Context, f Factory) error {
	for draw := range 16 {
		rnd := rand.New(rand.NewPCG(uint64(draw), 2))
		fix, limit := anyFamily(rnd, draw)
		err := try(ctx, f, fix, func(t *trial) error {
			first, err := t.passes(ctx, limit)
			if err != nil {
				return err
			}
			second, err := t.passes(ctx, limit)
			if err == nil && second.Removed+second.Children != 0 {
				err = fmt.Errorf("the second drain removed %d rows and %d children after %d", second.Removed, second.Children, first.Removed)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("population %d, limit %d: %w", draw, limit, err)
		}
	}
	return nil
}

func anyFamily(rnd *rand.Rand, draw int) (Fixture, int) {
	of := func(vs ...policy.Value) policy.Value { return vs[rnd.IntN(len(vs))] }
	guard := []policy.Guard{{}, stateGuard(), ownerGuard(), bothGuards()}[draw%4]
	fix := anyFixture(rnd, guard, draw&4 != 0, draw&8 != 0)
	fix.Sweep.Guard.Owed = owedGuard().Owed
	if rnd.IntN(2) == 0 {
		fix.Sweep.Guard.Hold = "hold"
	}
	fix.Sweep.Children = familyOf(guard).Children
	fix.Sweep = sized(fix.Sweep, 1+rnd.IntN(12))
	limit := 1 + rnd.IntN(12)
	if slices.Equal(fix.Index.Columns, AgeAlone.Columns) {
		limit = 10 // see checkHeldTies
	}
	if own := rnd.IntN(3); own > 0 {
		fix.Sweep.Own = &policy.RowWindow{Column: "own", Unit: day, ZeroNever: own == 2}
	}
	fix.Rows = fix.Rows[:40]
	for i := range fix.Rows {
		r := &fix.Rows[i]
		r.Hold = of(policy.Null, policy.Bool(true), policy.Bool(false), policy.Bool(false))
		r.Own = of(policy.Null, policy.Null, policy.Int(int64(rnd.IntN(60))), policy.Int(-3), policy.Int(36501))
		states := terminal
		if rnd.IntN(3) == 0 {
			states = slices.Concat(terminal, terminal, protecting())
		}
		for range rnd.IntN(5) * rnd.IntN(5) {
			*r = parts(*r, of(states...))
		}
		*r = noted(*r)
	}
	return fix, limit
}
