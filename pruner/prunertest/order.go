package prunertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var orderChecks = []Check{
	{"oldest first", checkOldestFirst},
	{"no row is examined twice in a pass", checkOnce},
	{"only the cutoff ends a pass", checkEnd},
	{"rows behind the cursor are found by the next drain", checkBehind},
	{"a second drain removes nothing", checkIdempotent},
	{"two sweepers remove each row once", checkTwoSweepers},
	{"a cancelled context removes nothing", checkCancelled},
	{"any population", checkAny},
}

func checkOldestFirst(ctx context.Context, f Factory) error {
	for _, ix := range []Index{AgeUnique, AgeAlone, StateAge, KindAge} {
		fix := Fixture{Sweep: sweepOf(noGuard), Index: ix, Rows: entries(40)}
		switch {
		case slices.Equal(ix.Columns, StateAge.Columns):
			fix.Sweep.Guard = stateGuard()
		case slices.Equal(ix.Columns, KindAge.Columns):
			fix.Sweep.Only = []policy.Match{{Column: "kind", Values: policy.Texts("k")}}
		}
		err := try(ctx, f, fix, func(t *trial) error {
			_, err := t.passes(ctx, 7)
			return errors.Join(err, t.left(ctx))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// heldHead is a population whose oldest rows are held, with due and held ones mixed behind them.
func heldHead(ix Index) Fixture {
	rows := entries(60)
	for i := range rows {
		if i >= 35 || i%3 == 0 { // the last are the oldest
			rows[i].State, rows[i].Owner = running, policy.Int(2)
		}
	}
	return Fixture{Sweep: sweepOf(stateGuard()), Index: ix, Rows: rows, Owners: owners}
}

func checkOnce(ctx context.Context, f Factory) error {
	for _, guard := range []policy.Guard{stateGuard(), ownerGuard()} {
		for _, limit := range []int{1, 7, 59, 60, 61} {
			fix := heldHead(AgeUnique)
			fix.Sweep.Guard = guard
			err := try(ctx, f, fix, func(t *trial) error {
				_, err := t.passes(ctx, limit)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEnd(ctx context.Context, f Factory) error {
	return try(ctx, f, heldHead(AgeUnique), func(t *trial) error {
		// The first two batches remove nothing, and hardly any batch removes as many as its limit.
		if _, err := t.batches(ctx, 0, 10, pruner.Remove, nil); err != nil {
			return err
		}
		return t.left(ctx, ids(t.f.Rows, func(r Row) bool { return r.State == running })...)
	})
}

func checkBehind(ctx context.Context, f Factory) error {
	fix := heldHead(AgeUnique)
	fix.Sweep.Guard = ownerGuard()
	return try(ctx, f, fix, func(t *trial) error {
		late := entry(1000, old(-100), completed, 1)
		_, err := t.batches(ctx, 0, 10, pruner.Remove, func(n int, res pruner.Result) error {
			if n != 4 {
				return nil
			}
			return errors.Join(t.insert(ctx, late), t.setOwner(ctx, Owner{"a", 2, completed}))
		})
		if err != nil {
			return err
		}
		if _, err := t.batches(ctx, 0, 10, pruner.Remove, nil); err != nil {
			return err
		}
		return t.left(ctx)
	})
}

func checkIdempotent(ctx context.Context, f Factory) error {
	fix := heldHead(AgeUnique)
	fix.Rows = append(fix.Rows, entry(1000, old(0), completed, 99))
	fix.Sweep.Guard = bothGuards()
	return try(ctx, f, fix, func(t *trial) error {
		first, err := t.passes(ctx, 10)
		if err != nil {
			return err
		}
		second, err := t.passes(ctx, 10)
		if err != nil {
			return fmt.Errorf("the second drain: %w", err)
		}
		if second.Removed != 0 || second.Held != first.Held || second.Orphan != first.Orphan {
			return fmt.Errorf("the second drain removed %d rows, %d are held and %d orphans; want 0, %d and %d", second.Removed, second.Held, second.Orphan,
				first.Held, first.Orphan)
		}
		return nil
	})
}

func checkTwoSweepers(ctx context.Context, f Factory) error {
	fix := heldHead(AgeUnique)
	fix.Sweep.Guard = ownerGuard()
	return try(ctx, f, fix, func(t *trial) error {
		if err := t.twoSweepers(ctx, 7, 8); err != nil {
			return err
		}
		return t.left(ctx, ids(fix.Rows, func(r Row) bool { return r.Owner == policy.Int(2) })...)
	})
}

// twoSweepers runs a pass of each of two Pruners of the first arm, batch and batch about.
func (t *trial) twoSweepers(ctx context.Context, limits ...int) error {
	var at [2]pruner.Cursor
	var end [2]bool
	var ps [2]pruner.Pruner
	bound := 2 * len(t.rows)
	for _, r := range t.rows {
		bound += t.children(r)
	}
	for i := range ps {
		var err error
		if ps[i], err = t.Pruner(ctx, t.arms[0]); err != nil {
			return err
		}
	}
	for n := 0; !end[0] || !end[1]; n++ {
		i := n % 2
		if end[i] {
			i = 1 - i
		}
		res, err := ps[i].Prune(ctx, pruner.Batch{Cutoff: t.cutoff(0), Limit: limits[i], After: at[i]})
		if err == nil {
			err = sane(res, limits[i], t.f.Sweep.WithDefaults().Batch.Limit)
		}
		if err != nil {
			return fmt.Errorf("sweeper %d: %w", i+1, err)
		}
		gone, err := t.forget(ctx)
		if err != nil {
			return err
		}
		if len(gone.rows) != res.Removed || gone.total != res.Children {
			return fmt.Errorf("sweeper %d: %d rows and %d children are gone, and %d and %d counted as removed", i+1, len(gone.rows), gone.total, res.Removed, res.Children)
		}
		if at[i], end[i] = res.Next, res.End; n > bound {
			return errors.New("the passes of two sweepers do not end")
		}
	}
	return nil
}

func checkCancelled(ctx context.Context, f Factory) error {
	return try(ctx, f, Fixture{Sweep: sweepOf(noGuard), Index: AgeUnique, Rows: entries(5)}, func(t *trial) error {
		p, err := t.pruner(ctx, 0)
		if err != nil {
			return err
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		res, err := p.Prune(over, pruner.Batch{Cutoff: t.cutoff(0), Limit: 10})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the error is %v; want %v", err, context.Canceled)
		}
		if accounted(res) != 0 {
			return fmt.Errorf("beside the error it counted %+v; want nothing", res)
		}
		return t.untouched(ctx)
	})
}
