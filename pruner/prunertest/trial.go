package prunertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Now is the time of every check. Implementations see it only through the cutoffs.
var Now = time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)

// trial is a population under a check, with what is known of it.
type trial struct {
	Population
	f      Fixture
	arms   []policy.Arm
	rows   map[int64]Row
	owners map[Owner]policy.Value // by key, State left out
	pins   map[int64]bool

	pruners map[int]pruner.Pruner // by arm; one lives as long as its population, as in a worker
}

// try makes the population, runs the check on it and closes it.
func try(ctx context.Context, create Factory, f Fixture, check func(*trial) error) (err error) {
	pop, err := create(ctx, f)
	if err != nil {
		return fmt.Errorf("make the population: %w", err)
	}
	defer func() { err = errors.Join(err, pop.Close()) }()
	t := &trial{Population: pop, f: f, arms: f.Arms(f.Sweep), rows: map[int64]Row{}, owners: map[Owner]policy.Value{}, pins: map[int64]bool{},
		pruners: map[int]pruner.Pruner{}}
	if len(t.arms) == 0 {
		return fmt.Errorf("the index on %v gives the sweep no arm", f.Index.Columns)
	}
	t.learn(f.Rows...)
	for _, o := range f.Owners {
		t.owners[Owner{Tenant: o.Tenant, ID: o.ID}] = o.State
	}
	if err := check(t); err != nil {
		return fmt.Errorf("index on %v: %w", f.Index.Columns, err)
	}
	return nil
}

func (t *trial) learn(rows ...Row) {
	for _, r := range rows {
		r.Parts = slices.Clone(r.Parts) // forget takes some out
		t.rows[r.ID] = r
	}
}

func (t *trial) insert(ctx context.Context, rows ...Row) error {
	t.learn(rows...)
	return t.Insert(ctx, rows...)
}

func (t *trial) setOwner(ctx context.Context, o Owner) error {
	t.owners[Owner{Tenant: o.Tenant, ID: o.ID}] = o.State
	return t.SetOwner(ctx, o)
}

// insertPart adds a part to a row.
func (t *trial) insertPart(ctx context.Context, row int64, p Part) error {
	r := t.rows[row]
	r.Parts = append(r.Parts, p)
	t.rows[row] = r
	return t.InsertParts(ctx, row, p)
}

// setPartState changes the state of a part.
func (t *trial) setPartState(ctx context.Context, id int64, state policy.Value) error {
	for _, r := range t.rows {
		for i := range r.Parts {
			if r.Parts[i].ID == id {
				r.Parts[i].State = state
			}
		}
	}
	return t.SetPartState(ctx, id, state)
}

func (t *trial) pin(ctx context.Context, id int64) error {
	t.pins[id] = true
	return t.Pin(ctx, id)
}

// verdict is what the policy says of the row.
func (t *trial) verdict(r Row) policy.Verdict {
	pr := policy.Row{Age: r.Age.Instant(), Columns: r.Columns(), Own: t.own(r), Owed: t.owed(r)}
	if t.f.Sweep.Guard.Owner != nil && !r.Tenant.IsNull() && !r.Owner.IsNull() {
		for o, state := range t.owners {
			if o.Tenant == r.Tenant.String() && policy.Int(o.ID) == r.Owner {
				pr.Owner = policy.OwnerState{Exists: true, State: state}
			}
		}
	}
	return t.f.Sweep.Decide(Now, pr).Verdict
}

// owed reports whether a row of another table protects the row.
func (t *trial) owed(r Row) bool {
	switch g := t.f.Sweep.Guard.Owed; {
	case g == nil:
		return false
	case g.Table == pinName:
		return t.pins[r.ID]
	default:
		return slices.ContainsFunc(r.Parts, func(p Part) bool { return !g.Lets(p.State) })
	}
}

