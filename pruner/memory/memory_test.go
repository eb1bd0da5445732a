package memory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
	"github.com/prunectl/prunectl/pruner/prunertest"
)

func TestContract(t *testing.T) { prunertest.Run(t, prunertest.Memory) }

var (
	now   = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	sweep = policy.Sweep{Name: "jobs", Age: "at", Window: policy.MustWindow(24 * time.Hour), Guard: policy.Guard{
		State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")},
		Owner: &policy.OwnerGuard{Column: "state", Terminal: policy.Texts("done"), Key: []policy.KeyPair{{Target: "run", Owner: "id"}}},
	}}
	batch = pruner.Batch{Cutoff: sweep.Window.Cutoff(now), Limit: 10}
	run   = memory.KeyOf(policy.Int(1))
)

// five due rows of a run that is done.
func five() (*memory.Table, *memory.Pruner) {
	t := &memory.Table{}
	t.SetOwner(run, policy.Text("done"))
	for id := range int64(5) {
		at := now.AddDate(0, 0, -10).Add(time.Duration(id))
		t.Insert(memory.Row{ID: id + 1, Age: &at, Columns: map[string]policy.Value{"state": policy.Text("done"), "run": policy.Int(1)}})
	}
	return t, memory.New(t, sweep, sweep.Arms(policy.Index{Columns: []string{"at"}})[0])
}

// What another session does in the middle of a batch: the row is judged by what it has become.
func TestChangesUnderTheBatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*memory.Table)
		want   pruner.Result
		left   []int64
	}{
		"a row is touched": {func(t *memory.Table) { t.Update(2, func(*memory.Row) {}) }, pruner.Result{Removed: 4, Moved: 1}, []int64{2}},
		"a row is reopened": {func(t *memory.Table) {
			t.Update(2, func(r *memory.Row) { r.Columns["state"] = policy.Text("running") })
		}, pruner.Result{Removed: 4, Moved: 1}, []int64{2}},
		"a row is deleted":   {func(t *memory.Table) { t.Delete(2) }, pruner.Result{Removed: 4, Moved: 1}, nil},
		"a row is replaced":  {func(t *memory.Table) { t.Delete(2); t.Insert(memory.Row{ID: 2}) }, pruner.Result{Removed: 4, Moved: 1}, []int64{2}},
		"a row is inserted":  {func(t *memory.Table) { t.Insert(memory.Row{ID: 9}) }, pruner.Result{Removed: 5}, []int64{9}},
		"the run reopens":    {func(t *memory.Table) { t.SetOwner(run, policy.Text("running")) }, pruner.Result{Held: 5}, []int64{1, 2, 3, 4, 5}},
		"the run is deleted": {func(t *memory.Table) { t.DeleteOwner(run) }, pruner.Result{Orphan: 5}, []int64{1, 2, 3, 4, 5}},
		"the run is locked":  {func(t *memory.Table) { t.LockOwner(run) }, pruner.Result{Locked: 5}, []int64{1, 2, 3, 4, 5}},
		"nothing":            {func(*memory.Table) {}, pruner.Result{Removed: 5}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			table, p := five()
			table.OnExamined = func(ids []int64) {
				if !slices.Equal(ids, []int64{1, 2, 3, 4, 5}) {
					t.Errorf("examined %v", ids)
				}
				c.change(table)
			}
			got, err := p.Prune(t.Context(), batch)
			if err != nil || !got.End || got.Examined != 5 {
				t.Errorf("result %+v, error %v", got, err)
			}
			if got.Removed != c.want.Removed || got.Moved != c.want.Moved || got.Held != c.want.Held || got.Orphan != c.want.Orphan || got.Locked != c.want.Locked {
				t.Errorf("result %+v; want %+v", got, c.want)
			}
			if ids := table.IDs(); !slices.Equal(ids, c.left) {
				t.Errorf("rows %v are left; want %v", ids, c.left)
			}
		})
	}
}

