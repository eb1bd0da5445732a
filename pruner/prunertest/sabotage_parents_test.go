package prunertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

// unguarded is a pruner that forgets parts of the sweep in some of its arms.
func unguarded(in func(policy.Arm) bool, forget func(*policy.Sweep)) func(*broken, pruner.Batch) (pruner.Result, error) {
	return func(p *broken, b pruner.Batch) (pruner.Result, error) {
		s := p.pop.sweep
		if in(p.arm) {
			forget(&s)
		}
		return memory.New(p.pop.Table, s, p.arm).Prune(context.Background(), b)
	}
}

func hasOwn(a policy.Arm) bool { return a.Own != nil }

// rewritten changes the rows of the population before each batch.
func rewritten(change func(r Row, columns map[string]policy.Value)) func(*broken, *pruner.Batch) {
	return func(p *broken, _ *pruner.Batch) {
		for _, r := range p.pop.fix.Rows {
			p.pop.Update(r.ID, func(m *memory.Row) { change(r, m.Columns) })
		}
	}
}

// repartitioned changes the states of the parts before each batch.
func repartitioned(change func(r Row, p Part) policy.Value) func(*broken, *pruner.Batch) {
	return func(p *broken, _ *pruner.Batch) {
		for _, r := range p.pop.fix.Rows {
			for _, part := range r.Parts {
				_ = p.pop.SetPartState(context.Background(), part.ID, change(r, part))
			}
		}
	}
}

// remembered takes the parts for what they were at the beginning.
func remembered(p *broken, b *pruner.Batch) {
	repartitioned(func(_ Row, part Part) policy.Value { return part.State })(p, b)
	p.pop.Table.DeleteIn(partName, 1)
}

// takesParts removes the first part of a row.
func takesParts(id int64) func(*broken) {
	return func(p *broken) {
		for _, r := range p.pop.fix.Rows {
			if r.ID == id && len(r.Parts) > 0 {
				p.pop.Table.DeleteIn(noteName, r.Parts[0].Notes...)
				p.pop.Table.DeleteIn(partName, r.Parts[0].ID)
			}
		}
	}
}

func owedBy(change func(*policy.OwedGuard)) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		if s.Guard.Owed != nil {
			g := *s.Guard.Owed
			change(&g)
			s.Guard.Owed = &g
		}
	}
}

func ownBy(change func(*policy.RowWindow)) func(*policy.Sweep) {
	return func(s *policy.Sweep) {
		o := *s.Own
		change(&o)
		s.Own = &o
	}
}

func notOwed(s *policy.Sweep) { s.Guard.Owed = nil }

func chunk(res *pruner.Result) bool { return res.Removed == 0 && res.Children > 0 }

func ownDefects() []defect {
	var ds []defect
	add := func(check, name string, d defect) {
		d.check, d.name = check, name
		ds = append(ds, d)
	}
	check := "a row goes by its own window"
	add(check, "no own windows", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Own = nil })})
	add(check, "takes the row at its end", defect{before: func(p *broken, b *pruner.Batch) {
		if hasOwn(p.arm) {
			b.Cutoff = policy.CutoffAt(b.Cutoff.Time().Add(time.Microsecond))
		}
	}})
	add(check, "an own window only shortens", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if hasOwn(p.arm) && res.End {
			p.also(res, func(r Row) bool { return !r.Own.IsNull() && r.Age.Instant().Before(Now.Add(-30*day)) })
		}
	})})
	add(check, "an own window only lengthens", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Floor = 30 * day })})
	add(check, "takes the rows of both parts", defect{arm: func(a *policy.Arm) { a.Part = nil }})
	add(check, "counts the rows of the other part", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held += res.Examined - accounted(*res) })})
	add(check, "leaves what is found by its end", defect{before: func(p *broken, b *pruner.Batch) {
		if p.arm.Expiry {
			b.Cutoff = policy.Cutoff{}
		}
	}})

	check = "an own window below the floor is raised to it"
	add(check, "no floor", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Floor = time.Second })})
	add(check, "always the documented floor", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Floor = 0 })})
	add(check, "does not count what was raised", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Raised = 0 })})
	add(check, "counts each own window as raised", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if hasOwn(p.arm) {
			res.Raised = accounted(*res)
		}
	})})

	check = "an own window that is none keeps its row"
	add(check, "no window is the sweep's", defect{before: rewritten(func(r Row, cs map[string]policy.Value) {
		if slices.ContainsFunc(unusable, func(n int64) bool { return policy.Int(n) == r.Own }) {
			cs["own"] = policy.Null
		}
	})})
	for _, n := range unusable {
		add(check, fmt.Sprintf("%d is a window", n), defect{before: rewritten(func(r Row, cs map[string]policy.Value) {
			if r.Own == policy.Int(n) {
				cs["own"] = policy.Int(86400)
			}
		})})
	}
	add(check, "does not count it", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Unusable = 0 })})
	add(check, "counts it as held", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held, res.Unusable = res.Unusable, 0 })})

	check = "zero can mean for ever"
	add(check, "zero is no window", defect{sweep: ownBy(func(o *policy.RowWindow) { o.ZeroNever = false })})
	add(check, "zero is the floor", defect{before: rewritten(func(r Row, cs map[string]policy.Value) {
		if r.Own == policy.Int(0) {
			cs["own"] = policy.Int(1)
		}
	})})
	add(check, "below zero is for ever too", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Unusable = 0 })})

	for _, unit := range []time.Duration{time.Second, time.Minute, time.Hour, day} {
		add("own windows have units", "always "+unit.String(), defect{sweep: ownBy(func(o *policy.RowWindow) { o.Unit = unit })})
	}

	check = "own windows beside guards and children"
	add(check, "no state", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Guard.State = nil })})
	add(check, "no owner", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Guard.Owner = nil })})
	add(check, "no hold", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Guard.Hold = "" })})
	add(check, "no only", defect{prune: unguarded(hasOwn, func(s *policy.Sweep) { s.Only = nil })})
	add(check, "nothing is owed", defect{arm: func(a *policy.Arm) {
		if hasOwn(*a) {
			a.Owed = nil
		}
	}})
	add(check, "no children", defect{arm: func(a *policy.Arm) {
		if hasOwn(*a) {
			a.Children = nil
		}
	}})
	add(check, "windows by state come first", defect{prune: unguarded(func(a policy.Arm) bool { return hasOwn(a) }, func(s *policy.Sweep) {
		if len(s.ByState) > 0 {
			s.Own = nil
		}
	})})
	return ds
}

