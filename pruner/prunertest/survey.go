package prunertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var surveyChecks = []Check{
	{"the survey counts undated rows", checkSurveyUndated},
	{"the survey says why rows are held", checkSurveyHeld},
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
			got, err := s.HeldBy(ctx, t.cutoff(0), 1000)
			if err != nil {
				return err
			}
			oldestFirst := func(a, b pruner.HeldBy) int { return a.Oldest.Compare(*b.Oldest) }
			if slices.ContainsFunc(got, func(h pruner.HeldBy) bool { return h.Oldest == nil }) {
				return fmt.Errorf("held by %s: an oldest age is missing", heldText(got))
			}
			slices.SortFunc(got, oldestFirst) // the order of the answer is free
			if !slices.EqualFunc(got, c.want, sameHeld) {
				return fmt.Errorf("held by %s; want %s", heldText(got), heldText(c.want))
			}
			// Of the oldest rows only: the first of them, in both populations, is held by the reason that comes first.
			few, err := s.HeldBy(ctx, t.cutoff(0), 1)
			if err != nil {
				return err
			}
			if len(few) != 1 || few[0].Rows != 1 || few[0].Reason != c.want[0].Reason || few[0].Value != c.want[0].Value {
				return fmt.Errorf("of the oldest row alone: held by %s; want one row by %s %q", heldText(few), c.want[0].Reason, c.want[0].Value)
			}
			return t.untouched(ctx)
		})
		if err != nil {
			return fmt.Errorf("guard %+v: %w", c.guard, err)
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