func TestWhatADatabaseRefuses(t *testing.T) {
	table, p := five()
	veto := pruner.Block{Constraint: "keep", Table: "public.jobs"}
	table.Veto(1, veto)
	table.Veto(4, veto)
	res, err := p.Prune(t.Context(), batch)
	veto.Rows = 2
	if err != nil || res.Stuck != 2 || res.Removed != 3 || !slices.Equal(res.Blocked, []pruner.Block{veto}) {
		t.Errorf("vetoed: %+v, error %v", res, err)
	}

	table, p = five()
	table.LockDeep(3)
	var lock *pruner.LockTimeoutError
	for _, mode := range []pruner.Mode{pruner.Remove, pruner.SkipLocked} {
		b := batch
		b.Mode = mode
		if _, err := p.Prune(t.Context(), b); !errors.As(err, &lock) || !lock.CanSkip || len(table.IDs()) != 5 {
			t.Errorf("a deep lock, %s: error %v", mode, err)
		}
	}
	table.NoSkip = true
	if _, err := p.Prune(t.Context(), batch); !errors.As(err, &lock) || lock.CanSkip {
		t.Errorf("without the right to lock: error %v", err)
	}
}

// parts are the children of jobs, and owed to them while they are not done.
var (
	parts  = policy.Name{Schema: "public", Table: "parts"}
	key    = []policy.ChildKey{{Parent: "id", Child: "job"}}
	family = policy.Sweep{Name: "jobs", Age: "at", Window: sweep.Window, Batch: policy.Batch{Limit: 4}, Children: []policy.Child{{Table: parts, Key: key}},
		Guard: policy.Guard{Owed: &policy.OwedGuard{Table: parts, Key: key, Column: "state", Terminal: policy.Texts("done")}}}
)

func part(id, job int64, state string) memory.Row {
	return memory.Row{ID: id, Columns: map[string]policy.Value{"job": policy.Int(job), "state": policy.Text(state)}}
}

// threeWithParts are due rows with one part each, 10, 20 and 30; the second has as many more as are asked for.
func threeWithParts(more int64) (*memory.Table, *memory.Pruner) {
	t := &memory.Table{}
	for id := int64(1); id <= 3; id++ {
		at := now.AddDate(0, 0, -10).Add(time.Duration(id))
		t.Insert(memory.Row{ID: id, Age: &at, Columns: map[string]policy.Value{"id": policy.Int(id)}})
		t.InsertInto(parts, part(10*id, id, "done"))
	}
	for n := range more {
		t.InsertInto(parts, part(21+n, 2, "done"))
	}
	return t, memory.New(t, family, family.Arms(policy.Index{Columns: []string{"at"}})[0])
}

// What another session does to children in the middle of a batch: whoever is owed by then stays whole.
func TestChildrenChangeUnderTheBatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*memory.Table)
		want   pruner.Result
		left   []int64
		parts  []int64
	}{
		"a part is reopened": {func(t *memory.Table) {
			t.UpdateIn(parts, 20, func(r *memory.Row) { r.Columns["state"] = policy.Text("running") })
		}, pruner.Result{Removed: 2, Children: 2, Held: 1}, []int64{2}, []int64{20}},
		"a part comes that is owed": {func(t *memory.Table) { t.InsertInto(parts, part(21, 2, "new")) },
			pruner.Result{Removed: 2, Children: 2, Held: 1}, []int64{2}, []int64{20, 21}},
		"a part comes that is not": {func(t *memory.Table) { t.InsertInto(parts, part(21, 2, "done")) }, pruner.Result{Removed: 3, Children: 4}, nil, nil},
		"a part goes":              {func(t *memory.Table) { t.DeleteIn(parts, 20) }, pruner.Result{Removed: 3, Children: 2}, nil, nil},
		"the row is touched":       {func(t *memory.Table) { t.Update(2, func(*memory.Row) {}) }, pruner.Result{Removed: 2, Children: 2, Moved: 1}, []int64{2}, []int64{20}},
		"the row is locked":        {func(t *memory.Table) { t.Lock(2) }, pruner.Result{Removed: 2, Children: 2, Locked: 1}, []int64{2}, []int64{20}},
	} {
		t.Run(name, func(t *testing.T) {
			table, p := threeWithParts(0)
			table.OnExamined = func([]int64) { c.change(table) }
			got, err := p.Prune(t.Context(), batch)
			if err != nil || !got.End || got.Examined != 3 {
				t.Errorf("result %+v, error %v", got, err)
			}
			if got.Removed != c.want.Removed || got.Children != c.want.Children || got.Held != c.want.Held || got.Moved != c.want.Moved || got.Locked != c.want.Locked {
				t.Errorf("result %+v; want %+v", got, c.want)
			}
			if !slices.Equal(table.IDs(), c.left) || !slices.Equal(table.IDsIn(parts), c.parts) {
				t.Errorf("rows %v and parts %v are left; want %v and %v", table.IDs(), table.IDsIn(parts), c.left, c.parts)
			}
		})
	}
}