// own is the row's own window in seconds.
func (t *trial) own(r Row) *int64 {
	o := t.f.Sweep.Own
	n, err := strconv.ParseInt(r.Own.String(), 10, 64)
	if o == nil || err != nil {
		return nil
	}
	n *= int64(max(time.Second, o.Unit) / time.Second)
	return &n
}

// raised reports whether a row's own window is below the floor.
func (t *trial) raised(r Row) bool {
	own := t.own(r)
	return own != nil && *own > 0 && time.Duration(*own)*time.Second < t.f.Sweep.WithDefaults().Floor
}

// at is where the row stands in the arm's range; nil: nowhere.
func (t *trial) at(arm int, r Row) *time.Time {
	at := r.Age.Instant()
	if own := t.own(r); t.arms[arm].Expiry && at != nil {
		if own == nil {
			return nil
		}
		end := at.Add(time.Duration(*own) * time.Second)
		return &end
	}
	return at
}

// children are the rows that go with the row.
func (t *trial) children(r Row) int {
	if len(t.f.Sweep.Children) == 0 {
		return 0
	}
	n := len(r.Parts)
	for _, p := range r.Parts {
		n += len(p.Notes)
	}
	return n
}

// cutoff is the arm's.
func (t *trial) cutoff(arm int) policy.Cutoff { return t.arms[arm].Window.Cutoff(Now) }

// inArm reports whether the row is the arm's to decide.
func (t *trial) inArm(arm int, r Row) bool {
	cs := r.Columns()
	return t.arms[arm].In(cs) && !slices.ContainsFunc(t.arms[arm].Part, func(m policy.Match) bool { return !m.Matches(cs[m.Column]) })
}

// inRange lists the rows that a pass of the arm examines, oldest first. Some may be another arm's.
func (t *trial) inRange(arm int) []Row {
	var in []Row
	for _, r := range t.rows {
		at := t.at(arm, r)
		if t.arms[arm].In(r.Columns()) && at != nil && !r.Age.Instant().Before(t.f.Sweep.WithDefaults().Since) && t.cutoff(arm).Past(*at) {
			in = append(in, r)
		}
	}
	slices.SortFunc(in, func(a, b Row) int { return cmp.Or(t.at(arm, a).Compare(*t.at(arm, b)), cmp.Compare(a.ID, b.ID)) })
	return in
}

func byAge(a, b Row) int {
	return cmp.Or(a.Age.Instant().Compare(*b.Age.Instant()), cmp.Compare(a.ID, b.ID))
}

// gone is what is no longer there.
type gone struct {
	rows     []Row
	children map[int64]int // how many, by their row
	total    int           // of children
}

// forget drops what is gone from what is known, and returns it.
func (t *trial) forget(ctx context.Context) (gone, error) {
	g := gone{children: map[int64]int{}}
	ids, err := t.IDs(ctx)
	if err != nil {
		return g, fmt.Errorf("list the rows: %w", err)
	}
	if err := t.forgetParts(ctx, &g); err != nil {
		return g, err
	}
	for id, r := range t.rows {
		if _, there := slices.BinarySearch(ids, id); there {
			continue
		}
		if len(r.Parts) > 0 {
			return g, fmt.Errorf("row %d is gone, and %d of its parts are there", id, len(r.Parts))
		}
		g.rows = append(g.rows, r)
		delete(t.rows, id)
	}
	if len(ids) != len(t.rows) {
		return g, fmt.Errorf("%d rows are there that were never inserted, or were gone before", len(ids)-len(t.rows))
	}
	return g, nil
}

