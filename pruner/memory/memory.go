package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Pruner removes the due rows of one arm from a Table.
type Pruner struct {
	table *Table
	sweep policy.Sweep
	arm   policy.Arm
}

var (
	_ pruner.Pruner   = (*Pruner)(nil)
	_ pruner.Surveyor = (*Pruner)(nil)
)

// New returns the Pruner of one arm of the sweep.
func New(t *Table, s policy.Sweep, a policy.Arm) *Pruner {
	return &Pruner{table: t, sweep: s.WithDefaults(), arm: a}
}

var errLockTimeout = errors.New("canceling statement due to lock timeout")

// Prune is one batch. See [pruner.Pruner].
func (p *Pruner) Prune(ctx context.Context, b pruner.Batch) (pruner.Result, error) {
	if b.Limit < 1 || b.Limit > pruner.MaxLimit {
		return pruner.Result{}, pruner.ErrLimit
	}
	if b.Cutoff.IsZero() {
		return pruner.Result{End: true}, nil
	}
	if err := ctx.Err(); err != nil {
		return pruner.Result{}, err
	}
	seen, last, err := p.examine(b)
	if err != nil {
		return pruner.Result{}, err
	}
	if p.table.OnExamined != nil {
		ids := make([]int64, len(seen))
		for i := range seen {
			ids[i] = seen[i].ID
		}
		p.table.OnExamined(ids)
	}
	res, err := p.settle(b, seen)
	if err != nil {
		return pruner.Result{}, err
	}
	switch n := res.Examined; {
	case n < len(seen):
		res.Next = p.cursorBefore(seen[n])
	default:
		res.End, res.Next = last, b.After
		if n > 0 {
			res.Next = p.cursorAt(seen[n-1])
		}
	}
	return res, nil
}

// examine takes the first rows of the arm's range after the cursor, and says whether they are the last.
func (p *Pruner) examine(b pruner.Batch) ([]row, bool, error) {
	after, err := readCursor(b.After)
	if err != nil {
		return nil, false, err
	}
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	if err := p.table.tableLocked(); err != nil {
		return nil, false, err
	}
	var seen []row
	for _, r := range p.table.rows {
		if p.inRange(r) && b.Cutoff.Past(*p.at(r)) && after.before(p.placeOf(r)) {
			seen = append(seen, *r)
		}
	}
	slices.SortFunc(seen, p.inOrder)
	if len(seen) > b.Limit {
		return seen[:b.Limit], false, nil
	}
	return seen, true, nil
}

// inRange reports whether the arm's range can hold the row: its equalities are met and its age is usable.
func (p *Pruner) inRange(r *row) bool {
	return p.arm.In(r.Columns) && p.at(r) != nil && !r.Age.Before(p.sweep.Since)
}

// mine reports whether the row is the arm's to decide, and not one that shares its range.
func (p *Pruner) mine(r *row) bool {
	return p.arm.In(r.Columns) && !slices.ContainsFunc(p.arm.Part, func(m policy.Match) bool { return !m.Matches(r.Columns[m.Column]) })
}

// settle removes what is due among the rows seen, all or nothing, and counts the rest. It stops before the first row that
// has no room in the batch; Examined says how many there are before it.
func (p *Pruner) settle(b pruner.Batch, seen []row) (pruner.Result, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	var res pruner.Result
	var due []int64
	var children []child
	for _, r := range seen {
		if !p.mine(&r) {
			res.Examined++
			continue
		}
		verdict := p.decide(b.Cutoff, r).Verdict
		now, there := p.table.rows[r.ID]
		owner := p.table.owners[p.key(r)]
		byOwner := p.arm.Owner != nil && !p.arm.Owner.Final
		switch {
		case verdict == policy.Outside:
			res.Outside++
		case verdict == policy.Unusable:
			res.Unusable++
		case verdict == policy.Held:
			res.Held++
		case verdict == policy.Orphan:
			res.Orphan++
		case verdict != policy.Due: // a window that is longer than the arm's
		case b.Mode == pruner.StepStuck:
			res.Stuck++
		case b.Mode == pruner.StepLocked:
			res.Locked++
		case byOwner && owner.locked:
			res.Locked++
		case !there || now.version != r.version:
			res.Moved++
		case now.lock == rowLock && (b.Mode == pruner.SkipLocked || p.arm.Parents()): // parents are never waited for
			res.Locked++
		case now.lock != unlocked:
			return pruner.Result{}, p.lockTimeout()
		default:
			part, whole := p.room(b, res, p.table.family(now, p.arm.Children))
			if err := p.refusal(part); err != nil {
				return pruner.Result{}, err
			}
			switch {
			case !whole:
				p.remove(due, append(children, part...))
				res.Children += len(part)
				return res, nil
			case now.refuses != pruner.Block{}:
				return pruner.Result{}, refused(now.refuses)
			case now.vetoes != pruner.Block{}:
				res.Stuck++
				res.Blocked = block(res.Blocked, now.vetoes)
			default:
				due, children = append(due, r.ID), append(children, part...)
				res.Removed++
				res.Children += len(part)
			}
		}
		res.Examined++
		if p.raised(&r) && verdict != policy.Outside && verdict != policy.Young {
			res.Raised++
		}
	}
	p.remove(due, children)
	return res, nil
}