func owedDefects() []defect {
	var ds []defect
	add := func(check, name string, d defect) {
		d.check, d.name = check, name
		ds = append(ds, d)
	}
	check := "an owed row stays whole"
	add(check, "no guard", defect{sweep: notOwed})
	add(check, "one part that is terminal is enough", defect{before: repartitioned(func(r Row, p Part) policy.Value {
		if slices.ContainsFunc(r.Parts, func(o Part) bool { return isTerminal(o.State) }) {
			return completed
		}
		return p.State
	})})
	add(check, "the first part decides", defect{before: repartitioned(func(r Row, _ Part) policy.Value { return r.Parts[0].State })})
	add(check, "a row without parts is owed", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if n := min(res.Removed, 1); p.calls == 1 {
			res.Removed, res.Held = res.Removed-n, res.Held+n
		}
	})})
	for _, count := range []bool{false, true} {
		add(check, fmt.Sprintf("takes the parts that are terminal, counted: %t", count), defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
			for _, r := range p.there(owes) {
				for _, part := range r.Parts {
					if isTerminal(part.State) && res.Held > 0 {
						p.pop.Table.DeleteIn(noteName, part.Notes...)
						p.pop.Table.DeleteIn(partName, part.ID)
						if count {
							res.Children += 1 + len(part.Notes)
						}
					}
				}
			}
		})})
	}
	add(check, "does not count what is held", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held = 0 })})
	for _, v := range terminal {
		add(check, fmt.Sprintf("%q protects", v), defect{sweep: owedBy(func(g *policy.OwedGuard) {
			g.Terminal = slices.DeleteFunc(slices.Clone(g.Terminal), func(o policy.Value) bool { return o == v })
		})})
	}
	for _, v := range protecting() {
		add(check, fmt.Sprintf("%q lets go", v), defect{before: repartitioned(func(_ Row, p Part) policy.Value {
			if p.State == v {
				return completed
			}
			return p.State
		})})
	}

	check = "without a state every row of the other table protects"
	add(check, "none protects", defect{sweep: notOwed})
	add(check, "asks the state all the same", defect{sweep: owedBy(func(g *policy.OwedGuard) { g.Column, g.Terminal = "state", terminal })})
	add(check, "asks the parts for the pins", defect{sweep: owedBy(func(g *policy.OwedGuard) { g.Table = partName })})

	check = "what becomes owed between batches stays"
	add(check, "remembers the parts", defect{before: remembered})
	add(check, "sees no new parts", defect{before: func(p *broken, _ *pruner.Batch) { p.pop.Table.DeleteIn(partName, 1) }})

	check = "owed and the other guards must let go"
	add(check, "owed alone", defect{sweep: func(s *policy.Sweep) { s.Guard = policy.Guard{Owed: s.Guard.Owed} }})
	add(check, "all but owed", defect{sweep: notOwed})
	add(check, "no state", defect{sweep: func(s *policy.Sweep) { s.Guard.State = nil }, arm: func(a *policy.Arm) { a.State = nil }})
	add(check, "no owner", defect{sweep: func(s *policy.Sweep) { s.Guard.Owner = nil }})
	add(check, "no hold", defect{sweep: func(s *policy.Sweep) { s.Guard.Hold = "" }})
	add(check, "an owed row without an owner is an orphan", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if p.arm.Owner != nil && res.Held > 0 {
			res.Held, res.Orphan = res.Held-1, res.Orphan+1
		}
	})})

	check = "a hold protects"
	add(check, "it does not", defect{sweep: func(s *policy.Sweep) { s.Guard.Hold = "" }})
	for _, v := range []policy.Value{policy.Null, policy.Bool(false)} {
		add(check, fmt.Sprintf("%s holds too", v), defect{before: rewritten(func(r Row, cs map[string]policy.Value) {
			if r.Hold == v {
				cs["hold"] = policy.Bool(true)
			}
		})})
	}
	add(check, "is not counted", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held = 0 })})
	add(check, "without a hold all goes", defect{sweep: func(s *policy.Sweep) { s.Guard = policy.Guard{Hold: s.Guard.Hold} }, arm: func(a *policy.Arm) { a.State = nil }})

	check = "at once keeps what is owed, and the row of this instant"
	add(check, "takes the row of this instant", defect{before: func(_ *broken, b *pruner.Batch) { b.Cutoff = policy.CutoffAt(b.Cutoff.Time().Add(time.Microsecond)) }})
	add(check, "not below the floor", defect{before: func(_ *broken, b *pruner.Batch) { b.Cutoff = policy.CutoffAt(b.Cutoff.Time().Add(-time.Hour)) }})
	add(check, "takes everything", defect{prune: unguarded(func(policy.Arm) bool { return true }, func(s *policy.Sweep) { s.Guard = noGuard })})
	add(check, "never", defect{sweep: func(s *policy.Sweep) { s.Window = policy.Never }})

	check = "the survey says what is owed and what is on hold"
	add(check, "says nothing", defect{heldBy: func(*broken, []pruner.HeldBy, policy.Cutoff) []pruner.HeldBy { return nil }})
	add(check, "one state for all", defect{heldBy: held(func(h *pruner.HeldBy) {
		if h.Reason == "owed" && h.Value != "" {
			h.Value = "running"
		}
	})})
	add(check, "takes a hold for owed", defect{heldBy: held(func(h *pruner.HeldBy) {
		if h.Reason == "hold" {
			h.Reason = "owed"
		}
	})})
	add(check, "says the state where none is asked", defect{heldBy: held(func(h *pruner.HeldBy) {
		if h.Reason == "owed" && h.Value == "" {
			h.Value = "completed"
		}
	})})
	add(check, "counts parts", defect{heldBy: held(func(h *pruner.HeldBy) {
		if h.Reason == "owed" {
			h.Rows++
		}
	})})
	add(check, "the owner before the hold", defect{heldBy: held(func(h *pruner.HeldBy) {
		if h.Reason == "hold" && h.Oldest.Equal(*old(3).Instant()) {
			h.Reason, h.Value = "owner", "running"
		}
	})})

	check = "the survey tells rows with own windows apart"
	add(check, "holds the rows of both parts", defect{heldBy: func(p *broken, _ []pruner.HeldBy, c policy.Cutoff) []pruner.HeldBy {
		a := p.arm
		a.Part = nil
		hs, _ := memory.New(p.pop.Table, p.pop.sweep, a).HeldBy(context.Background(), c, 1000)
		return hs
	}})
	add(check, "counts the undated of both parts", defect{undated: func(p *broken, _ *int, max int) *int {
		a := p.arm
		a.Part = nil
		n, _ := memory.New(p.pop.Table, p.pop.sweep, a).Undated(context.Background(), max)
		return n
	}})
	add(check, "does not count", defect{undated: func(*broken, *int, int) *int { return nil }})
	add(check, "counts some by their end", defect{undated: func(p *broken, n *int, _ int) *int {
		if p.arm.Expiry {
			*n--
		}
		return n
	}})
	add(check, "asks no own window", defect{heldBy: func(p *broken, _ []pruner.HeldBy, c policy.Cutoff) []pruner.HeldBy {
		s := p.pop.sweep
		s.Own = nil
		hs, _ := memory.New(p.pop.Table, s, p.arm).HeldBy(context.Background(), c, 1000)
		return hs
	}})
	return ds
}