func (t *trial) forgetParts(ctx context.Context, g *gone) error {
	if !slices.ContainsFunc(slices.Collect(maps.Values(t.rows)), func(r Row) bool { return len(r.Parts) > 0 }) {
		return nil
	}
	parts, err := t.Parts(ctx)
	if err != nil {
		return fmt.Errorf("list the parts: %w", err)
	}
	notes, err := t.Notes(ctx)
	if err != nil {
		return fmt.Errorf("list the notes: %w", err)
	}
	lost := func(there []int64, id int64) bool { _, ok := slices.BinarySearch(there, id); return !ok }
	for id, r := range t.rows {
		var left []Part
		for _, p := range r.Parts {
			n := len(p.Notes)
			p.Notes = slices.DeleteFunc(slices.Clone(p.Notes), func(id int64) bool { return lost(notes, id) })
			n -= len(p.Notes)
			if lost(parts, p.ID) {
				if len(p.Notes) > 0 {
					return fmt.Errorf("part %d is gone, and %d of its notes are there", p.ID, len(p.Notes))
				}
				n++
			} else {
				left = append(left, p)
			}
			if n > 0 {
				g.children[id] += n
				g.total += n
			}
		}
		r.Parts = left
		t.rows[id] = r
	}
	return nil
}

// left holds the rows that are there against those that have to be.
func (t *trial) left(ctx context.Context, want ...int64) error {
	ids, err := t.IDs(ctx)
	if err != nil {
		return fmt.Errorf("list the rows: %w", err)
	}
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		return fmt.Errorf("rows %v are left; want %v", ids, want)
	}
	return nil
}

// untouched is nil while every row is there.
func (t *trial) untouched(ctx context.Context) error {
	gone, err := t.forget(ctx)
	if err == nil && len(gone.rows)+gone.total > 0 {
		return fmt.Errorf("%d rows and %d children are gone; want none", len(gone.rows), gone.total)
	}
	return err
}

// batches runs one pass of the arm, batch after batch in this mode, and calls each, if it is given, after a batch.
func (t *trial) batches(ctx context.Context, arm, limit int, mode pruner.Mode, each func(n int, res pruner.Result) error) (sum pruner.Result, err error) {
	p, err := t.pruner(ctx, arm)
	if err != nil {
		return sum, err
	}
	// Each batch that is not the last examines something or removes children, and whoever examines no row twice is done
	// after this many.
	bound := 2*len(t.rows) + 20
	for _, r := range t.rows {
		bound += t.children(r)
	}
	been := map[pruner.Cursor]bool{}
	var at pruner.Cursor
	for n := 1; ; n++ {
		if n > bound {
			return sum, fmt.Errorf("the pass has not ended after %d batches of at most %d rows; the last cursor is %q", bound, limit, at)
		}
		res, err := p.Prune(ctx, pruner.Batch{Cutoff: t.cutoff(arm), Limit: limit, After: at, Mode: mode})
		if err != nil {
			return sum, fmt.Errorf("batch %d of at most %d rows (%s): %w", n, limit, mode, err)
		}
		if err := sane(res, limit, t.f.Sweep.WithDefaults().Batch.Limit); err != nil {
			return sum, fmt.Errorf("batch %d of at most %d rows (%s): %w", n, limit, mode, err)
		}
		add(&sum, res)
		if each != nil {
			if err := each(n, res); err != nil {
				return sum, fmt.Errorf("after batch %d of at most %d rows: %w", n, limit, err)
			}
		}
		if res.End {
			return sum, nil
		}
		if at = res.Next; been[at] && res.Removed+res.Children == 0 {
			return sum, fmt.Errorf("batch %d of at most %d rows removed nothing and came back to cursor %q", n, limit, at)
		}
		been[at] = true
	}
}