// room says what of the row's family has room in the batch, and whether that is all of it, so that the row goes too. A
// row goes whole where it fits in what is left of the batch, or, as the first to go, in the limit of the policy. One that
// does not has to be the first of its batch, and loses as much of its family as a batch may remove.
func (p *Pruner) room(b pruner.Batch, res pruner.Result, family []child) (part []child, whole bool) {
	size := 1 + len(family)
	switch {
	case size <= b.Limit-res.Removed-res.Children:
		return family, true
	case res.Removed > 0:
		return nil, false
	case size <= p.sweep.Batch.Limit:
		return family, true
	case res.Examined > 0:
		return nil, false
	}
	return family[:min(b.Limit, len(family))], false
}

func (p *Pruner) remove(due []int64, children []child) {
	p.table.deleteChildren(children)
	for _, id := range due {
		delete(p.table.rows, id)
	}
}

// refusal is the error of the database at the first child that it does not delete.
func (p *Pruner) refusal(cs []child) error {
	for _, c := range cs {
		switch {
		case c.lock != unlocked:
			return p.lockTimeout()
		case c.refuses != pruner.Block{}:
			return refused(c.refuses)
		}
	}
	return nil
}

func (p *Pruner) lockTimeout() error {
	return &pruner.LockTimeoutError{CanSkip: !p.table.NoSkip, LockAfter: p.sweep.Timeouts.Lock, Err: errLockTimeout}
}

func refused(by pruner.Block) error {
	return &pruner.RefusedError{Code: "23503", Block: by, Err: errors.New("violates foreign key constraint")}
}

// decide asks the policy about a row. The now that it asks for is the one that the batch's cutoff was computed from.
func (p *Pruner) decide(c policy.Cutoff, r row) policy.Decision {
	pr := policy.Row{Age: r.Age, Columns: r.Columns, Own: p.own(&r), Owed: len(p.owed(&r)) > 0}
	if p.arm.Owner != nil {
		o, ok := p.table.owners[p.key(r)]
		pr.Owner = policy.OwnerState{Exists: ok, State: o.state}
	}
	return p.sweep.Decide(c.Time().Add(p.arm.Window.Duration()), pr)
}

// owed lists the rows of another table that protect the row.
func (p *Pruner) owed(r *row) []*row {
	g := p.arm.Owed
	if g == nil {
		return nil
	}
	return slices.DeleteFunc(p.table.referring(g.Table, g.Key, r), func(o *row) bool { return g.Lets(o.Columns[g.Column]) })
}

func (p *Pruner) key(r row) Key {
	if p.arm.Owner == nil {
		return ""
	}
	var vs []policy.Value
	for _, k := range p.arm.Owner.Key {
		vs = append(vs, r.Columns[k.Target])
	}
	return KeyOf(vs...)
}

func (t *Table) tableLocked() error {
	if t.tableLock == "" {
		return nil
	}
	return &pruner.LockTimeoutError{Table: t.tableLock, LockAfter: policy.DefaultLockTimeout, Err: errLockTimeout}
}

func block(bs []pruner.Block, b pruner.Block) []pruner.Block {
	for i := range bs {
		if bs[i].Constraint == b.Constraint && bs[i].Table == b.Table {
			bs[i].Rows++
			return bs
		}
	}
	b.Rows = 1
	return append(bs, b)
}
