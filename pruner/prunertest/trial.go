package prunertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

	pruners map[int]pruner.Pruner // by arm; one lives as long as its population, as in a worker
}

// try makes the population, runs the check on it and closes it.
func try(ctx context.Context, create Factory, f Fixture, check func(*trial) error) (err error) {
	pop, err := create(ctx, f)
	if err != nil {
		return fmt.Errorf("make the population: %w", err)
	}
	defer func() { err = errors.Join(err, pop.Close()) }()
	t := &trial{Population: pop, f: f, arms: f.Index.Arms(f.Sweep), rows: map[int64]Row{}, owners: map[Owner]policy.Value{},
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

// verdict is what the policy says of the row.
func (t *trial) verdict(r Row) policy.Verdict {
	pr := policy.Row{Age: r.Age.Instant(), Columns: r.Columns()}
	if t.f.Sweep.Guard.Owner != nil && !r.Tenant.IsNull() && !r.Owner.IsNull() {
		for o, state := range t.owners {
			if o.Tenant == r.Tenant.String() && policy.Int(o.ID) == r.Owner {
				pr.Owner = policy.OwnerState{Exists: true, State: state}
			}
		}
	}
	return t.f.Sweep.Decide(Now, pr).Verdict
}

// cutoff is the arm's.
func (t *trial) cutoff(arm int) policy.Cutoff { return t.arms[arm].Window.Cutoff(Now) }

// inArm reports whether the arm's equalities let the row in.
func (t *trial) inArm(arm int, r Row) bool {
	return t.arms[arm].In(r.Columns())
}

// inRange lists the rows that a pass of the arm examines, oldest first.
func (t *trial) inRange(arm int) []Row {
	var in []Row
	for _, r := range t.rows {
		at := r.Age.Instant()
		if t.inArm(arm, r) && at != nil && !at.Before(t.f.Sweep.WithDefaults().Since) && t.cutoff(arm).Past(*at) {
			in = append(in, r)
		}
	}
	slices.SortFunc(in, byAge)
	return in
}

func byAge(a, b Row) int {
	return cmp.Or(a.Age.Instant().Compare(*b.Age.Instant()), cmp.Compare(a.ID, b.ID))
}

// forget drops the rows that are gone from what is known, and returns them.
func (t *trial) forget(ctx context.Context) ([]Row, error) {
	ids, err := t.IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the rows: %w", err)
	}
	var gone []Row
	for id, r := range t.rows {
		if _, there := slices.BinarySearch(ids, id); !there {
			gone = append(gone, r)
			delete(t.rows, id)
		}
	}
	if len(ids) != len(t.rows) {
		return nil, fmt.Errorf("%d rows are there that were never inserted, or were gone before", len(ids)-len(t.rows))
	}
	return gone, nil
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
	if err == nil && len(gone) > 0 {
		return fmt.Errorf("%d rows are gone; want none", len(gone))
	}
	return err
}

// batches runs one pass of the arm, batch after batch in this mode, and calls each, if it is given, after a batch.
func (t *trial) batches(ctx context.Context, arm, limit int, mode pruner.Mode, each func(n int, res pruner.Result) error) (sum pruner.Result, err error) {
	p, err := t.pruner(ctx, arm)
	if err != nil {
		return sum, err
	}
	// Each batch that is not the last examines something, and whoever examines no row twice is done after this many.
	bound := 2*len(t.rows) + 20
	var at pruner.Cursor
	for n := 1; ; n++ {
		if n > bound {
			return sum, fmt.Errorf("the pass has not ended after %d batches of at most %d rows; the last cursor is %q", bound, limit, at)
		}
		res, err := p.Prune(ctx, pruner.Batch{Cutoff: t.cutoff(arm), Limit: limit, After: at, Mode: mode})
		if err != nil {
			return sum, fmt.Errorf("batch %d of at most %d rows (%s): %w", n, limit, mode, err)
		}
		if err := sane(res, limit); err != nil {
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
		at = res.Next
	}
}

// sane holds one result against what is always true.
func sane(res pruner.Result, limit int) error {
	for name, n := range map[string]int{"examined": res.Examined, "removed": res.Removed, "children": res.Children, "held": res.Held, "locked": res.Locked,
		"moved": res.Moved, "orphan": res.Orphan, "stuck": res.Stuck, "outside": res.Outside} {
		if n < 0 {
			return fmt.Errorf("%s is %d", name, n)
		}
	}
	switch sum := accounted(res); {
	case res.Examined > limit:
		return fmt.Errorf("%d rows were examined", res.Examined)
	case sum > res.Examined:
		return fmt.Errorf("%d rows were examined, and %d accounted for", res.Examined, sum)
	case res.Busy:
		return errors.New("it is busy, and there is no other sweeper")
	case !res.End && res.Next.IsZero():
		return errors.New("it neither ended nor says where to go on")
	}
	return nil
}

func accounted(r pruner.Result) int {
	return r.Removed + r.Held + r.Locked + r.Moved + r.Orphan + r.Stuck + r.Outside
}

func add(to *pruner.Result, r pruner.Result) {
	to.Examined += r.Examined
	to.Removed += r.Removed
	to.Held += r.Held
	to.Locked += r.Locked
	to.Moved += r.Moved
	to.Orphan += r.Orphan
	to.Stuck += r.Stuck
	to.Outside += r.Outside
	to.Blocked = append(to.Blocked, r.Blocked...)
}

// pass runs one pass of the arm over a population that nobody else changes, and holds all of it against the policy: what
// each batch removed, in which order, and what was counted.
func (t *trial) pass(ctx context.Context, arm, limit int) (pruner.Result, error) {
	in := t.inRange(arm)
	due := map[int64]bool{}
	var want pruner.Result
	want.Examined = len(in)
	for _, r := range in {
		switch t.verdict(r) {
		case policy.Due:
			due[r.ID] = true
			want.Removed++
		case policy.Held:
			want.Held++
		case policy.Orphan:
			want.Orphan++
		case policy.Outside:
			want.Outside++
		}
	}
	examined := 0
	got, err := t.batches(ctx, arm, limit, pruner.Remove, func(_ int, res pruner.Result) error {
		gone, err := t.forget(ctx)
		if err != nil {
			return err
		}
		if len(gone) != res.Removed {
			return fmt.Errorf("%d rows are gone, and %d counted as removed", len(gone), res.Removed)
		}
		for _, r := range gone {
			if !due[r.ID] {
				return fmt.Errorf("row %d of age %s is gone, and it is %s", r.ID, r.Age, t.verdict(r))
			}
		}
		if examined += res.Examined; examined > len(in) {
			return fmt.Errorf("%d rows were examined in a pass over %d", examined, len(in))
		}
		return t.inOrder(in[:examined], in[examined:], due, res.End)
	})
	if err != nil {
		return got, err
	}
	for _, c := range []struct {
		what      string
		got, want int
	}{{"examined", got.Examined, want.Examined}, {"removed", got.Removed, want.Removed}, {"held", got.Held, want.Held}, {"orphan", got.Orphan, want.Orphan},
		{"outside", got.Outside, want.Outside}, {"locked", got.Locked, 0}, {"moved", got.Moved, 0}, {"stuck", got.Stuck, 0}} {
		if c.got != c.want {
			return got, fmt.Errorf("a pass in batches of at most %d rows counted %d as %s; want %d", limit, c.got, c.what, c.want)
		}
	}
	return got, nil
}

// inOrder says whether what is gone agrees with having examined the first rows of the range and not the others. Rows of
// one age may have been taken in any order.
func (t *trial) inOrder(first, others []Row, due map[int64]bool, end bool) error {
	for _, r := range first {
		_, there := t.rows[r.ID]
		older := end || len(others) == 0 || r.Age.Instant().Before(*others[0].Age.Instant())
		if there && due[r.ID] && older {
			return fmt.Errorf("row %d of age %s is due and still there, although %d rows were examined", r.ID, r.Age, len(first))
		}
	}
	for _, r := range others {
		_, there := t.rows[r.ID]
		younger := len(first) == 0 || r.Age.Instant().After(*first[len(first)-1].Age.Instant())
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