// sane holds one result against what is always true. whole is the limit of the policy, in which a row goes whole.
func sane(res pruner.Result, limit, whole int) error {
	for name, n := range map[string]int{"examined": res.Examined, "removed": res.Removed, "children": res.Children, "held": res.Held, "locked": res.Locked,
		"moved": res.Moved, "orphan": res.Orphan, "stuck": res.Stuck, "unusable": res.Unusable, "outside": res.Outside, "raised": res.Raised} {
		if n < 0 {
			return fmt.Errorf("%s is %d", name, n)
		}
	}
	switch sum := accounted(res); {
	case res.Examined > limit:
		return fmt.Errorf("%d rows were examined", res.Examined)
	case sum > res.Examined:
		return fmt.Errorf("%d rows were examined, and %d accounted for", res.Examined, sum)
	case res.Raised > sum:
		return fmt.Errorf("%d windows were raised, and %d rows accounted for", res.Raised, sum)
	case res.Removed == 1 && 1+res.Children > max(limit, whole):
		return fmt.Errorf("a row went whole with %d children; the limit of the policy is %d", res.Children, whole)
	case res.Removed != 1 && res.Removed+res.Children > limit:
		return fmt.Errorf("%d rows went, and %d children", res.Removed, res.Children)
	case res.Removed == 0 && res.Children > 0 && (res.Examined > 0 || res.End):
		return fmt.Errorf("%d children went ahead of their row, and %d rows were examined, the end: %t; want none, and no end", res.Children, res.Examined, res.End)
	case res.Busy:
		return errors.New("it is busy, and there is no other sweeper")
	case !res.End && res.Next.IsZero():
		return errors.New("it neither ended nor says where to go on")
	}
	return nil
}

func accounted(r pruner.Result) int {
	return r.Removed + r.Held + r.Locked + r.Moved + r.Orphan + r.Stuck + r.Unusable + r.Outside
}

func add(to *pruner.Result, r pruner.Result) {
	to.Examined += r.Examined
	to.Removed += r.Removed
	to.Children += r.Children
	to.Held += r.Held
	to.Locked += r.Locked
	to.Moved += r.Moved
	to.Orphan += r.Orphan
	to.Stuck += r.Stuck
	to.Unusable += r.Unusable
	to.Outside += r.Outside
	to.Raised += r.Raised
	to.Blocked = append(to.Blocked, r.Blocked...)
}

// pass runs one pass of the arm over a population that nobody else changes, and holds all of it against the policy: what
// each batch removed, in which order, and what was counted.
func (t *trial) pass(ctx context.Context, arm, limit int) (pruner.Result, error) {
	in := t.inRange(arm)
	due, size, verdicts := map[int64]bool{}, map[int64]int{}, map[int64]string{}
	var want pruner.Result
	want.Examined = len(in)
	for _, r := range in {
		if !t.inArm(arm, r) {
			verdicts[r.ID] = "another arm's"
			continue
		}
		v := t.verdict(r)
		verdicts[r.ID] = v.String()
		switch v {
		case policy.Due:
			due[r.ID] = true
			want.Removed++
			size[r.ID] = 1 + t.children(r)
			want.Children += t.children(r)
		case policy.Held:
			want.Held++
		case policy.Orphan:
			want.Orphan++
		case policy.Unusable:
			want.Unusable++
		case policy.Outside:
			want.Outside++
		}
		if t.raised(r) && v != policy.Young && v != policy.Outside {
			want.Raised++
		}
	}
	examined := 0
	got, err := t.batches(ctx, arm, limit, pruner.Remove, func(_ int, res pruner.Result) error {
		gone, err := t.forget(ctx)
		if err != nil {
			return err
		}
		if len(gone.rows) != res.Removed || gone.total != res.Children {
			return fmt.Errorf("%d rows and %d children are gone, and %d and %d counted as removed", len(gone.rows), gone.total, res.Removed, res.Children)
		}
		for _, r := range gone.rows {
			if !due[r.ID] {
				return fmt.Errorf("row %d of age %s is gone, and it is %s", r.ID, r.Age, cmp.Or(verdicts[r.ID], "out of the range"))
			}
		}
		if examined += res.Examined; examined > len(in) {
			return fmt.Errorf("%d rows were examined in a pass over %d", examined, len(in))
		}
		if err := t.chunked(arm, gone, size, in[examined:], res); err != nil {
			return err
		}
		return t.inOrder(arm, in[:examined], in[examined:], due, res.End)
	})
	if err != nil {
		return got, err
	}
	for _, c := range []struct {
		what      string
		got, want int
	}{{"examined", got.Examined, want.Examined}, {"removed", got.Removed, want.Removed}, {"children", got.Children, want.Children}, {"held", got.Held, want.Held}, {"orphan", got.Orphan, want.Orphan},
		{"outside", got.Outside, want.Outside}, {"locked", got.Locked, 0}, {"moved", got.Moved, 0}, {"stuck", got.Stuck, 0},
		{"unusable", got.Unusable, want.Unusable}, {"raised", got.Raised, want.Raised}} {
		if c.got != c.want {
			return got, fmt.Errorf("a pass in batches of at most %d rows counted %d as %s; want %d", limit, c.got, c.what, c.want)
		}
	}
	return got, nil
}

