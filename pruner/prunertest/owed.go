package prunertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var owedChecks = []Check{
	{"an owed row stays whole", checkOwed},
	{"without a state every row of the other table protects", checkOwedStateless},
	{"what becomes owed between batches stays", checkOwedBetween},
	{"owed and the other guards must let go", checkOwedBeside},
	{"a hold protects", checkHold},
	{"at once keeps what is owed, and the row of this instant", checkAtOnce},
}

// parts gives the row parts in these states. A row's parts have numbers of its own.
func parts(r Row, states ...policy.Value) Row {
	for _, s := range states {
		r.Parts = append(r.Parts, Part{ID: 1000*r.ID + int64(len(r.Parts)), State: s})
	}
	return r
}

// noted gives each part of the row a number of notes: 0, 1, 2, 0, ...
func noted(r Row) Row {
	for i := range r.Parts {
		for n := range int64(i % 3) {
			r.Parts[i].Notes = append(r.Parts[i].Notes, 10*r.Parts[i].ID+n)
		}
	}
	return r
}

// owes reports whether the row has a part in a state that protects; it does not ask the policy.
func owes(r Row) bool {
	return slices.ContainsFunc(r.Parts, func(p Part) bool { return !isTerminal(p.State) })
}

// partsLeft holds the parts and the notes that are there against those of the rows that have to be.
func (t *trial) partsLeft(ctx context.Context, rows []Row) error {
	var wantParts, wantNotes []int64
	for _, r := range rows {
		for _, p := range r.Parts {
			wantParts = append(wantParts, p.ID)
			wantNotes = append(wantNotes, p.Notes...)
		}
	}
	for _, c := range []struct {
		what string
		list func(context.Context) ([]int64, error)
		want []int64
	}{{"parts", t.Parts, wantParts}, {"notes", t.Notes, wantNotes}} {
		got, err := c.list(ctx)
		if err != nil {
			return fmt.Errorf("list the %s: %w", c.what, err)
		}
		if slices.Sort(c.want); !slices.Equal(got, c.want) {
			return fmt.Errorf("%s %v are left; want %v", c.what, got, c.want)
		}
	}
	return nil
}

// wholeAndLeft is passAndLeft for rows with children: those that are kept have all of them.
func wholeAndLeft(ctx context.Context, f Factory, fix Fixture, limit int, kept func(Row) bool) error {
	return try(ctx, f, fix, func(t *trial) error {
		if _, err := t.passes(ctx, limit); err != nil {
			return err
		}
		if err := t.left(ctx, ids(fix.Rows, kept)...); err != nil {
			return err
		}
		return t.partsLeft(ctx, slices.DeleteFunc(slices.Clone(fix.Rows), func(r Row) bool { return !kept(r) }))
	})
}

// owedRows has parts in every set of terminal states, and in each state that protects: alone, and between all terminal
// ones. The rows' own state says nothing.
func owedRows() []Row {
	var sets [][]policy.Value
	for set := range 1 << len(terminal) {
		var states []policy.Value
		for i, s := range terminal {
			if set&(1<<i) != 0 {
				states = append(states, s)
			}
		}
		sets = append(sets, states)
	}
	for _, s := range protecting() {
		sets = append(sets, []policy.Value{s}, []policy.Value{terminal[0], s, terminal[1], terminal[2]})
	}
	var rows []Row
	for i, states := range sets {
		n := i * 7 % len(sets) // 7 divides no number of sets here, so the two kinds are mixed in age
		rows = append(rows, noted(parts(entry(int64(n+1), old(n), running, 1), states...)))
	}
	return rows
}

func checkOwed(ctx context.Context, f Factory) error {
	fix := Fixture{Sweep: familyOf(owedGuard()), Rows: owedRows()}
	for _, ix := range []Index{AgeUnique, AgeAlone} {
		fix.Index = ix
		for _, limit := range []int{1, 8, 100} {
			if err := wholeAndLeft(ctx, f, fix, limit, owes); err != nil {
				return fmt.Errorf("limit %d: %w", limit, err)
			}
		}
	}
	return nil
}

func checkOwedStateless(ctx context.Context, f Factory) error {
	rows := entries(20)
	for i := range rows {
		if i%3 > 0 {
			rows[i] = parts(rows[i], []policy.Value{completed, running}[i%2])
		}
	}
	// A part protects whatever its state, and nothing goes with a row.
	guard := owedGuard()
	guard.Owed.Column, guard.Owed.Terminal = "", nil
	fix := Fixture{Sweep: sweepOf(guard), Index: AgeUnique, Rows: rows}
	if err := wholeAndLeft(ctx, f, fix, 6, func(r Row) bool { return len(r.Parts) > 0 }); err != nil {
		return err
	}
	// A pin protects, and parts go whatever their state. It does not come to where the pin would be an error.
	guard.Owed = &policy.OwedGuard{Table: pinName, Key: partKey}
	fix.Sweep = familyOf(guard)
	pinned := func(r Row) bool { return r.ID%4 == 0 }
	return try(ctx, f, fix, func(t *trial) error {
		for _, r := range rows {
			if !pinned(r) {
				continue
			}
			if err := t.pin(ctx, r.ID); err != nil {
				return err
			}
		}
		if _, err := t.passes(ctx, 6); err != nil {
			return err
		}
		if err := t.left(ctx, ids(rows, pinned)...); err != nil {
			return err
		}
		return t.partsLeft(ctx, slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !pinned(r) }))
	})
}

