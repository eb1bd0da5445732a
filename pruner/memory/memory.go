package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	seen, end, err := p.examine(b)
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
	res.End, res.Next = end, b.After
	if len(seen) > 0 {
		res.Next = cursorAt(seen[len(seen)-1])
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
		if p.inRange(r) && b.Cutoff.Past(*r.Age) && after.before(*r) {
			seen = append(seen, *r)
		}
	}
	slices.SortFunc(seen, byAge)
	if len(seen) > b.Limit {
		return seen[:b.Limit], false, nil
	}
	return seen, true, nil
}

// inRange reports whether the arm's range can hold the row: its equalities are met and its age is usable.
func (p *Pruner) inRange(r *row) bool {
	return p.equal(r) && r.Age != nil && !r.Age.Before(p.sweep.Since)
}

func (p *Pruner) equal(r *row) bool {
	return p.arm.In(r.Columns)
}

// settle removes what is due among the rows seen, all or nothing, and counts the rest.
func (p *Pruner) settle(b pruner.Batch, seen []row) (pruner.Result, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	res := pruner.Result{Examined: len(seen)}
	var due []int64
	for _, r := range seen {
		switch p.decide(b.Cutoff, r).Verdict {
		case policy.Outside:
			res.Outside++
			continue
		case policy.Held:
			res.Held++
			continue
		case policy.Orphan:
			res.Orphan++
			continue
		case policy.Due:
		default: // a state whose window is longer than the arm's
			continue
		}
		now, there := p.table.rows[r.ID]
		owner := p.table.owners[p.key(r)]
		byOwner := p.arm.Owner != nil && !p.arm.Owner.Final
		switch {
		case b.Mode == pruner.StepStuck:
			res.Stuck++
		case b.Mode == pruner.StepLocked:
			res.Locked++
		case byOwner && owner.locked:
			res.Locked++
		case !there || now.version != r.version:
			res.Moved++
		case now.lock == rowLock && b.Mode == pruner.SkipLocked:
			res.Locked++
		case now.lock != unlocked:
			return pruner.Result{}, &pruner.LockTimeoutError{CanSkip: !p.table.NoSkip, LockAfter: p.sweep.Timeouts.Lock, Err: errLockTimeout}
		case now.refuses != pruner.Block{}:
			return pruner.Result{}, &pruner.RefusedError{Code: "23503", Block: now.refuses, Err: errors.New("violates foreign key constraint")}
		case now.vetoes != pruner.Block{}:
			res.Stuck++
			res.Blocked = block(res.Blocked, now.vetoes)
		default:
			due = append(due, r.ID)
		}
	}
	for _, id := range due {
		delete(p.table.rows, id)
	}
	res.Removed = len(due)
	return res, nil
}

// decide asks the policy about a row. The now that it asks for is the one that the batch's cutoff was computed from.
func (p *Pruner) decide(c policy.Cutoff, r row) policy.Decision {
	pr := policy.Row{Age: r.Age, Columns: r.Columns}
	if p.arm.Owner != nil {
		o, ok := p.table.owners[p.key(r)]
		pr.Owner = policy.OwnerState{Exists: ok, State: o.state}
	}
	return p.sweep.Decide(c.Time().Add(p.arm.Window.Duration()), pr)
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

// place is the cursor: the last row examined, in the order of age, then ID.
type place struct {
	none bool
	row
}

func byAge(a, b row) int { return cmp.Or(a.Age.Compare(*b.Age), cmp.Compare(a.ID, b.ID)) }

func (p place) before(r row) bool { return p.none || byAge(p.row, r) < 0 }

func cursorAt(r row) pruner.Cursor {
	return pruner.NewCursor(fmt.Sprintf("%d %d %d", r.Age.Unix(), r.Age.Nanosecond(), r.ID))
}

func readCursor(c pruner.Cursor) (place, error) {
	if c.IsZero() {
		return place{none: true}, nil
	}
	var r row
	var sec, nsec int64
	if _, err := fmt.Sscanf(c.String(), "%d %d %d", &sec, &nsec, &r.ID); err != nil {
		return place{}, fmt.Errorf("read cursor %q: %w", c, err)
	}
	at := time.Unix(sec, nsec)
	r.Age = &at
	return place{row: r}, nil
}

// Undated counts the rows of the arm without a usable age. See [pruner.Surveyor].
func (p *Pruner) Undated(ctx context.Context, max int) (*int, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	n := 0
	for _, r := range p.table.rows {
		// Without an age the answer does not depend on the time.
		if p.equal(r) && p.decide(policy.CutoffAt(p.sweep.Since), *r).Verdict == policy.Undated {
			n++
		}
	}
	if n > max {
		return nil, ctx.Err()
	}
	return &n, ctx.Err()
}

// HeldBy says why rows past the cutoff are kept. See [pruner.Surveyor].
func (p *Pruner) HeldBy(ctx context.Context, c policy.Cutoff, max int) ([]pruner.HeldBy, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	type why struct{ reason, value string }
	type group struct {
		pruner.HeldBy
		owners map[Key]bool
	}
	var past []row
	for _, r := range p.table.rows {
		if p.inRange(r) && c.Past(*r.Age) {
			past = append(past, *r)
		}
	}
	slices.SortFunc(past, byAge)
	groups := map[why]*group{}
	for _, r := range past[:min(max, len(past))] {
		v := p.decide(c, r).Verdict
		if v != policy.Held && v != policy.Orphan {
			continue
		}
		var w why
		w.reason, w.value = p.why(r)
		g := groups[w]
		if g == nil {
			g = &group{HeldBy: pruner.HeldBy{Reason: w.reason, Value: w.value, Oldest: r.Age}, owners: map[Key]bool{}}
			groups[w] = g
		}
		g.Rows++
		if r.Age.Before(*g.Oldest) {
			g.Oldest = r.Age
		}
		if w.reason == "owner" {
			g.owners[p.key(r)] = true
			n := len(g.owners)
			g.Owners = &n
		}
	}
	var out []pruner.HeldBy
	for g := range maps.Values(groups) {
		out = append(out, g.HeldBy)
	}
	slices.SortFunc(out, func(a, b pruner.HeldBy) int {
		return cmp.Or(a.Oldest.Compare(*b.Oldest), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Value, b.Value))
	})
	return out, ctx.Err()
}

// why is the reason for which the row is kept: the first part of the guard that does not let it go.
func (p *Pruner) why(r row) (reason, value string) {
	if g := p.sweep.Guard.State; g != nil && !g.Lets(r.Columns[g.Column]) {
		return unknown("state", r.Columns[g.Column], g.Live)
	}
	k := p.key(r)
	if k == "" {
		return "ownerless", ""
	}
	o, ok := p.table.owners[k]
	if !ok {
		return "orphan", ""
	}
	return unknown("owner", o.state, p.arm.Owner.Live)
}

// unknown turns the reason into unknown_state where the state is null or in neither of two complete lists.
func unknown(reason string, v policy.Value, live []policy.Value) (string, string) {
	switch {
	case v.IsNull():
		return "unknown_state", ""
	case len(live) > 0 && !slices.Contains(live, v):
		return "unknown_state", v.String()
	}
	return reason, v.String()
}
