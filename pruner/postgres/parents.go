package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/pruner"
)

// firstLook is the part of a batch's limit that is looked at first: how many children parents have is seen only then.
const firstLook = 4

// looks is how many parents a batch looks at, and how many rows a parent may bring along and still go whole.
type looks struct{ parents, whole int }

// batchOfParents is one batch in the parent form.
func (a *Arm) batchOfParents(ctx context.Context, conn *pgx.Conn, b pruner.Batch, at place) (pruner.Result, error) {
	if b.After.IsZero() || a.looks.parents == 0 {
		a.looks = looks{parents: max(1, b.Limit/firstLook), whole: a.sweep.Batch.Limit}
	}
	if !a.keyed() && countTIDs(at.Passed) > maxPassed*max(b.Limit, a.sweep.Batch.Limit) { // the limit of a search by halves says nothing of a group
		return a.unordered(b, at), nil
	}
	whole := max(a.looks.whole, b.Limit)
	s := shape{mode: b.Mode, next: a.keyed() && at.Key != nil, chunk: at.Chunk != nil}
	look := min(a.looks.parents, b.Limit)
	args := a.values(b, at)
	args[argLook], args[argWhole] = strconv.Itoa(look), strconv.Itoa(whole)
	var table *child
	if s.chunk {
		if at.Chunk.Table < 0 || at.Chunk.Table >= len(a.children) {
			return pruner.Result{}, fmt.Errorf("%q is no cursor of this arm", b.After)
		}
		table = a.children[at.Chunk.Table]
		args[argChunk] = at.Chunk.Parent
		for i, k := range at.Chunk.Key {
			args[argLast+strconv.Itoa(i)] = k
		}
	}
	var row parentsRow
	res, err := a.send(ctx, conn, b, a.parentCalls(s, table, at, args), func(answers []answer) (r pruner.Result, xid string, bad error) {
		r, row, xid, bad = a.countParents(answers, s)
		return r, xid, bad
	})
	var timeout *pruner.TimeoutError
	switch {
	case errors.As(err, &timeout):
		a.looks.whole = max(1, min(whole, 2*b.Limit)/2) // what does not end in time as a whole goes in parts
		return pruner.Result{}, err
	case err != nil:
		return pruner.Result{}, err
	case res.Busy:
		return res, nil
	case s.chunk:
		a.afterChunk(&res, row, at, b)
		return res, nil
	}
	a.afterParents(&res, row, at, b.Limit, look)
	return res, nil
}

// parentCalls are the statements of a batch, between its settings and its end.
func (a *Arm) parentCalls(s shape, table *child, at place, args map[string]string) []call {
	calls := []call{a.settingsSQL().with(args), a.statement(s).with(args)}
	if !s.deletes() {
		return calls
	}
	calls = append(calls, call{sql: nearKeysSQL})
	if a.owed != nil {
		calls = append(calls, a.step(s, "recheck", a.recheckSQL()).with(args))
	}
	if table != nil {
		calls = append(calls, a.step(s, "chunk", a.chunkSQL(table, len(at.Chunk.Key) > 0)).with(args))
	} else {
		for _, c := range a.children {
			calls = append(calls, a.step(s, "child "+c.table.name.String(), a.childSQL(c)).with(args))
		}
	}
	return append(calls, a.step(s, "parents", a.parentSQL()).with(args), a.step(s, "after", a.afterParentsSQL()).with(args))
}

func (s shape) deletes() bool { return s.mode == pruner.Remove || s.mode == pruner.SkipLocked }

// step is a statement after the first, which a test may change.
func (a *Arm) step(s shape, name string, st statement) statement {
	if a.editStep != nil {
		st.sql = a.editStep(s, name, st.sql)
	}
	return st
}

// parentStatements lists the statements of a batch in the parent form.
func (a *Arm) parentStatements() []Statement {
	all := []Statement{{"settings", a.settingsSQL().sql}, {"batch", a.statement(shape{}).sql}, {"keys", nearKeysSQL}}
	if a.owed != nil {
		all = append(all, Statement{"recheck", a.recheckSQL().sql})
	}
	for _, c := range a.children {
		all = append(all, Statement{"child " + c.table.name.String(), a.childSQL(c).sql})
	}
	return append(all, Statement{"parents", a.parentSQL().sql}, Statement{"after", a.afterParentsSQL().sql})
}

// parentsRow is what the steps of a batch answered.
type parentsRow struct {
	ok       bool
	next, at *int64 // microseconds: the age of the first row that is left, and of the last that was examined
	wide     string // the address of the first row that is left, where it has to be emptied in chunks
	last     []string
	passed   string

	picked bool // some are locked, due, and still not owed

	seen, gone int // of a chunk: children looked at and removed
	lastChild  []string
}

