package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

// parents is a Pruner over due rows with so many children each, in the order of their age, as the contract has it: a row
// goes whole where it and its children fit in the policy's limit, and in chunks of the batch's where they do not.
type parents struct {
	children []int // of each row; -1: it is gone
	whole    int   // the policy's limit
	pinned   int   // the row that cannot be deleted, from 1; 0: none
}

func (p *parents) Prune(_ context.Context, b pruner.Batch) (pruner.Result, error) {
	i, _ := strconv.Atoi(b.After.String())
	var res pruner.Result
	next := slices.Clone(p.children)
	for ; i < len(next) && res.Examined < b.Limit; i++ {
		n := next[i]
		switch {
		case n < 0:
			continue
		case b.Mode == pruner.StepStuck:
			res.Examined++
			res.Stuck++
			continue
		case n+1 > p.whole && res.Examined > 0, res.Examined > 0 && res.Removed+res.Children+n+1 > b.Limit:
			// for the next batch
		case n+1 > p.whole:
			res.Children, next[i] = b.Limit, n-b.Limit
		default:
			res.Examined++
			if res.Removed, res.Children, next[i] = res.Removed+1, res.Children+n, -1; i+1 == p.pinned {
				return pruner.Result{}, &pruner.RefusedError{Code: "23503", Block: pins, Err: errors.New("violates foreign key constraint")}
			}
			continue
		}
		break
	}
	p.children = next
	res.Next, res.End = pruner.NewCursor(strconv.Itoa(i)), i == len(next)
	return res, nil
}

func family(whole int, children ...int) (*parents, *spy) {
	p := &parents{children: children, whole: whole}
	return p, &spy{Pruner: p, clock: newClock()}
}

// did says of each batch that was committed how many rows it examined and removed, and how many children.
func (s *spy) did() string {
	var all []string
	for _, c := range s.calls {
		if c.err == nil {
			all = append(all, fmt.Sprintf("%d/%d+%d", c.res.Examined, c.res.Removed, c.res.Children))
		}
	}
	return strings.Join(all, " ")
}

func runOf(s *spy, b Bounds) (Report, error) {
	b.clock = s.clock.clock()
	return Run(context.Background(), s, cutoff, b)
}

func TestChildrenAreCounted(t *testing.T) {
	_, s := family(10, 3, 3, 25, 0, 0)
	r, err := runOf(s, Bounds{Limit: 10})
	if err != nil || !r.Drained() || r.Removed != 5 || r.Children != 31 || r.Examined != 5 || r.Vain != 0 {
		t.Errorf("report %+v, error %v; want 5 removed with 31 children", r, err)
	}
	// A chunk examines and removes none, and it is a batch that removed something.
	if got, want := s.did(), "2/2+6 0/0+10 0/0+10 3/3+5"; got != want || r.Batches != 4 {
		t.Errorf("%d batches: %s; want 4: %s", r.Batches, got, want)
	}
}

// A pass that returns to its place with each chunk is no circle, however many they are.
func TestChunksAreProgress(t *testing.T) {
	p, s := family(10, 5000)
	r, err := runOf(s, Bounds{Limit: 10})
	if err != nil || !r.Drained() || r.Removed != 1 || r.Children != 5000 || r.Batches != 501 {
		t.Errorf("removed %d and %d children in %d batches, stop %q, error %v; want 1 and 5000 in 501", r.Removed, r.Children, r.Batches, r.Stop, err)
	}
	if p.children[0] != -1 {
		t.Errorf("it has %d children left", p.children[0])
	}
}

func TestCeilingsCountChildren(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds Bounds
		did    string
		stop   Stop
		by     string
	}{
		{"a chunk is cut to the rows that are left", Bounds{Rows: 17}, "0/0+10 0/0+7", StopCeiling, ByRows},
		{"a row goes whole, past the ceiling", Bounds{Rows: 33}, "0/0+10 0/0+10 0/0+10 1/1+9", StopCeiling, ByRows},
		{"chunks count as batches", Bounds{Batches: 2}, "0/0+10 0/0+10", StopCeiling, ByBatches},
		{"neither is reached", Bounds{Rows: 100, Batches: 10}, "0/0+10 0/0+10 0/0+10 1/1+9 1/1+9", StopDrained, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, s := family(10, 39, 9)
			c.bounds.Limit = 10
			r, err := runOf(s, c.bounds)
			if err != nil || r.Stop != c.stop || r.StopBy != c.by || s.did() != c.did {
				t.Errorf("stop %q by %q, %s, error %v; want %q by %q, %s", r.Stop, r.StopBy, s.did(), err, c.stop, c.by, c.did)
			}
		})
	}
	t.Run("the budget's", func(t *testing.T) {
		_, s := family(10, 39, 9)
		_, other := family(10, 9)
		rs, err := RunAll(t.Context(), []Sweep{
			{Name: "a", Arms: []Arm{{Pruner: s, Cutoff: cutoff}}, Bounds: Bounds{Limit: 10}},
			{Name: "b", Arms: []Arm{{Pruner: other, Cutoff: cutoff}}, Bounds: Bounds{Limit: 10}},
		}, policy.Budget{Rows: 27}, Options{clock: s.clock.clock()})
		if err != nil || stops(rs) != "a 0 budget:rows, b 1 drained" || s.did() != "0/0+10 0/0+7" {
			t.Errorf("%s, %s, error %v", stops(rs), s.did(), err)
		}
	})
}