func childDefects() []defect {
	var ds []defect
	add := func(check, name string, d defect) {
		d.check, d.name = check, name
		ds = append(ds, d)
	}
	another := errors.New("canceling statement")
	failed := func(do func(p *broken, b pruner.Batch, res *pruner.Result, err *error)) func(*broken, pruner.Batch, *pruner.Result, *error) {
		return func(p *broken, b pruner.Batch, res *pruner.Result, err *error) {
			if *err != nil {
				do(p, b, res, err)
			}
		}
	}
	steps := func(m pruner.Mode) func(*broken, pruner.Batch, *pruner.Result, *error) {
		return failed(func(p *broken, b pruner.Batch, res *pruner.Result, err *error) {
			b.Mode = m
			*res, *err = p.Pruner.Prune(context.Background(), b)
		})
	}
	policyLimit := func(change func(int) int) func(*policy.Sweep) {
		return func(s *policy.Sweep) { s.Batch.Limit = change(s.WithDefaults().Batch.Limit) }
	}

	check := "children go with their row, and theirs with them"
	add(check, "children stay", defect{sweep: func(s *policy.Sweep) { s.Children = nil }})
	add(check, "their children stay", defect{sweep: func(s *policy.Sweep) {
		s.Children = slices.Clone(s.Children)
		s.Children[0].Children = nil
	}})
	add(check, "does not count them", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Children = 0 })})
	add(check, "counts them as rows", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
		res.Removed, res.Children = res.Removed+res.Children, 0
	})})
	add(check, "counts rows alone in the limit", defect{prune: func(p *broken, b pruner.Batch) (pruner.Result, error) {
		b.Limit *= 3
		return p.Pruner.Prune(context.Background(), b)
	}})
	add(check, "takes children of a young row", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if res.End {
			takesParts(100)(p)
		}
	})})

	check = "a row that fits in the policy's limit goes whole"
	add(check, "tears it apart", defect{sweep: policyLimit(func(int) int { return 1 })})
	add(check, "a child more", defect{sweep: policyLimit(func(n int) int { return n + 1 })})
	add(check, "a child less", defect{sweep: policyLimit(func(n int) int { return n - 1 })})

	check = "a row with more children than the policy's limit goes in chunks"
	add(check, "goes whole", defect{sweep: policyLimit(func(n int) int { return 100 * n })})
	add(check, "larger chunks", defect{after: result(func(p *broken, b pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			b.After = res.Next
			more, _ := p.Pruner.Prune(context.Background(), b)
			res.Children += more.Children
			res.Removed, res.Examined, res.Next = more.Removed, more.Examined, more.Next
		}
	})})
	add(check, "examines with each chunk", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			res.Examined, res.Held = 1, 1
		}
	})})
	add(check, "ends with a chunk", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.End = res.End || chunk(res) })})
	add(check, "goes on behind a row that is not empty", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			skipTies(res)
		}
	})})
	add(check, "counts no chunk", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			res.Children = 0
		}
	})})
	add(check, "empties a row that is owed", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			takesParts(3)(p)
		}
	})})
	add(check, "empties another row beside it", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) && res.Children > 1 {
			takesParts(1)(p)
			res.Children--
			_ = p.pop.InsertParts(context.Background(), 5, Part{ID: 4999, State: completed})
		}
	})})

	check = "an interrupted row goes on where it was"
	add(check, "it is left", defect{before: func(p *broken, b *pruner.Batch) {
		if p.calls == 1 && len(p.pop.IDsIn(partName)) < 33 {
			at := *old(4).Instant()
			b.After = pruner.NewCursor(fmt.Sprint(at.Unix(), " ", at.Nanosecond(), " ", 5))
		}
	}})
	add(check, "it is emptied in one batch", defect{prune: func(p *broken, b pruner.Batch) (pruner.Result, error) {
		res, err := p.Pruner.Prune(context.Background(), b)
		for n := 1; err == nil && chunk(&res) && n > 0; {
			var more pruner.Result
			b.After = res.Next
			more, err = p.Pruner.Prune(context.Background(), b)
			add := more.Children
			res.Children, res.Removed, res.Examined, n = res.Children+add, more.Removed, more.Examined, add
			res.Next = more.Next
			if more.Removed > 0 {
				break
			}
		}
		return res, err
	}})

	check = "a row that is reopened between its chunks keeps the rest"
	add(check, "does not ask again", defect{before: remembered})
	add(check, "sees no new parts", defect{before: func(p *broken, _ *pruner.Batch) { p.pop.Table.DeleteIn(partName, 1) }})
	add(check, "does not count it", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held = min(res.Held, 1) })})

	check = "two sweepers empty a row together"
	there := map[*broken]int{}
	add(check, "counts what the other removed", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		n := len(p.pop.IDsIn(partName))
		if chunk(res) && there[p] > n {
			res.Children = there[p] - n
		}
		there[p] = n
	})})
	add(check, "goes on behind a row that the other empties", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			skipTies(res)
		}
	})})

	check = "equal ages with children"
	add(check, "skips the rest of an age", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { skipTies(res) })})
	add(check, "skips the rest of an age after a chunk", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			skipTies(res)
		}
	})})

	check = "stepping over removes no children"
	add(check, "removes", defect{before: func(_ *broken, b *pruner.Batch) { b.Mode = pruner.Remove }})
	add(check, "removes a child", defect{after: result(func(p *broken, _ pruner.Batch, _ *pruner.Result) { takesParts(8)(p) })})
	add(check, "counts stuck as locked", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Stuck, res.Locked = res.Locked, res.Stuck })})
	add(check, "counts what is owed", defect{after: result(func(_ *broken, b pruner.Batch, res *pruner.Result) {
		if b.Mode == pruner.StepStuck {
			res.Stuck, res.Held = res.Stuck+res.Held, 0
		}
	})})

	check = "a locked row with children is counted"
	add(check, "waits for it", defect{after: func(_ *broken, b pruner.Batch, res *pruner.Result, err *error) {
		if b.Mode == pruner.Remove && res.Locked > 0 {
			*err = &pruner.LockTimeoutError{CanSkip: true}
		}
	}})
	add(check, "takes it", defect{before: func(p *broken, _ *pruner.Batch) { p.pop.Table.Unlock() }})
	add(check, "takes its children", defect{after: result(func(p *broken, _ pruner.Batch, res *pruner.Result) {
		if res.Locked > 0 {
			takesParts(5)(p)
		}
	})})
	add(check, "counts it as held", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Held, res.Locked = res.Held+res.Locked, 0 })})

	check = "a locked child is an error until it is stepped over"
	add(check, "takes it", defect{before: func(p *broken, _ *pruner.Batch) { p.pop.Table.Unlock() }})
	add(check, "steps over it in silence", defect{after: steps(pruner.StepLocked)})
	add(check, "another error", defect{after: failed(func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) { *err = another })})
	add(check, "takes the child for its table", defect{after: lockError(func(e *pruner.LockTimeoutError) { e.Table = "public.parts" })})
	add(check, "does not roll back", defect{after: failed(func(p *broken, _ pruner.Batch, _ *pruner.Result, _ *error) { takesParts(10)(p); takesParts(9)(p) })})
	add(check, "counts what it rolled back", defect{after: failed(func(_ *broken, _ pruner.Batch, res *pruner.Result, _ *error) { res.Children = 1 })})
	add(check, "steps over it as stuck", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Stuck, res.Locked = res.Locked, res.Stuck })})
	add(check, "takes its siblings when it steps over", defect{after: result(func(p *broken, b pruner.Batch, _ *pruner.Result) {
		if b.Mode == pruner.StepLocked {
			takesParts(7)(p)
		}
	})})

	check = "a refused row keeps its children"
	add(check, "steps over it in silence", defect{after: steps(pruner.StepStuck)})
	add(check, "another error", defect{after: failed(func(_ *broken, _ pruner.Batch, _ *pruner.Result, err *error) { *err = another })})
	add(check, "does not roll back its children", defect{after: failed(func(p *broken, _ pruner.Batch, _ *pruner.Result, _ *error) { takesParts(7)(p) })})
	add(check, "counts what it rolled back", defect{after: failed(func(_ *broken, _ pruner.Batch, res *pruner.Result, _ *error) { res.Children = 1 })})
	add(check, "empties it at a low limit", defect{sweep: policyLimit(func(int) int { return 1 })})
	add(check, "steps over it as locked", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) { res.Stuck, res.Locked = res.Locked, res.Stuck })})

	check = "any population with children"
	add(check, "nothing is owed beside only", defect{sweep: func(s *policy.Sweep) {
		if len(s.Only) > 0 {
			s.Guard.Owed = nil
		}
	}})
	add(check, "no hold beside own windows", defect{sweep: func(s *policy.Sweep) {
		if s.Own != nil {
			s.Guard.Hold = ""
		}
	}})
	add(check, "rows with many children stay", defect{after: result(func(_ *broken, _ pruner.Batch, res *pruner.Result) {
		if chunk(res) {
			skipTies(res)
		}
	})})
	return ds
}
