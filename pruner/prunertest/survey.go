package prunertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var surveyChecks = []Check{
	{"the survey counts undated rows", checkSurveyUndated},
	{"the survey says why rows are held", checkSurveyHeld},
	{"the survey says what is owed and what is on hold", checkSurveyOwed},
	{"the survey tells rows with own windows apart", checkSurveyOwn},
}

// surveyor is the arm's Pruner as a Surveyor; nil: it is none, which the contract allows.
func (t *trial) surveyor(ctx context.Context, arm int) (pruner.Surveyor, error) {
	p, err := t.pruner(ctx, arm)
	if err != nil {
		return nil, err
	}
	s, _ := p.(pruner.Surveyor)
	return s, nil
}

func checkSurveyUndated(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		ix Index
		g  policy.Guard
	}{{AgeUnique, noGuard}, {AgeUnique, ownerGuard()}, {AgeUnique, endedGuard}, {AgeUnique, stateGuard()}, {StateAge, stateGuard()}, {AgeTerminal, stateGuard()}} {
		fix := Fixture{Sweep: sweepOf(c.g), Index: c.ix, Rows: append(entries(10), entry(100, young(1), completed, 1), entry(101, Infinity, completed, 1)), Owners: owners}
		fix.Rows[1].Age, fix.Rows[2].Age, fix.Rows[3].Age, fix.Rows[4].Age = NoAge, MinusInfinity, At(time.Unix(0, 0)), NoAge
		fix.Rows[4].State = running
		fix.Rows[5].State = policy.Null
		err := try(ctx, f, fix, func(t *trial) error {
			for arm := range t.arms {
				s, err := t.surveyor(ctx, arm)
				if s == nil || err != nil {
					return err
				}
				want := 0
				for _, r := range fix.Rows {
					if t.inArm(arm, r) && t.verdict(r) == policy.Undated {
						want++
					}
				}
				got, err := s.Undated(ctx, 1000)
				if err != nil {
					return err
				}
				if got == nil || *got != want {
					return fmt.Errorf("arm %s: %s rows are undated; want %d", t.arms[arm], count(got), want)
				}
				if want < 2 {
					continue
				}
				if got, err = s.Undated(ctx, want-1); err != nil || got != nil {
					return fmt.Errorf("arm %s: bounded by %d, it counted %s with the error %v; want unknown and none", t.arms[arm], want-1, count(got), err)
				}
			}
			return t.untouched(ctx)
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", c.g, err)
		}
	}
	return nil
}

func count(n *int) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

