package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Undated counts the rows of the arm without a usable age. See [pruner.Surveyor].
func (p *Pruner) Undated(ctx context.Context, max int) (*int, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	n := 0
	for _, r := range p.table.rows {
		// Without an age the answer does not depend on the time.
		if p.mine(r) && p.decide(policy.CutoffAt(p.sweep.Since), *r).Verdict == policy.Undated {
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
		if p.inRange(r) && c.Past(*p.at(r)) {
			past = append(past, *r)
		}
	}
	slices.SortFunc(past, p.inOrder)
	groups := map[why]*group{}
	for _, r := range past[:min(max, len(past))] {
		if v := p.decide(c, r).Verdict; !p.mine(&r) || v != policy.Held && v != policy.Orphan {
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
	if h := p.sweep.Guard.Hold; h != "" && r.Columns[h] == policy.Bool(true) {
		return "hold", ""
	}
	if owed := p.owed(&r); len(owed) > 0 {
		return "owed", smallest(owed, p.arm.Owed.Column)
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

// smallest is the state of the rows whose text comes first, "" where none has one.
func smallest(rows []*row, column string) string {
	var states []string
	for _, r := range rows {
		if v := r.Columns[column]; !v.IsNull() {
			states = append(states, v.String())
		}
	}
	if len(states) == 0 {
		return ""
	}
	return slices.Min(states)
}