// What cannot go is found among rows with children, and behind chunks.
func TestStuckParents(t *testing.T) {
	for name, c := range map[string]struct {
		children []int
		pinned   int
		left     string
	}{
		"a row with few children":        {[]int{3, 0, 7, 2, 2}, 4, "[-1 -1 -1 2 -1]"},
		"one with as many as the limit":  {[]int{3, 0, 49, 2, 2}, 3, "[-1 -1 49 -1 -1]"},
		"one that loses them in chunks":  {[]int{3, 0, 180, 2, 2}, 3, "[-1 -1 30 -1 -1]"},
		"the neighbour of one in chunks": {[]int{3, 0, 180, 2, 2}, 4, "[-1 -1 -1 2 -1]"},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := family(50, c.children...)
			p.pinned = c.pinned
			r, err := runOf(s, Bounds{Limit: 50})
			if err != nil || r.Stop != StopStuck || r.Stuck != 1 || r.Removed != 4 || len(r.Blocked) != 1 || r.Blocked[0].Rows != 1 {
				t.Errorf("report %+v, error %v; want 4 removed and one stuck", r, err)
			}
			if got := fmt.Sprint(p.children); got != c.left || len(s.calls) > 40 {
				t.Errorf("%s are left after %d calls; want %s", got, len(s.calls), c.left)
			}
		})
	}
}

// A search among the children of one row goes down with its chunks, and ends where what it looks for is gone.
func TestTheSearchGoesDownByChunks(t *testing.T) {
	_, s := family(10, 1000)
	s.answer = func(n int, b pruner.Batch) (pruner.Result, error, bool) {
		return pruner.Result{}, &pruner.RefusedError{Code: "23503", Block: pins, Err: errors.New("violates foreign key constraint")}, n <= 3
	}
	r, err := runOf(s, Bounds{Limit: 10})
	if err != nil || !r.Drained() || r.Children != 1000 || r.Failed() {
		t.Errorf("report %+v, error %v; want drained", r, err)
	}
	if got := s.limits()[:9]; !slices.Equal(got, []int{10, 5, 2, 1, 1, 10, 10, 10, 10}) {
		t.Errorf("limits %v", got)
	}
}

func TestUnusableAndRaisedAreTallies(t *testing.T) {
	at := pruner.NewCursor
	passes := []pruner.Result{
		{Examined: 5, Removed: 3, Unusable: 2, Raised: 4, Next: at("a")},
		{Examined: 5, Removed: 3, Unusable: 1, Raised: 1, Moved: 1, End: true},
		{Examined: 2, Unusable: 2, Raised: 1, Next: at("b")}, // the second pass
		{Examined: 3, Removed: 1, Unusable: 1, Held: 1, Raised: 1, End: true},
	}
	run := func(calls int, b Bounds) (Report, error) {
		_, s := family(1)
		s.answer = func(n int, _ pruner.Batch) (pruner.Result, error, bool) {
			if n > calls {
				return pruner.Result{}, errors.New("boom"), true
			}
			return passes[n-1], nil, true
		}
		return runOf(s, b)
	}
	for calls, want := range [][2]int{{0, 0}, {2, 4}, {3, 5}, {3, 5}, {3, 2}} {
		r, err := run(calls, Bounds{Limit: 10})
		if r.Unusable == nil || *r.Unusable != want[0] || r.Raised != want[1] || (err == nil) != (calls == 4) {
			t.Errorf("after %d batches: %+v, error %v; want %d unusable and %d raised", calls, r, err, want[0], want[1])
		}
	}
	if r, err := run(4, Bounds{Limit: -1}); err == nil || r.Unusable == nil || *r.Unusable != 0 {
		t.Errorf("refused: %+v, error %v", r, err)
	}
	if r, err := RunSweep(t.Context(), Sweep{}); err == nil || r.Unusable != nil {
		t.Errorf("no arm: %+v, error %v", r, err)
	}
	arm := func() Arm {
		_, s := family(1)
		s.answer = func(int, pruner.Batch) (pruner.Result, error, bool) {
			return pruner.Result{Examined: 3, Unusable: 3, Raised: 2, End: true}, nil, true
		}
		return Arm{Pruner: s, Cutoff: cutoff}
	}
	r, err := RunSweep(t.Context(), Sweep{Arms: []Arm{arm(), arm()}})
	if err != nil || !r.Drained() || r.Unusable == nil || *r.Unusable != 6 || r.Raised != 4 {
		t.Errorf("two arms: %+v, error %v; want 6 unusable and 4 raised", r.Report, err)
	}
}

