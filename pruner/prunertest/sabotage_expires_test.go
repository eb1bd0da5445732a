package prunertest

import (
	"context"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

func expiresDefects() []defect {
	var ds []defect
	add := func(check, name string, d defect) {
		d.check, d.name = check, name
		ds = append(ds, d)
	}
	cutoff := func(change func(time.Time) time.Time) func(*broken, *pruner.Batch) {
		return func(_ *broken, b *pruner.Batch) { b.Cutoff = policy.CutoffAt(change(b.Cutoff.Time())) }
	}
	gone := func(pass func(Row) bool) func(*broken, pruner.Batch, *pruner.Result, *error) {
		return result(func(p *broken, _ pruner.Batch, res *pruner.Result) { p.also(res, pass) })
	}
	floor := Now.Add(-policy.DefaultFloor)
	all := func(policy.Arm) bool { return true }

	check := "a row goes once its expiry is past"
	add(check, "null is past", defect{after: gone(func(r Row) bool { return r.Age == NoAge })})
	add(check, "infinity is past", defect{after: gone(func(r Row) bool { return r.Age == Infinity })})
	add(check, "takes the row that expires now", defect{before: cutoff(func(t time.Time) time.Time { return t.Add(time.Microsecond) })})
	add(check, "has a floor", defect{before: cutoff(func(time.Time) time.Time { return floor })})
	add(check, "before since is past", defect{sweep: instant(time.Date(-300000, 1, 1, 0, 0, 0, 0, time.UTC))})

	check = "a row stays for the grace after its expiry"
	add(check, "no grace", defect{before: cutoff(func(time.Time) time.Time { return Now })})
	add(check, "a grace has a floor", defect{before: cutoff(func(t time.Time) time.Time {
		if t.After(floor) {
			return floor
		}
		return t
	})})
	add(check, "takes the row at the end of its grace", defect{before: cutoff(func(t time.Time) time.Time { return t.Add(time.Microsecond) })})

	check = "an expired row that is protected stays"
	add(check, "nothing protects what has expired", defect{prune: unguarded(all, func(s *policy.Sweep) { s.Guard = noGuard })})
	add(check, "no hold", defect{prune: unguarded(all, func(s *policy.Sweep) { s.Guard.Hold = "" })})
	add(check, "no owner", defect{prune: unguarded(all, func(s *policy.Sweep) { s.Guard.Owner = nil })})
	add(check, "no state", defect{prune: unguarded(all, func(s *policy.Sweep) { s.Guard.State = nil })})

	check = "an expired row takes its children along"
	add(check, "leaves the children", defect{arm: func(a *policy.Arm) { a.Children = nil }})
	add(check, "nothing is owed on what has expired", defect{arm: func(a *policy.Arm) { a.Owed = nil }})
	add(check, "takes the children of a row without an expiry", defect{after: result(func(p *broken, _ pruner.Batch, _ *pruner.Result) {
		for _, r := range p.there(func(r Row) bool { return r.Age == NoAge }) {
			takesParts(r.ID)(p)
		}
	})})

	check = "the survey knows rows that never expire"
	add(check, "a row without an expiry is undated", defect{undated: func(p *broken, _ *int, max int) *int {
		s := p.pop.sweep
		s.Expires = false
		n, _ := memory.New(p.pop.Table, s, p.arm).Undated(context.Background(), max)
		return n
	}})
	add(check, "counts none", defect{undated: func(*broken, *int, int) *int { return new(int) }})
	add(check, "does not count", defect{undated: func(*broken, *int, int) *int { return nil }})
	add(check, "says nothing of what is held", defect{heldBy: func(*broken, []pruner.HeldBy, policy.Cutoff) []pruner.HeldBy { return nil }})
	return ds
}
