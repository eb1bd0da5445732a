package memory

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Row is a row of a Table, or of another table that refers to it. Age nil is null; a column that is not in Columns is null.
type Row struct {
	ID      int64
	Age     *time.Time
	Columns map[string]policy.Value
}

// Key is the key of an owner, made by KeyOf.
type Key string

// KeyOf is the key of the owner whose key columns hold these values, in the order of the guard's key. A null among them
// makes it "", the key of no owner.
func KeyOf(vs ...policy.Value) Key {
	parts := make([]string, len(vs))
	for i, v := range vs {
		if v.IsNull() {
			return ""
		}
		parts[i] = v.String()
	}
	return Key("=" + strings.Join(parts, "\x00"))
}

// Table is a table in memory, with the table of its owners and those that refer to it. It is safe for concurrent use. The
// zero Table is empty.
type Table struct {
	// OnExamined, if set, is called in the middle of each batch: its rows are examined and none is removed yet. What it
	// changes in the table has come from another session.
	OnExamined func(ids []int64)
	// NoSkip takes away the right to lock rows, so that SkipLocked is not possible.
	NoSkip bool

	mu        sync.Mutex
	rows      map[int64]*row
	owners    map[Key]owner
	others    map[policy.Name]map[int64]*row // that refer to it, or to one another
	tableLock string
	changes   int // counts inserts and updates
}

type row struct {
	Row
	version int          // the change it comes from, like the place of a row version on disk
	lock    lock         // held by another session
	refuses pruner.Block // an error of the database
	vetoes  pruner.Block // a trigger that keeps the row in silence
}

type owner struct {
	state  policy.Value
	locked bool
}

type lock int

const (
	unlocked lock = iota
	rowLock
	deepLock // met by a key or a trigger only, where SKIP LOCKED does not reach
)

// Insert adds rows. A row with the ID of one that exists takes its place.
func (t *Table) Insert(rows ...Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[int64]*row{}
	}
	t.insert(t.rows, rows)
}

func (t *Table) insert(in map[int64]*row, rows []Row) {
	for _, r := range rows {
		r.Columns = maps.Clone(r.Columns)
		t.changes++
		in[r.ID] = &row{Row: r, version: t.changes}
	}
}

// Update changes a row, if it is there.
func (t *Table) Update(id int64, change func(*Row)) { t.with(id, t.changed(change)) }

func (t *Table) changed(change func(*Row)) func(*row) {
	return func(r *row) {
		r.Columns = maps.Clone(r.Columns)
		change(&r.Row)
		t.changes++
		r.version = t.changes
	}
}

// Delete removes rows as another session would.
func (t *Table) Delete(ids ...int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.rows, id)
	}
}

// SetOwner makes an owner, or changes its state.
func (t *Table) SetOwner(k Key, state policy.Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owners == nil {
		t.owners = map[Key]owner{}
	}
	o := t.owners[k]
	o.state = state
	t.owners[k] = o
}

// DeleteOwner removes an owner: its rows are orphans.
func (t *Table) DeleteOwner(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.owners, k)
}

// Lock locks a row as another session would: a batch that must remove it waits in vain, one that skips locked rows passes.
func (t *Table) Lock(id int64) { t.with(id, func(r *row) { r.lock = rowLock }) }

// LockDeep locks what a key or a trigger needs for the removal of the row: skipping locked rows does not help.
func (t *Table) LockDeep(id int64) { t.with(id, func(r *row) { r.lock = deepLock }) }

// LockOwner locks an owner that is there. A batch never waits for it.
func (t *Table) LockOwner(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.owners[k]; ok {
		o.locked = true
		t.owners[k] = o
	}
}

// LockTable locks the table as a whole: every batch waits in vain.
func (t *Table) LockTable(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tableLock = name
}

// Unlock takes away every lock.
func (t *Table) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tableLock = ""
	for _, r := range t.rows {
		r.lock = unlocked
	}
	for _, rows := range t.others {
		for _, r := range rows {
			r.lock = unlocked
		}
	}
	for k, o := range t.owners {
		o.locked = false
		t.owners[k] = o
	}
}

// Refuse makes the database refuse to delete the row, as a foreign key does.
func (t *Table) Refuse(id int64, by pruner.Block) { t.with(id, func(r *row) { r.refuses = by }) }

// Veto makes a trigger keep the row without an error.
func (t *Table) Veto(id int64, by pruner.Block) { t.with(id, func(r *row) { r.vetoes = by }) }

// IDs lists the rows that are there, in the order of their IDs.
func (t *Table) IDs() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.rows))
}

func (t *Table) with(id int64, do func(*row)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.rows[id]; ok {
		do(r)
	}
}
