package prunertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

// defect is one thing that is wrong with a Pruner, and the check that must report it.
type defect struct {
	check, name string
	sweep       func(*policy.Sweep)                                             // what the Pruner thinks the sweep is
	arm         func(*policy.Arm)                                               // and the arm
	before      func(p *broken, b *pruner.Batch)                                // before each batch
	after       func(p *broken, b pruner.Batch, res *pruner.Result, err *error) // and after it
	prune       func(p *broken, b pruner.Batch) (pruner.Result, error)          // in place of it
	undated     func(p *broken, n *int, max int) *int                           // what it makes of the survey
	heldBy      func(p *broken, hs []pruner.HeldBy, c policy.Cutoff) []pruner.HeldBy
}

// broken is the reference model with a defect.
type broken struct {
	*memory.Pruner
	defect
	pop   *sabotaged
	arm   policy.Arm
	calls int
	last  pruner.Cursor
	mine  int // rows removed by this one
}

type sabotaged struct {
	*inMemory
	fix Fixture
	d   defect
}

func sabotage(d defect) Factory {
	return func(ctx context.Context, f Fixture) (Population, error) {
		pop, err := Memory(ctx, f)
		return &sabotaged{pop.(*inMemory), f, d}, err
	}
}

func (s *sabotaged) Pruner(_ context.Context, a policy.Arm) (pruner.Pruner, error) {
	sw := s.sweep
	if s.d.sweep != nil {
		s.d.sweep(&sw)
		for _, o := range s.fix.Arms(sw) { // the same arm of the sweep as it is misunderstood
			if o.Name == a.Name {
				a = o
			}
		}
	}
	if s.d.arm != nil {
		s.d.arm(&a)
	}
	return &broken{Pruner: memory.New(s.Table, sw, a), defect: s.d, pop: s, arm: a}, nil
}

func (p *broken) Prune(ctx context.Context, b pruner.Batch) (pruner.Result, error) {
	p.calls++
	asked := b
	if p.before != nil {
		p.before(p, &b)
	}
	var res pruner.Result
	var err error
	if p.prune != nil {
		res, err = p.prune(p, b)
	} else {
		res, err = p.Pruner.Prune(ctx, b)
	}
	p.mine += res.Removed
	if p.after != nil {
		p.after(p, asked, &res, &err)
	}
	p.last = res.Next
	return res, err
}

func (p *broken) Undated(ctx context.Context, max int) (*int, error) {
	n, err := p.Pruner.Undated(ctx, max)
	if p.undated != nil {
		n = p.undated(p, n, max)
	}
	return n, err
}

func (p *broken) HeldBy(ctx context.Context, c policy.Cutoff, max int) ([]pruner.HeldBy, error) {
	hs, err := p.Pruner.HeldBy(ctx, c, max)
	if p.heldBy != nil {
		hs = p.heldBy(p, hs, c)
	}
	return hs, err
}

// there lists the rows of the fixture that are still there and pass.
func (p *broken) there(pass func(Row) bool) []Row {
	left := p.pop.Table.IDs()
	return slices.DeleteFunc(slices.Clone(p.pop.fix.Rows), func(r Row) bool { return !slices.Contains(left, r.ID) || !pass(r) })
}

// also removes rows that the batch must not touch, and counts them.
func (p *broken) also(res *pruner.Result, pass func(Row) bool) {
	for _, r := range p.there(pass) {
		p.pop.Table.Delete(r.ID)
		res.Removed++
	}
}

// skipTies moves the cursor past all rows of its age.
func skipTies(res *pruner.Result) {
	fields := strings.Fields(res.Next.String())
	if !res.End && len(fields) == 3 {
		res.Next = pruner.NewCursor(fmt.Sprint(fields[0], " ", fields[1], " ", math.MaxInt64))
	}
}

func instant(t time.Time) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Since = t } }

