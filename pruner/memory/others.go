package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prunectl/prunectl/policy"
)

// InsertInto adds rows to another table, whose rows refer to those of this one, or of a third, by their columns. It may be
// of children, of rows that are owed, or both. A row with the ID of one that exists takes its place.
func (t *Table) InsertInto(other policy.Name, rows ...Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == nil {
		t.others = map[policy.Name]map[int64]*row{}
	}
	if t.others[other] == nil {
		t.others[other] = map[int64]*row{}
	}
	t.insert(t.others[other], rows)
}

// UpdateIn changes a row of another table, if it is there.
func (t *Table) UpdateIn(other policy.Name, id int64, change func(*Row)) {
	t.withIn(other, id, t.changed(change))
}

// DeleteIn removes rows of another table as another session would.
func (t *Table) DeleteIn(other policy.Name, ids ...int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.others[other], id)
	}
}

// LockIn locks a row of another table: a batch that must remove it waits in vain, one that skips locked rows too.
func (t *Table) LockIn(other policy.Name, id int64) {
	t.withIn(other, id, func(r *row) { r.lock = rowLock })
}

// IDsIn lists the rows of another table that are there, in the order of their IDs.
func (t *Table) IDsIn(other policy.Name) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.others[other]))
}

func (t *Table) withIn(other policy.Name, id int64, do func(*row)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.others[other][id]; ok {
		do(r)
	}
}

// referring lists the rows of another table that refer to the row by this key, in the order of their IDs.
func (t *Table) referring(other policy.Name, key []policy.ChildKey, to *row) []*row {
	var rows []*row
	for _, r := range t.others[other] {
		if !slices.ContainsFunc(key, func(k policy.ChildKey) bool {
			v := r.Columns[k.Child]
			return v.IsNull() || v != to.Columns[k.Parent]
		}) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// child is a row of another table that goes with a row.
type child struct {
	table policy.Name
	*row
}

// family lists all that goes with a row, each child behind its own children: a beginning of the list can go alone.
func (t *Table) family(of *row, children []policy.Child) []child {
	var all []child
	for _, c := range children {
		for _, r := range t.referring(c.Table, c.Key, of) {
			all = append(append(all, t.family(r, c.Children)...), child{c.Table, r})
		}
	}
	return all
}

func (t *Table) deleteChildren(cs []child) {
	for _, c := range cs {
		delete(t.others[c.table], c.ID)
	}
}