func checkSurveyHeld(ctx context.Context, f Factory) error {
	for _, c := range []struct {
		guard policy.Guard
		rows  func(rows []Row)
		want  []pruner.HeldBy
	}{
		{stateGuard(), func(rows []Row) {
			rows[0].State, rows[5].State, rows[9].State = live[0], running, running
			rows[3].State, rows[4].State = policy.Text("archived"), policy.Null
		}, []pruner.HeldBy{
			{Reason: "state", Value: "running", Rows: 2, Oldest: old(1).Instant()},
			{Reason: "unknown_state", Rows: 1, Oldest: old(6).Instant()},
			{Reason: "unknown_state", Value: "archived", Rows: 1, Oldest: old(7).Instant()},
			{Reason: "state", Value: "queued", Rows: 1, Oldest: old(10).Instant()},
		}},
		{ownerGuard(), func(rows []Row) {
			rows[9].Owner, rows[5].Owner, rows[4].Owner = policy.Int(2), policy.Int(2), policy.Int(3)
			rows[7].Owner, rows[3].Owner = policy.Int(77), policy.Int(77)
			rows[6].Owner = policy.Null
		}, []pruner.HeldBy{
			{Reason: "owner", Value: "running", Rows: 3, Owners: ptr(2), Oldest: old(1).Instant()},
			{Reason: "orphan", Rows: 2, Oldest: old(3).Instant()},
			{Reason: "ownerless", Rows: 1, Oldest: old(4).Instant()},
		}},
	} {
		fix := Fixture{Sweep: sweepOf(c.guard), Index: AgeUnique, Rows: entries(10), Owners: append(owners[:2:2], Owner{"a", 3, running})}
		c.rows(fix.Rows)
		fix.Rows = append(fix.Rows, entry(100, young(1), running, 2))
		err := try(ctx, f, fix, func(t *trial) error {
			s, err := t.surveyor(ctx, 0)
			if s == nil || err != nil {
				return err
			}
			if err := heldBy(ctx, s, t.cutoff(0), c.want); err != nil {
				return err
			}
			return t.untouched(ctx)
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", c.guard, err)
		}
	}
	return nil
}

// heldBy holds the breakdown against what it has to be, the oldest first. The oldest row of all has to be held by the
// reason that comes first.
func heldBy(ctx context.Context, s pruner.Surveyor, cutoff policy.Cutoff, want []pruner.HeldBy) error {
	got, err := s.HeldBy(ctx, cutoff, 1000)
	if err != nil {
		return err
	}
	oldestFirst := func(a, b pruner.HeldBy) int { return a.Oldest.Compare(*b.Oldest) }
	if slices.ContainsFunc(got, func(h pruner.HeldBy) bool { return h.Oldest == nil }) {
		return fmt.Errorf("held by %s: an oldest age is missing", heldText(got))
	}
	slices.SortFunc(got, oldestFirst) // the order of the answer is free
	if !slices.EqualFunc(got, want, sameHeld) {
		return fmt.Errorf("held by %s; want %s", heldText(got), heldText(want))
	}
	few, err := s.HeldBy(ctx, cutoff, 1)
	if err != nil {
		return err
	}
	if len(few) != 1 || few[0].Rows != 1 || few[0].Reason != want[0].Reason || few[0].Value != want[0].Value {
		return fmt.Errorf("of the oldest row alone: held by %s; want one row by %s %q", heldText(few), want[0].Reason, want[0].Value)
	}
	return nil
}

func checkSurveyOwed(ctx context.Context, f Factory) error {
	null, archived := policy.Null, policy.Text("archived")
	queued, retry := live[0], live[4]
	hold := policy.Bool(true)
	for _, c := range []struct {
		guard func(g *policy.Guard)
		rows  func(rows []Row)
		want  []pruner.HeldBy
	}{
		// The value is the first of the states that are owed.
		{func(g *policy.Guard) { g.Hold = "hold" }, func(rows []Row) {
			rows[9], rows[6] = parts(rows[9], completed, running, retry), parts(rows[6], retry, null)
			rows[5], rows[4] = parts(rows[5], running, queued), parts(rows[4], running)
			rows[4].Hold, rows[3].Hold, rows[8].Hold = hold, hold, policy.Bool(false)
			rows[2], rows[1] = parts(rows[2], completed, null), parts(rows[1], null, archived)
		}, []pruner.HeldBy{
			{Reason: "owed", Value: retry.String(), Rows: 2, Oldest: old(1).Instant()},
			{Reason: "owed", Value: "queued", Rows: 1, Oldest: old(5).Instant()},
			{Reason: "hold", Rows: 2, Oldest: old(6).Instant()},
			{Reason: "owed", Rows: 1, Oldest: old(8).Instant()},
			{Reason: "owed", Value: "archived", Rows: 1, Oldest: old(9).Instant()},
		}},
		{func(g *policy.Guard) { g.Owed.Column, g.Owed.Terminal = "", nil }, func(rows []Row) {
			rows[9], rows[3] = parts(rows[9], running, completed), parts(rows[3], completed)
		}, []pruner.HeldBy{{Reason: "owed", Rows: 2, Oldest: old(1).Instant()}}},
		// Each row is held by the first part of the guard that keeps it.
		{func(g *policy.Guard) { g.Hold, g.State, g.Owner = "hold", stateGuard().State, ownerGuard().Owner }, func(rows []Row) {
			for i := range rows {
				switch {
				case i >= 8:
					rows[i].State = running
					fallthrough
				case i >= 6:
					rows[i].Hold = hold
					fallthrough
				case i >= 4:
					rows[i] = parts(rows[i], running)
					fallthrough
				case i >= 2:
					rows[i].Owner = policy.Int(2)
				}
			}
			rows[5].Owner = policy.Int(77)
		}, []pruner.HeldBy{
			{Reason: "state", Value: "running", Rows: 2, Oldest: old(1).Instant()},
			{Reason: "hold", Rows: 2, Oldest: old(3).Instant()},
			{Reason: "owed", Value: "running", Rows: 2, Oldest: old(5).Instant()},
			{Reason: "owner", Value: "running", Rows: 2, Owners: ptr(1), Oldest: old(7).Instant()},
		}},
	} {
		guard := owedGuard()
		c.guard(&guard)
		fix := Fixture{Sweep: sweepOf(guard), Index: AgeUnique, Rows: entries(10), Owners: owners}
		c.rows(fix.Rows)
		last := parts(entry(100, young(1), running, 2), running)
		last.Hold = hold
		fix.Rows = append(fix.Rows, last)
		err := try(ctx, f, fix, func(t *trial) error {
			s, err := t.surveyor(ctx, 0)
			if s == nil || err != nil {
				return err
			}
			return errors.Join(heldBy(ctx, s, t.cutoff(0), c.want), t.untouched(ctx))
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", guard, err)
		}
	}
	return nil
}

// checkSurveyOwn: what is held and what is undated is the arm's own rows alone.
func checkSurveyOwn(ctx context.Context, f Factory) error {
	for _, pair := range ownPairs {
		fix := withOwn(Fixture{Sweep: sweepOf(stateGuard()), Rows: entries(16)}, pair.index, pair.own)
		for i := range fix.Rows {
			r := &fix.Rows[i]
			if i%2 == 0 {
				r.Own = policy.Int(10 * 86400)
			}
			if i%8 < 4 {
				r.State = running
			}
		}
		fix.Rows[8].Own = policy.Int(100 * 86400) // held by its window alone
		for i, age := range []Age{NoAge, MinusInfinity, At(time.Unix(0, 0)), NoAge, NoAge} {
			for j, own := range []policy.Value{policy.Null, policy.Int(10), policy.Int(10)} {
				r := entry(int64(100+10*i+j), age, completed, 1)
				r.Own = own
				if i == 4 {
					r.State = running // so it is no wonder that it has no age
				}
				fix.Rows = append(fix.Rows, r)
			}
		}
		err := try(ctx, f, fix, func(t *trial) error {
			for arm := range t.arms {
				s, err := t.surveyor(ctx, arm)
				if s == nil || err != nil {
					return err
				}
				// Live are the rows 1 to 4 and 9 to 12; the odd ones have windows of their own, row 9 a long one.
				want := pruner.HeldBy{Reason: "state", Value: "running", Rows: 4, Oldest: old(5).Instant()}
				if t.arms[arm].Own != nil {
					want.Rows, want.Oldest = 3, old(6).Instant()
				}
				got, err := s.HeldBy(ctx, t.cutoff(arm), 1000)
				if err != nil {
					return err
				}
				if len(got) != 1 || got[0].Oldest == nil || !sameHeld(got[0], want) {
					return fmt.Errorf("arm %s: held by %s; want %s", t.arms[arm], heldText(got), heldText([]pruner.HeldBy{want}))
				}
				undated := 4
				if t.arms[arm].Own != nil {
					undated = 8
				}
				switch n, err := s.Undated(ctx, 1000); {
				case err != nil:
					return err
				case n == nil && t.arms[arm].Expiry: // an index of ends does not lead to all of them
				case n == nil || *n != undated:
					return fmt.Errorf("arm %s: %s rows are undated; want %d", t.arms[arm], count(n), undated)
				}
			}
			return t.untouched(ctx)
		})
		if err != nil {
			return fmt.Errorf("own index on %v: %w", pair.own.Columns, err)
		}
	}
	return nil
}

func ptr(n int) *int { return &n }

func sameHeld(a, b pruner.HeldBy) bool {
	return a.Reason == b.Reason && a.Value == b.Value && a.Rows == b.Rows && count(a.Owners) == count(b.Owners) && a.Oldest.Equal(*b.Oldest)
}

func heldText(hs []pruner.HeldBy) string {
	var s []string
	for _, h := range hs {
		oldest := "no age"
		if h.Oldest != nil {
			oldest = h.Oldest.UTC().Format(time.RFC3339)
		}
		s = append(s, fmt.Sprintf("%s %q: %d rows, %s owners, oldest %s", h.Reason, h.Value, h.Rows, count(h.Owners), oldest))
	}
	return fmt.Sprint(s)
}