// result is a defect that lies in the answer of a batch that went well.
func result(change func(p *broken, b pruner.Batch, res *pruner.Result)) func(*broken, pruner.Batch, *pruner.Result, *error) {
	return func(p *broken, b pruner.Batch, res *pruner.Result, err *error) {
		if *err == nil {
			change(p, b, res)
		}
	}
}

func defects() []defect {
	ds := []defect{
		{check: "oldest first", name: "goes by number", prune: byNumber},
		{check: "oldest first", name: "takes the youngest row in the first batch", before: func(p *broken, b *pruner.Batch) { b.Limit-- },
			after: result(func(p *broken, b pruner.Batch, res *pruner.Result) {
				if rows := p.there(func(Row) bool { return true }); p.calls == 1 && len(rows) > 0 {
					p.pop.Table.Delete(slices.MaxFunc(rows, byAge).ID)
					res.Removed++
					res.Examined++
				}
			})},
		{check: "no row is examined twice in a pass", name: "ignores the cursor", before: func(_ *broken, b *pruner.Batch) { b.After = pruner.Cursor{} }},
		{check: "no row is examined twice in a pass", name: "looks at the last row again", after: result(func(p *broken, b pruner.Batch, res *pruner.Result) {
			if b.Limit > 1 && res.Held > 0 && p.calls%2 == 1 && !res.End {
				var sec, nsec, id int64
				if _, err := fmt.Sscan(res.Next.String(), &sec, &nsec, &id); err == nil {
					res.Next = pruner.NewCursor(fmt.Sprint(sec, " ", nsec, " ", id-1))
				}
			}
		})},
		{check: "no row is examined twice in a pass", name: "comes back to where it was", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			if p.calls%5 == 0 && res.Removed == 0 && !res.End {
				*res = pruner.Result{Next: p.last}
			}
		})},
		{check: "no row is examined twice in a pass", name: "counts as examined what it removed", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Examined = res.Removed })},
		{check: "only the cutoff ends a pass", name: "never ends", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.End = false })},
		{check: "only the cutoff ends a pass", name: "ends with a short batch", after: result(func(_ *broken, b pruner.Batch, res *pruner.Result) { res.End = res.Removed < b.Limit })},
		{check: "only the cutoff ends a pass", name: "ends with an empty batch", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.End = res.End || res.Removed == 0 })},
		{check: "rows behind the cursor are found by the next drain", name: "keeps the cursor", before: func(p *broken, b *pruner.Batch) {
			if b.After.IsZero() {
				b.After = p.last
			}
		}},
		{check: "a second drain removes nothing", name: "guards the first pass only", after: result(func(p *broken, b pruner.Batch, res *pruner.Result) {
			if p.calls > 1 && b.After.IsZero() {
				p.also(res, func(Row) bool { return true })
			}
		})},
		{check: "a second drain removes nothing", name: "counts what is held only once", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			if p.calls > 7 {
				res.Held = 0
			}
		})},
		{check: "two sweepers remove each row once", name: "counts what the other removed", after: result(func(p *broken, b pruner.Batch, res *pruner.Result) {
			if gone := len(p.pop.fix.Rows) - len(p.pop.Table.IDs()); gone > p.mine && res.Removed < res.Examined {
				res.Removed++
				res.Held--
				p.mine++
			}
		})},
		{check: "a cancelled context removes nothing", name: "does not look at the context", prune: func(p *broken, b pruner.Batch) (pruner.Result, error) {
			return p.Pruner.Prune(context.Background(), b)
		}},
		{check: "a cancelled context removes nothing", name: "removes and then looks at the context", prune: func(p *broken, b pruner.Batch) (pruner.Result, error) {
			_, _ = p.Pruner.Prune(context.Background(), b)
			return pruner.Result{}, context.Canceled
		}},
		{check: "any population", name: "no guard beside only", sweep: func(s *policy.Sweep) {
			if len(s.Only) > 0 && s.Guard.Owner != nil {
				s.Guard.Owner = nil
			}
		}},
		{check: "any population", name: "no window by state beside an owner", sweep: func(s *policy.Sweep) {
			if s.Guard.Owner != nil && len(s.ByState) > 0 {
				s.Window, s.ByState = policy.MustWindow(30*day), nil
			}
		}},

		{check: "the owner's state guards", name: "no owner guard", sweep: func(s *policy.Sweep) { s.Guard.Owner = nil }},
		{check: "the owner's state guards", name: "asks the row's state", sweep: func(s *policy.Sweep) { s.Guard = stateGuard() }},
		{check: "the row's own state guards", name: "no state guard", sweep: func(s *policy.Sweep) { s.Guard.State = nil },
			arm: func(a *policy.Arm) { a.Equal, a.State = nil, nil }},
		{check: "the row's own state guards", name: "the arms see every state", arm: func(a *policy.Arm) { a.Equal = nil }},
		{check: "both guards must let go", name: "the owner alone", sweep: func(s *policy.Sweep) { s.Guard.State = nil }, arm: func(a *policy.Arm) { a.State = nil }},
		{check: "both guards must let go", name: "the row alone", sweep: func(s *policy.Sweep) { s.Guard.Owner = nil }},
		{check: "both guards must let go", name: "a held row without an owner is an orphan", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
			if res.Held > 0 {
				res.Held--
				res.Orphan++
			}
		})},
		{check: "the owner's whole key counts", name: "owners by number alone", before: func(p *broken, _ *pruner.Batch) {
			for _, o := range p.pop.fix.Owners {
				p.pop.Table.SetOwner(ownerKey(o), completed)
			}
		}},
		{check: "orphans and ownerless rows stay", name: "orphans go", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			p.also(res, func(r Row) bool { return r.Owner == policy.Int(77) })
		})},
		{check: "orphans and ownerless rows stay", name: "ownerless rows go", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			p.also(res, func(r Row) bool { return r.Owner.IsNull() })
		})},
		{check: "orphans and ownerless rows stay", name: "orphans count as held", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
			res.Held, res.Orphan = res.Held+res.Orphan, 0
		})},
		{check: "a null age is live under ended", name: "null is old", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			p.also(res, func(r Row) bool { return r.Age == NoAge })
		})},
		{check: "without a guard the age decides", name: "asks the state all the same", sweep: func(s *policy.Sweep) { s.Guard = stateGuard() }},
		{check: "without a guard the age decides", name: "asks nothing at all", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			p.also(res, func(Row) bool { return true })
		})},
		{check: "an owner reopened between batches keeps the rest", name: "remembers the owners", before: func(p *broken, _ *pruner.Batch) {
			for _, o := range p.pop.fix.Owners {
				p.pop.Table.SetOwner(ownerKey(o), o.State)
			}
		}},
		{check: "a row reopened between batches stays", name: "remembers the rows", before: func(p *broken, _ *pruner.Batch) {
			for _, r := range p.pop.fix.Rows {
				_ = p.pop.SetState(context.Background(), r.ID, r.State)
			}
		}},

		{check: "the cutoff holds to the microsecond", name: "infinity is old", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			p.also(res, func(r Row) bool { return r.Age == Infinity })
		})},
		{check: "a zero cutoff finds nothing", name: "zero means now", before: func(_ *broken, b *pruner.Batch) {
			if b.Cutoff.IsZero() {
				b.Cutoff = policy.CutoffAt(Now)
			}
		}},
		{check: "a zero cutoff finds nothing", name: "zero does not end", after: result(func(_ *broken, b pruner.Batch, res *pruner.Result) { res.End = res.End && !b.Cutoff.IsZero() })},
		{check: "a limit out of range is refused", name: "zero means one", before: func(_ *broken, b *pruner.Batch) {
			if b.Limit == 0 {
				b.Limit = 1
			}
		}},
		{check: "a limit out of range is refused", name: "negative means all", before: func(_ *broken, b *pruner.Batch) {
			if b.Limit < 0 {
				b.Limit = pruner.MaxLimit
			}
		}},
		{check: "a limit out of range is refused", name: "over the largest means the largest", before: func(_ *broken, b *pruner.Batch) { b.Limit = min(b.Limit, pruner.MaxLimit) }},
		{check: "a limit out of range is refused", name: "refuses after the fact", after: func(p *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
			if errors.Is(*err, pruner.ErrLimit) {
				p.pop.Table.Delete(1)
			}
		}},
		{check: "a limit out of range is refused", name: "nothing instead of an error", after: func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
			if errors.Is(*err, pruner.ErrLimit) {
				*err = nil
			}
		}},
		{check: "a limit out of range is refused", name: "refuses the largest", before: func(_ *broken, b *pruner.Batch) {
			if b.Limit == pruner.MaxLimit {
				b.Limit++
			}
		}},
		{check: "the limit is never exceeded", name: "one more", before: func(_ *broken, b *pruner.Batch) { b.Limit++ }},
		{check: "the limit is never exceeded", name: "one more, not counted", before: func(_ *broken, b *pruner.Batch) { b.Limit++ },
			after: result(func(_ *broken, b pruner.Batch, res *pruner.Result) {
				res.Examined, res.Removed = min(res.Examined, b.Limit), min(res.Removed, b.Limit)
			})},
		{check: "the limit is never exceeded", name: "one more than the limit of one", before: func(_ *broken, b *pruner.Batch) {
			if b.Limit == 1 {
				b.Limit = 2
			}
		}},
		{check: "the limit is never exceeded", name: "counts more than went", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Removed, res.Held = res.Removed-1, 1 })},
		{check: "undated rows stay", name: "no lower bound", sweep: instant(time.Date(-300000, 1, 1, 0, 0, 0, 0, time.UTC))},
		{check: "undated rows stay", name: "the epoch is an age", sweep: instant(time.Unix(0, 0))},
		{check: "undated rows stay", name: "the first instant is none", sweep: func(s *policy.Sweep) { s.Since = s.WithDefaults().Since.Add(time.Microsecond) }},
		{check: "undated rows stay", name: "null is old", after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			p.also(res, func(r Row) bool { return r.Age == NoAge })
		})},
		{check: "only what only matches goes", name: "no only", sweep: func(s *policy.Sweep) { s.Only = nil }},
		{check: "only what only matches goes", name: "the first value alone", sweep: only(func(m *policy.Match) { m.Values = m.Values[:1] })},
		{check: "only what only matches goes", name: "null is never a value", sweep: only(func(m *policy.Match) {
			m.Values = slices.DeleteFunc(slices.Clone(m.Values), policy.Value.IsNull)
		})},
		{check: "only what only matches goes", name: "not keeps null", sweep: only(func(m *policy.Match) {
			if m.Not {
				m.Values = append(slices.Clone(m.Values), policy.Null)
			}
		})},
		{check: "only what only matches goes", name: "not means is", sweep: only(func(m *policy.Match) { m.Not = false })},
		{check: "only what only matches goes", name: "the first match alone", sweep: func(s *policy.Sweep) {
			if len(s.Only) > 1 {
				s.Only = s.Only[:1]
			}
		}},
		{check: "only what only matches goes", name: "does not count what is outside", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Outside = 0 })},
		{check: "only what only matches goes", name: "outside counts as held", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
			res.Held, res.Outside = res.Held+res.Outside, 0
		})},

		{check: "equal ages at the edge of a batch", name: "skips the rest of an age", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { skipTies(res) })},
		{check: "more equal ages than many limits", name: "skips the rest of an age", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { skipTies(res) })},
		{check: "more equal ages than many limits", name: "takes a whole age at once", before: func(_ *broken, b *pruner.Batch) {
			if b.Limit == 5 {
				b.Limit = 57
			}
		}},
		{check: "held rows among equal ages", name: "leaves an age in which rows stay", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
			if res.Held > 0 {
				skipTies(res)
			}
		})},
		{check: "held rows among equal ages", name: "stays at an age in which rows stay", before: func(p *broken, b *pruner.Batch) {
			if fields := strings.Fields(b.After.String()); len(fields) == 3 && p.calls%2 == 0 {
				b.After = pruner.NewCursor(fields[0] + " " + fields[1] + " 0")
			}
		}},
		{check: "states keep their own windows", name: "the shortest for all", sweep: windows(func(policy.Window) policy.Window { return policy.MustWindow(30 * day) })},
		{check: "states keep their own windows", name: "a longer window by a microsecond less", arm: func(a *policy.Arm) {}, before: func(p *broken, b *pruner.Batch) {
			if len(p.arm.Equal) > 0 && p.arm.Window == policy.MustWindow(40*day) {
				b.Cutoff = policy.CutoffAt(b.Cutoff.Time().Add(time.Microsecond))
			}
		}},
		{check: "states keep their own windows", name: "what is not past its own window is held", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
			res.Held += res.Examined - accounted(*res)
		})},
		{check: "states that are kept for ever stay", name: "never means the shortest", sweep: windows(func(w policy.Window) policy.Window {
			if w.IsNever() {
				return policy.MustWindow(30 * day)
			}
			return w
		}), before: func(p *broken, b *pruner.Batch) {
			if b.Cutoff.IsZero() {
				b.Cutoff = p.arm.Window.Cutoff(Now)
			}
		}},

		{check: "stepping over removes nothing", name: "removes", before: func(_ *broken, b *pruner.Batch) { b.Mode = pruner.Remove }},
		{check: "stepping over removes nothing", name: "counts stuck as locked", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Stuck, res.Locked = res.Locked, res.Stuck })},
		{check: "stepping over removes nothing", name: "counts what is held", after: result(func(_ *broken, b pruner.Batch, res *pruner.Result) {
			if b.Mode == pruner.StepStuck {
				res.Stuck, res.Held = res.Stuck+res.Held, 0
			}
		})},
		{check: "skipping locked rows removes what nobody holds", name: "does not skip", before: func(_ *broken, b *pruner.Batch) { b.Mode = pruner.Remove }},
		{check: "skipping locked rows removes what nobody holds", name: "takes what is locked", before: func(p *broken, _ *pruner.Batch) { p.pop.Table.Unlock() }},
		{check: "skipping locked rows removes what nobody holds", name: "counts locked as held", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held, res.Locked = res.Held+res.Locked, 0 })},
		{check: "skipping locked rows removes what nobody holds", name: "does not count what is locked", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Locked = 0 })},
		{check: "a locked row is an error until it is skipped", name: "always skips", before: func(_ *broken, b *pruner.Batch) { b.Mode = pruner.SkipLocked }},
		{check: "a locked row is an error until it is skipped", name: "cannot skip", after: lockError(func(e *pruner.LockTimeoutError) { e.CanSkip = false })},
		{check: "a locked row is an error until it is skipped", name: "takes a row for the table", after: lockError(func(e *pruner.LockTimeoutError) { e.Table = "public.entries" })},
		{check: "a locked row is an error until it is skipped", name: "does not roll back", after: func(p *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
			if *err != nil {
				p.pop.Table.Delete(10)
			}
		}},
		{check: "a locked row is an error until it is skipped", name: "counts what it rolled back", after: func(_ *broken, _ pruner.Batch, res *pruner.Result, err *error) {
			if *err != nil {
				res.Examined, res.Removed = 4, 4
			}
		}},
		{check: "a locked owner keeps its rows", name: "does not lock the owner", before: func(p *broken, _ *pruner.Batch) { p.pop.Table.Unlock() }},
		{check: "a locked owner keeps its rows", name: "counts locked as held", after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held, res.Locked = res.Held+res.Locked, 0 })},
		{check: "a locked table is named", name: "no name", after: lockError(func(e *pruner.LockTimeoutError) { e.Table = "" })},
		{check: "a locked table is named", name: "another error", after: func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
			if *err != nil {
				*err = errors.New("canceling statement due to lock timeout")
			}
		}},
		{check: "a refused row is named and rolls the batch back", name: "no constraint", after: refusedError(func(e *pruner.RefusedError) { e.Block.Constraint = "" })},
		{check: "a refused row is named and rolls the batch back", name: "no table", after: refusedError(func(e *pruner.RefusedError) { e.Block.Table = "" })},
		{check: "a refused row is named and rolls the batch back", name: "another error", after: func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
			if *err != nil {
				*err = errors.New("violates foreign key constraint")
			}
		}},
		{check: "a refused row is named and rolls the batch back", name: "does not roll back", after: func(p *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
			if *err != nil {
				p.pop.Table.Delete(10)
			}
		}},
		{check: "a refused row is named and rolls the batch back", name: "steps over it in silence", after: func(p *broken, b pruner.Batch, res *pruner.Result, err *error) {
			if *err != nil {
				b.Mode = pruner.StepStuck
				*res, *err = p.Pruner.Prune(context.Background(), b)
			}
		}},

		{check: "the survey counts undated rows", name: "counts none", undated: func(*broken, *int, int) *int { return new(int) }},
		{check: "the survey counts undated rows", name: "does not count", undated: func(*broken, *int, int) *int { return nil }},
		{check: "the survey counts undated rows", name: "counts live rows", undated: func(p *broken, _ *int, max int) *int {
			n, _ := memory.New(p.pop.Table, sweepOf(noGuard), p.arm).Undated(context.Background(), max)
			return n
		}},
		{check: "the survey counts undated rows", name: "counts null alone", undated: func(p *broken, n *int, _ int) *int {
			m := len(p.there(func(r Row) bool { return r.Age == NoAge }))
			return &m
		}},
		{check: "the survey counts undated rows", name: "is not bounded", undated: func(p *broken, _ *int, _ int) *int {
			n, _ := p.Pruner.Undated(context.Background(), math.MaxInt)
			return n
		}},
		{check: "the survey says why rows are held", name: "says nothing", heldBy: func(*broken, []pruner.HeldBy, policy.Cutoff) []pruner.HeldBy { return nil }},
		{check: "the survey says why rows are held", name: "counts young rows", heldBy: func(p *broken, _ []pruner.HeldBy, _ policy.Cutoff) []pruner.HeldBy {
			hs, _ := p.Pruner.HeldBy(context.Background(), policy.CutoffAt(Now), 1000)
			return hs
		}},
		{check: "the survey says why rows are held", name: "does not count owners", heldBy: held(func(h *pruner.HeldBy) { h.Owners = nil })},
		{check: "the survey says why rows are held", name: "takes an orphan for ownerless", heldBy: held(func(h *pruner.HeldBy) {
			if h.Reason == "orphan" {
				h.Reason = "ownerless"
			}
		})},
		{check: "the survey says why rows are held", name: "takes an unknown state for a live one", heldBy: held(func(h *pruner.HeldBy) {
			if h.Reason == "unknown_state" {
				h.Reason = "state"
			}
		})},
		{check: "the survey says why rows are held", name: "the youngest age", heldBy: held(func(h *pruner.HeldBy) { h.Oldest = old(10).Instant() })},
	}
	for name, by := range map[string]time.Duration{"takes the row at the cutoff": time.Microsecond, "rounds up": time.Millisecond, "takes what is inside": time.Second,
		"leaves the last microsecond": -time.Microsecond} {
		ds = append(ds, defect{check: "the cutoff holds to the microsecond", name: name, before: func(_ *broken, b *pruner.Batch) {
			b.Cutoff = policy.CutoffAt(b.Cutoff.Time().Add(by))
		}})
	}
	// Each state that protects is declared terminal in turn. Null cannot be: it becomes a terminal state.
	for _, v := range protecting() {
		ds = append(ds,
			defect{check: "the owner's state guards", name: fmt.Sprintf("%q lets go", v), sweep: func(s *policy.Sweep) {
				if g := s.Guard.Owner; g != nil {
					c := *g
					c.Terminal = append(slices.Clone(c.Terminal), v)
					s.Guard.Owner = &c
				}
			}, before: func(p *broken, _ *pruner.Batch) {
				for _, o := range p.pop.fix.Owners {
					if o.State.IsNull() && v.IsNull() {
						p.pop.Table.SetOwner(ownerKey(o), completed)
					}
				}
			}},
			defect{check: "the row's own state guards", name: fmt.Sprintf("%q lets go", v), sweep: func(s *policy.Sweep) {
				if g := s.Guard.State; g != nil {
					c := *g
					c.Terminal = append(slices.Clone(c.Terminal), v)
					s.Guard.State = &c
				}
			}, before: func(p *broken, _ *pruner.Batch) {
				for _, r := range p.pop.fix.Rows {
					if r.State.IsNull() && v.IsNull() {
						_ = p.pop.SetState(context.Background(), r.ID, completed)
					}
				}
			}})
	}
	return slices.Concat(ds, ownDefects(), expiresDefects(), owedDefects(), childDefects())
}