// The batches of a row with more children than the policy's limit of 4, one by one.
func TestChunks(t *testing.T) {
	table, p := threeWithParts(6)
	table.LockIn(parts, 26) // the last of them
	b := pruner.Batch{Cutoff: batch.Cutoff, Limit: 3}
	for n, want := range []pruner.Result{
		{Examined: 1, Removed: 1, Children: 1}, // the second has no room
		{Children: 3}, {Children: 3}, {},
		{Examined: 1, Locked: 1},
		{Examined: 1, Removed: 1, Children: 1, End: true},
	} {
		res, err := p.Prune(t.Context(), b)
		var lock *pruner.LockTimeoutError
		if n == 3 {
			if !errors.As(err, &lock) || !slices.Equal(table.IDsIn(parts), []int64{26, 30}) {
				t.Fatalf("at the locked child: error %v, parts %v", err, table.IDsIn(parts))
			}
			b.Limit, b.Mode = 1, pruner.StepLocked
			continue
		}
		if err != nil || res.Examined != want.Examined || res.Removed != want.Removed || res.Children != want.Children || res.Locked != want.Locked || res.End != want.End {
			t.Fatalf("batch %d: %+v, error %v; want %+v", n+1, res, err, want)
		}
		b.After, b.Limit, b.Mode = res.Next, 3, pruner.Remove
	}
	if !slices.Equal(table.IDs(), []int64{2}) || !slices.Equal(table.IDsIn(parts), []int64{26}) {
		t.Errorf("rows %v and parts %v are left", table.IDs(), table.IDsIn(parts))
	}
}

func TestFinalOwnersAreNotLocked(t *testing.T) {
	final := sweep
	g := *sweep.Guard.Owner
	g.Final = true
	final.Guard.Owner = &g
	table, _ := five()
	table.LockOwner(run)
	p := memory.New(table, final, final.Arms(policy.Index{Columns: []string{"at"}})[0])
	if res, err := p.Prune(t.Context(), batch); err != nil || res.Removed != 5 {
		t.Errorf("%+v, error %v; want 5 removed", res, err)
	}
}

func TestForeignCursor(t *testing.T) {
	_, p := five()
	b := batch
	b.After = pruner.NewCursor("yesterday")
	if _, err := p.Prune(t.Context(), b); err == nil || !strings.Contains(err.Error(), `cursor "yesterday"`) {
		t.Errorf("error %v", err)
	}
}

func TestKeyOf(t *testing.T) {
	if memory.KeyOf(policy.Text("a"), policy.Null) != "" || memory.KeyOf() == "" || memory.KeyOf(policy.Text("a"), policy.Text("b")) == memory.KeyOf(policy.Text("ab"), policy.Text("")) {
		t.Error("keys are mixed up")
	}
}

// Several pruners over one table do no harm to each other.
func TestPrunersAtOnce(t *testing.T) {
	table, _ := five()
	for id := int64(6); id <= 400; id++ {
		at := now.AddDate(0, 0, -10).Add(time.Duration(id))
		table.Insert(memory.Row{ID: id, Age: &at, Columns: map[string]policy.Value{"state": policy.Text("done"), "run": policy.Int(1)}})
	}
	removed := make(chan int)
	for range 4 {
		go func() {
			p := memory.New(table, sweep, sweep.Arms(policy.Index{Columns: []string{"at"}})[0])
			n, b := 0, batch
			for {
				res, err := p.Prune(t.Context(), b)
				if n += res.Removed; err != nil || res.End {
					removed <- n
					return
				}
				b.After = res.Next
			}
		}()
	}
	sum := 0
	for range 4 {
		sum += <-removed
	}
	if sum != 400 || len(table.IDs()) != 0 {
		t.Errorf("%d rows were counted as removed, %d are left; want 400 and none", sum, len(table.IDs()))
	}
}