// The reference model with children and what is owed: a drain ends at any limit, with exact sums, and takes no more and no
// less than what is due.
func TestFamiliesOfTheModel(t *testing.T) {
	mails := policy.Name{Schema: "public", Table: "mails"}
	key := []policy.ChildKey{{Parent: "id", Child: "job"}}
	s := sweep
	s.Batch.Limit = 20
	s.Guard = policy.Guard{Owed: &policy.OwedGuard{Table: mails, Key: key, Column: "state", Terminal: policy.Texts("sent")}}
	s.Children = []policy.Child{{Table: mails, Key: key}}
	for _, limit := range []int{1, 2, 7, 20} {
		b := newBench(s)
		of := []int{0, 3, 50, 19, 20, 21, 2, 130, 1, 0} // mails of each job
		id := int64(0)
		for i, n := range of {
			job := int64(i + 1)
			at := now.AddDate(0, 0, -30).Add(time.Duration(job) * time.Second)
			b.table.Insert(memory.Row{ID: job, Age: &at, Columns: map[string]policy.Value{"id": policy.Int(job)}})
			for range n {
				id++
				b.table.InsertInto(mails, memory.Row{ID: id, Columns: map[string]policy.Value{"job": policy.Int(job), "state": policy.Text("sent")}})
			}
		}
		b.table.UpdateIn(mails, 2, func(r *memory.Row) { r.Columns["state"] = policy.Text("queued") }) // of job 2
		b.table.Refuse(7, pins)
		b.table.LockIn(mails, 51) // of job 3, in its second chunk or a later one
		b.spy.after = func(n int) {
			if n == 400 {
				t.Fatal("it spins")
			}
		}
		r, err := b.run(t, Bounds{Limit: limit})
		if got := b.table.IDs(); !slices.Equal(got, []int64{2, 3, 7}) || r.Stop != StopStuck || err != nil {
			t.Errorf("limit %d: jobs %v are left, stop %q, error %v; want 2, 3 and 7, stuck", limit, got, r.Stop, err)
		}
		left := len(b.table.IDsIn(mails))
		if r.Removed != 7 || r.Children != int(id)-left || r.Held != 1 || r.Stuck != 1 || r.Locked != 1 || left < 3+2+1 || left > 3+2+50 {
			t.Errorf("limit %d: report %+v, %d of %d mails are left", limit, r, left, id)
		}
	}
}

// The limit is found by what goes, children too.
func TestPaceLearnsFromChildren(t *testing.T) {
	perRow := func(_ pruner.Batch, res pruner.Result) time.Duration {
		return time.Duration(res.Examined+res.Children) * 50 * time.Microsecond // 2000 in the target of 100ms
	}
	settled := func(whole int, children []int) []int {
		_, s := family(whole, children...)
		s.cost = perRow
		if r, err := runOf(s, Bounds{Limit: 50_000}); err != nil || !r.Drained() {
			t.Fatalf("stop %q, error %v", r.Stop, err)
		}
		return s.limits()[10:]
	}
	for name, c := range map[string]struct {
		whole    int
		children []int
	}{
		"chunks": {100, []int{100_000}}, "few children each": {5000, slices.Repeat([]int{9}, 10_000)},
		"more each than the limit": {5000, slices.Repeat([]int{4000}, 30)},
	} {
		t.Run(name, func(t *testing.T) {
			for i, l := range settled(c.whole, c.children) {
				if l < 1500 || l > 2700 {
					t.Errorf("batch %d has the limit %d; want about 2000", i+11, l)
				}
			}
		})
	}
}