func only(change func(*policy.Match)) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		s.Only = slices.Clone(s.Only)
		for i := range s.Only {
			change(&s.Only[i])
		}
	}
}

func windows(change func(policy.Window) policy.Window) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		s.Window = change(s.Window)
		s.ByState = slices.Clone(s.ByState)
		for i := range s.ByState {
			s.ByState[i].Window = change(s.ByState[i].Window)
		}
	}
}

func held(change func(*pruner.HeldBy)) func(*broken, []pruner.HeldBy, policy.Cutoff) []pruner.HeldBy {
	return func(_ *broken, hs []pruner.HeldBy, _ policy.Cutoff) []pruner.HeldBy {
		for i := range hs {
			change(&hs[i])
		}
		return hs
	}
}

func lockError(change func(*pruner.LockTimeoutError)) func(*broken, pruner.Batch, *pruner.Result, *error) {
	return func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
		var e *pruner.LockTimeoutError
		if errors.As(*err, &e) {
			change(e)
		}
	}
}

func refusedError(change func(*pruner.RefusedError)) func(*broken, pruner.Batch, *pruner.Result, *error) {
	return func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) {
		var e *pruner.RefusedError
		if errors.As(*err, &e) {
			change(e)
		}
	}
}

// byNumber is a pruner that goes by the rows' numbers, which are the order of insertion too. It knows no guard.
func byNumber(p *broken, b pruner.Batch) (res pruner.Result, err error) {
	rows := p.there(func(r Row) bool { return r.Age.Instant() != nil && b.Cutoff.Past(*r.Age.Instant()) })
	for _, r := range rows[:min(b.Limit, len(rows))] {
		p.pop.Table.Delete(r.ID)
	}
	n := min(b.Limit, len(rows))
	return pruner.Result{Examined: n, Removed: n, End: n == len(rows), Next: pruner.NewCursor("on")}, nil
}

// TestSabotage proves the suite: each check reports the defects that it is there for, and there is no check without one.
func TestSabotage(t *testing.T) {
	checks := map[string]Check{}
	for _, c := range Checks() {
		checks[c.Name] = c
	}
	proved := map[string]bool{}
	for _, d := range defects() {
		c, ok := checks[d.check]
		if !ok {
			t.Fatalf("no check is named %q", d.check)
		}
		proved[d.check] = true
		t.Run(d.check+"/"+d.name, func(t *testing.T) {
			err := c.Run(t.Context(), sabotage(d))
			if err == nil {
				t.Fatalf("the check %q passes", d.check)
			}
			t.Log(err)
		})
	}
	for name := range checks {
		if !proved[name] {
			t.Errorf("no defect proves the check %q", name)
		}
	}
}

// TestSoundWithoutDefect runs the harness of the sabotage without one: what it reports is the defect's work.
func TestSoundWithoutDefect(t *testing.T) { Run(t, sabotage(defect{})) }