// chunked holds children that went ahead of their row against the contract: it is the oldest that is due, and had more of
// them than the limit of the policy when the pass began. size is that of the rows that are due, with their children.
func (t *trial) chunked(arm int, gone gone, size map[int64]int, others []Row, res pruner.Result) error {
	for id, n := range gone.children {
		r, there := t.rows[id]
		if !there {
			continue
		}
		switch whole := t.f.Sweep.WithDefaults().Batch.Limit; {
		case size[id] == 0:
			return fmt.Errorf("row %d is %s, and lost %d children", id, t.verdict(r), n)
		case res.Removed > 0 || len(gone.children) > 1:
			return fmt.Errorf("row %d lost %d children in a batch that removed %d rows and children of %d", id, n, res.Removed, len(gone.children))
		case size[id] <= whole:
			return fmt.Errorf("row %d lost %d of %d children; with them it fits in the limit of the policy, %d", id, n, size[id]-1, whole)
		}
		for _, o := range others {
			if size[o.ID] > 0 && t.at(arm, o).Before(*t.at(arm, r)) {
				return fmt.Errorf("row %d lost children before row %d went, which is older", id, o.ID)
			}
		}
	}
	return nil
}

// inOrder says whether what is gone agrees with having examined the first rows of the range and not the others. Rows of
// one age may have been taken in any order.
func (t *trial) inOrder(arm int, first, others []Row, due map[int64]bool, end bool) error {
	for _, r := range first {
		_, there := t.rows[r.ID]
		older := end || len(others) == 0 || t.at(arm, r).Before(*t.at(arm, others[0]))
		if there && due[r.ID] && older {
			return fmt.Errorf("row %d of age %s is due and still there, although %d rows were examined", r.ID, r.Age, len(first))
		}
	}
	for _, r := range others {
		_, there := t.rows[r.ID]
		younger := len(first) == 0 || t.at(arm, r).After(*t.at(arm, first[len(first)-1]))
		if !there && younger {
			return fmt.Errorf("row %d of age %s is gone before older ones were examined", r.ID, r.Age)
		}
	}
	return nil
}

// passes runs a pass of every arm and adds them up.
func (t *trial) passes(ctx context.Context, limit int) (sum pruner.Result, err error) {
	for arm := range t.arms {
		res, err := t.pass(ctx, arm, limit)
		if err != nil {
			return sum, fmt.Errorf("arm %s: %w", t.arms[arm], err)
		}
		add(&sum, res)
	}
	return sum, nil
}

// prune is one batch of the arm, up to its cutoff.
func (t *trial) prune(ctx context.Context, arm int, b pruner.Batch) (pruner.Result, error) {
	p, err := t.pruner(ctx, arm)
	if err != nil {
		return pruner.Result{}, err
	}
	b.Cutoff = t.cutoff(arm)
	return p.Prune(ctx, b)
}

func (t *trial) pruner(ctx context.Context, arm int) (pruner.Pruner, error) {
	if p, ok := t.pruners[arm]; ok {
		return p, nil
	}
	p, err := t.Pruner(ctx, t.arms[arm])
	if err != nil {
		return nil, fmt.Errorf("make the pruner of arm %s: %w", t.arms[arm], err)
	}
	t.pruners[arm] = p
	return p, nil
}