// countParents reads the answers of the steps.
func (a *Arm) countParents(answers []answer, s shape) (res pruner.Result, row parentsRow, xid string, err error) {
	shapeless := fmt.Errorf("batch on %s: the server's answer has another shape than the statements", a.table.name)
	if len(answers) < 2 || len(answers[1]) != 16 {
		return res, row, "", shapeless
	}
	p := parser{}
	first := answers[1]
	row.ok = first[9].text == "t"
	if !row.ok {
		return pruner.Result{Busy: true}, row, "", nil
	}
	res = pruner.Result{
		Examined: p.int(first[0]), Outside: p.int(first[1]), Unusable: p.int(first[2]), Held: p.int(first[3]) + p.int(first[4]),
		Orphan: p.int(first[5]), Locked: p.int(first[6]), Raised: p.int(first[7]),
	}
	picked := p.int(first[8])
	row.next, row.wide, row.at = p.optional(first[11]), first[12].text, p.optional(first[13])
	row.last, row.passed = p.key(first[14]), first[15].text
	rest := answers[2:]
	if !s.deletes() {
		if s.mode == pruner.StepStuck {
			res.Stuck = picked
		} else {
			res.Locked += picked
		}
		return res, row, "", p.err
	}
	want := 1 + len(a.children) + 2
	if s.chunk {
		want = 1 + 1 + 2
	}
	if a.owed != nil {
		want++
	}
	if len(rest) != want {
		return res, row, "", shapeless
	}
	rest = rest[1:] // settings
	if a.owed != nil {
		free := p.int(rest[0][0])
		res.Moved += picked - free
		picked = free
		rest = rest[1:]
	}
	row.picked = picked > 0
	tables := rest[:len(rest)-2]
	if s.chunk {
		row.gone, row.seen, row.lastChild = p.int(tables[0][0]), p.int(tables[0][1]), p.key(tables[0][2])
		res.Children = row.gone
	} else {
		for _, t := range tables {
			res.Children += p.int(t[0])
		}
	}
	removed, after := p.int(rest[len(rest)-2][0]), rest[len(rest)-1]
	left, owed, kids := p.int(after[0]), p.int(after[1]), p.int(after[4])
	xid, row.passed = after[2].text, after[3].text
	res.Removed = removed
	res.Moved += owed
	if alone := left - owed - kids; alone > 0 {
		res.Stuck = alone
		res.Blocked = []pruner.Block{{Constraint: a.vetoers(), Table: a.table.name.String(), Rows: alone}}
	}
	if kids > 0 {
		if by, vetoed := a.childVetoers(); vetoed {
			by.Rows = kids
			res.Stuck += kids
			res.Blocked = append(res.Blocked, by)
		} else {
			res.Moved += kids // a child that changed while the batch waited for it, or came since
		}
	}
	return res, row, xid, p.err
}

// childVetoers names the triggers that can keep a child from being deleted without an error.
func (a *Arm) childVetoers() (by pruner.Block, ok bool) {
	var names []string
	for _, c := range a.children {
		for _, t := range c.triggers {
			if t.before && t.row {
				names = append(names, t.name)
				by.Table = cmp.Or(by.Table, c.table.name.String())
			}
		}
	}
	by.Constraint = strings.Join(names, ", ")
	return by, len(names) > 0
}

// optional is a number, nil for a null.
func (p *parser) optional(f field) *int64 {
	if f.null {
		return nil
	}
	n := p.int64(f)
	return &n
}

// key is a list of texts, nil for a null.
func (p *parser) key(f field) (key []string) {
	if f.null {
		return nil
	}
	if err := json.Unmarshal([]byte(f.text), &key); err != nil && p.err == nil {
		p.err = fmt.Errorf("the server answered %q where a key is due", f.text)
	}
	return key
}

// afterParents says where the next batch goes on, and how many parents it looks at.
func (a *Arm) afterParents(res *pruner.Result, row parentsRow, at place, limit, look int) {
	next := at
	next.Group = false
	if res.Examined > 0 {
		next = a.behindParent(row, at)
	}
	res.End = row.next == nil
	if row.wide != "" {
		next.Chunk = &chunk{Parent: row.wide}
		res.End = false
	}
	res.Next = next.cursor()
	// A quarter more than had room this time: what is looked at and left was probed, counted and locked for nothing.
	switch used := res.Examined + res.Children; {
	case res.End:
	case res.Examined < look:
		a.looks.parents = res.Examined + res.Examined/4 + 1
	case used < limit:
		a.looks.parents = min(limit, 2*look, look*limit/max(1, used)+look/4+1)
	}
}

// behindParent is the place behind the last row that was examined.
func (a *Arm) behindParent(row parentsRow, at place) place {
	switch {
	case a.keyed():
		return place{Age: *row.at, Key: row.last}
	case row.next == nil:
		return at
	}
	return passing(at, *row.next, row.passed)
}

// passing is the place at an age where no index orders the rows, past these.
func passing(at place, age int64, passed string) place {
	if age == at.Age {
		passed = join(at.Passed, passed)
	}
	if passed == "{}" {
		passed = ""
	}
	return place{Age: age, Passed: passed}
}

// afterChunk says where the next batch goes on: with the next children of the parent, with the next table of them, or
// behind the parent, which is gone or stays. A parent that is not due any more, or that somebody holds, is passed over; one
// that has another address is left to the batch that meets it again.
func (a *Arm) afterChunk(res *pruner.Result, row parentsRow, at place, b pruner.Batch) {
	c := *at.Chunk
	next := at
	next.Chunk = nil
	behind := func() {
		if a.keyed() {
			next = place{Age: *row.at, Key: row.last}
		} else {
			next = passing(at, *row.at, "{\""+c.Parent+"\"}")
		}
	}
	stays := res.Stuck+res.Moved > 0
	switch more := row.seen == b.Limit && (row.gone > 0 || len(row.lastChild) > 0 && !slices.Equal(row.lastChild, c.Key)); {
	case steps(b.Mode):
		if res.Examined > 0 {
			behind()
		}
	case !row.picked && res.Examined > 0:
		behind() // it is held, owed or locked, and counted so
	case !row.picked:
		*res = pruner.Result{} // it has another address by now, or is gone
	case more:
		*res = pruner.Result{Children: res.Children}
		c.Key = row.lastChild
		next.Chunk = &c
	case c.Table+1 < len(a.children):
		*res = pruner.Result{Children: res.Children}
		c.Table, c.Key = c.Table+1, nil
		next.Chunk = &c
	case stays:
		behind()
	}
	res.Next = next.cursor()
}

// countTIDs is the length of a list of addresses.
func countTIDs(list string) int { return strings.Count(list, "(") }