func checkOwedBetween(ctx context.Context, f Factory) error {
	rows := entries(20)
	for i := range rows {
		rows[i] = parts(rows[i], completed)
	}
	return try(ctx, f, Fixture{Sweep: familyOf(owedGuard()), Index: AgeUnique, Rows: rows}, func(t *trial) error {
		sum, err := t.batches(ctx, 0, 6, pruner.Remove, func(n int, _ pruner.Result) error {
			if n != 1 {
				return nil
			}
			if err := t.setPartState(ctx, rows[1].Parts[0].ID, running); err != nil {
				return err
			}
			return t.insertPart(ctx, 3, Part{ID: 1, State: policy.Null})
		})
		if err != nil {
			return err
		}
		if sum.Held != 2 || sum.Removed != 18 || sum.Children != 18 {
			return fmt.Errorf("with 2 of 20 rows owed it counted %+v", sum)
		}
		if err := t.left(ctx, 2, 3); err != nil {
			return err
		}
		third := rows[2]
		third.Parts = append(slices.Clone(third.Parts), Part{ID: 1})
		return t.partsLeft(ctx, []Row{rows[1], third})
	})
}

// checkOwedBeside has every guard there is beside owed, each alone and all together, so that each has rows that only it
// keeps.
func checkOwedBeside(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix    Index
		guard policy.Guard
	}{
		{AgeUnique, ownerGuard()}, {AgeUnique, stateGuard()}, {StateAge, stateGuard()}, {AgeTerminal, bothGuards()}, {AgeUnique, bothGuards()},
		{AgeUnique, policy.Guard{Hold: "hold"}}, {AgeAlone, bothGuards()},
	} {
		for _, hold := range []bool{false, true} {
			guard := c.guard
			guard.Owed = owedGuard().Owed
			if hold {
				guard.Hold = "hold"
			}
			fix := Fixture{Sweep: familyOf(guard), Index: c.ix, Rows: entries(48), Owners: owners}
			for i := range fix.Rows {
				r := &fix.Rows[i]
				if i%2 == 0 {
					r.State = running
				}
				r.Owner = policy.Int(int64(1 + i/2%3)) // 3 does not exist
				r.Hold = []policy.Value{policy.Null, policy.Bool(true), policy.Bool(false)}[i/3%3]
				*r = noted(parts(*r, completed, []policy.Value{running, completed}[i/6%2]))
			}
			kept := func(r Row) bool {
				return owes(r) || guard.State != nil && r.State == running || guard.Owner != nil && r.Owner != policy.Int(1) ||
					guard.Hold != "" && r.Hold == policy.Bool(true)
			}
			if err := wholeAndLeft(ctx, f, fix, 10, kept); err != nil {
				return fmt.Errorf("guard %+v: %w", guard, err)
			}
		}
	}
	return nil
}

func checkHold(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix    Index
		guard policy.Guard
	}{{AgeUnique, policy.Guard{}}, {AgeAlone, policy.Guard{}}, {AgeUnique, stateGuard()}, {StateAge, stateGuard()}, {AgeTerminal, stateGuard()}, {AgeUnique, ownerGuard()}} {
		c.guard.Hold = "hold"
		fix := Fixture{Sweep: sweepOf(c.guard), Index: c.ix, Rows: append(entries(30), entry(100, young(1), completed, 1)), Owners: owners}
		for i := range fix.Rows {
			r := &fix.Rows[i]
			r.Hold = []policy.Value{policy.Null, policy.Bool(true), policy.Bool(false)}[i%3]
			if i%4 == 0 {
				r.State, r.Owner = running, policy.Int(2)
			}
		}
		kept := func(r Row) bool {
			return r.ID == 100 || r.Hold == policy.Bool(true) || r.State == running && (c.guard.State != nil || c.guard.Owner != nil)
		}
		limits := []int{7}
		if c.guard.State == nil && c.guard.Owner == nil {
			limits = []int{1, 100}
		}
		for _, limit := range limits {
			if err := passAndLeft(ctx, f, fix, limit, kept); err != nil {
				return fmt.Errorf("guard %+v: %w", c.guard, err)
			}
		}
	}
	return nil
}

func checkAtOnce(ctx context.Context, f Factory) error {
	guard := owedGuard()
	for _, c := range []struct {
		ix    Index
		guard policy.Guard
		keeps func(Row) bool
	}{
		{AgeUnique, guard, owes},
		{AgeUnique, stateGuard(), func(r Row) bool { return r.State == running }},
		{StateAge, stateGuard(), func(r Row) bool { return r.State == running }},
		{AgeAlone, ownerGuard(), func(r Row) bool { return r.Owner == policy.Int(2) }},
	} {
		fix := Fixture{Sweep: familyOf(c.guard), Index: c.ix, Owners: owners}
		fix.Sweep.Window = policy.AtOnce
		for i, d := range []time.Duration{-50 * day, -time.Hour, -time.Second, -time.Microsecond, 0, time.Microsecond, day} {
			r := parts(entry(int64(2*i+1), At(Now.Add(d)), completed, 1), completed)
			owed := parts(entry(int64(2*i+2), At(Now.Add(d)), running, 2), completed, running)
			if c.guard.Owed == nil { // the parts of a row that goes go too, whatever they are
				r = parts(r, running)
			}
			fix.Rows = append(fix.Rows, r, owed)
		}
		for _, limit := range []int{1, 100} {
			err := wholeAndLeft(ctx, f, fix, limit, func(r Row) bool { return c.keeps(r) || !r.Age.Instant().Before(Now) })
			if err != nil {
				return fmt.Errorf("guard %+v: %w", c.guard, err)
			}
		}
	}
	return nil
}
