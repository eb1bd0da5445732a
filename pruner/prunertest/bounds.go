package prunertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var boundChecks = []Check{
	{"the cutoff holds to the microsecond", checkCutoff},
	{"a zero cutoff finds nothing", checkZeroCutoff},
	{"a limit out of range is refused", checkLimitRange},
	{"the limit is never exceeded", checkLimit},
	{"undated rows stay", checkUndated},
	{"only what only matches goes", checkOnly},
}

func checkCutoff(ctx context.Context, f Factory) error {
	cutoff := Now.Add(-30 * day)
	fix := Fixture{Owners: owners}
	for i, d := range []time.Duration{-time.Second, -time.Millisecond, -time.Microsecond, 0, time.Microsecond, time.Millisecond, time.Second, 30 * day, 31 * day} {
		fix.Rows = append(fix.Rows, entry(int64(i+1), At(cutoff.Add(d)), completed, 1))
	}
	fix.Rows = append(fix.Rows, entry(10, Infinity, completed, 1))
	for _, c := range []struct {
		ix Index
		g  policy.Guard
	}{{AgeUnique, noGuard}, {AgeAlone, noGuard}, {AgeUnique, ownerGuard()}, {AgeUnique, stateGuard()}, {StateAge, stateGuard()}} {
		fix.Index, fix.Sweep = c.ix, sweepOf(c.g)
		for _, limit := range []int{1, 100} {
			if err := passAndLeft(ctx, f, fix, limit, func(r Row) bool { return r.ID > 3 }); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkZeroCutoff(ctx context.Context, f Factory) error {
	return try(ctx, f, Fixture{Sweep: sweepOf(noGuard), Index: AgeUnique, Rows: entries(5)}, func(t *trial) error {
		p, err := t.pruner(ctx, 0)
		if err != nil {
			return err
		}
		res, err := p.Prune(ctx, pruner.Batch{Limit: 10})
		if err != nil {
			return err
		}
		if !res.End || accounted(res) != 0 || res.Examined != 0 {
			return fmt.Errorf("it answered %+v; want End and nothing else", res)
		}
		return t.untouched(ctx)
	})
}

func checkLimitRange(ctx context.Context, f Factory) error {
	return try(ctx, f, Fixture{Sweep: sweepOf(noGuard), Index: AgeUnique, Rows: entries(5)}, func(t *trial) error {
		for _, limit := range []int{0, -1, math.MinInt, pruner.MaxLimit + 1, math.MaxInt} {
			res, err := t.prune(ctx, 0, pruner.Batch{Limit: limit})
			if !errors.Is(err, pruner.ErrLimit) {
				return fmt.Errorf("limit %d: the error is %v; want %v", limit, err, pruner.ErrLimit)
			}
			if accounted(res) != 0 || res.Examined != 0 {
				return fmt.Errorf("limit %d: it counted %+v; want nothing", limit, res)
			}
			if err := t.untouched(ctx); err != nil {
				return fmt.Errorf("limit %d: %w", limit, err)
			}
		}
		_, err := t.pass(ctx, 0, pruner.MaxLimit)
		return errors.Join(err, t.left(ctx))
	})
}

func checkLimit(ctx context.Context, f Factory) error {
	for _, guard := range []policy.Guard{noGuard, stateGuard(), ownerGuard()} {
		for _, limit := range []int{1, 2, 9, 30} {
			fix := Fixture{Sweep: sweepOf(guard), Index: AgeUnique, Rows: entries(30), Owners: owners}
			err := try(ctx, f, fix, func(t *trial) error {
				_, err := t.pass(ctx, 0, limit)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkUndated(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix    Index
		g     policy.Guard
		since time.Time // zero: the default
	}{{AgeUnique, noGuard, time.Time{}}, {AgeAlone, ownerGuard(), time.Time{}}, {AgeUnique, stateGuard(), Now.AddDate(-1, 0, 0)}, {StateAge, stateGuard(), time.Time{}}} {
		fix := Fixture{Sweep: sweepOf(c.g), Index: c.ix, Owners: owners}
		fix.Sweep.Since = c.since
		since := fix.Sweep.WithDefaults().Since
		for i, age := range []Age{NoAge, MinusInfinity, At(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)), At(time.Unix(0, 0)), At(since.Add(-time.Microsecond)),
			At(since), At(since.Add(time.Microsecond)), old(1)} {
			fix.Rows = append(fix.Rows, entry(int64(i+1), age, completed, 1))
		}
		for _, limit := range []int{1, 100} {
			if err := passAndLeft(ctx, f, fix, limit, func(r Row) bool { return r.ID <= 5 }); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOnly(ctx context.Context, f Factory) error {
	text := policy.Texts
	null := policy.Null
	for _, c := range []struct {
		ix   Index
		only []policy.Match
		lets func(kind policy.Value) bool
	}{
		{KindAge, []policy.Match{{Column: "kind", Values: text("k")}}, func(k policy.Value) bool { return k == policy.Text("k") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: text("k")}}, func(k policy.Value) bool { return k == policy.Text("k") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: text("k", "l")}}, func(k policy.Value) bool { return k == policy.Text("k") || k == policy.Text("l") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: []policy.Value{null, policy.Text("l")}}}, func(k policy.Value) bool { return k.IsNull() || k == policy.Text("l") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: []policy.Value{null}}}, policy.Value.IsNull},
		{AgeUnique, []policy.Match{{Column: "kind", Values: text("k"), Not: true}}, func(k policy.Value) bool { return k != policy.Text("k") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: text("k", "l"), Not: true}}, func(k policy.Value) bool { return k != policy.Text("k") && k != policy.Text("l") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: []policy.Value{null}, Not: true}}, func(k policy.Value) bool { return !k.IsNull() }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: []policy.Value{null, policy.Text("l")}, Not: true}}, func(k policy.Value) bool { return !k.IsNull() && k != policy.Text("l") }},
		{AgeUnique, []policy.Match{{Column: "kind", Values: text("k", "l")}, {Column: "kind", Values: text("l"), Not: true}}, func(k policy.Value) bool { return k == policy.Text("k") }},
	} {
		for _, guard := range []policy.Guard{noGuard, ownerGuard()} {
			fix := Fixture{Sweep: sweepOf(guard), Index: c.ix, Rows: entries(30), Owners: owners}
			fix.Sweep.Only = c.only
			for i := range fix.Rows {
				fix.Rows[i].Kind = []policy.Value{policy.Text("k"), policy.Text("l"), policy.Text("m"), policy.Text("K"), null}[i%5]
			}
			if guard.Owner != nil {
				fix.Rows[3].Owner, fix.Rows[4].Owner, fix.Rows[7].Owner = policy.Int(2), policy.Int(77), policy.Int(2)
			}
			err := passAndLeft(ctx, f, fix, 8, func(r Row) bool {
				return !c.lets(r.Kind) || guard.Owner != nil && r.Owner != policy.Int(1)
			})
			if err != nil {
				return fmt.Errorf("only %+v: %w", c.only, err)
			}
		}
	}
	return nil
}
