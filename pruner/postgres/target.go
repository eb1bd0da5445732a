package postgres

import (
	"hash/fnv"
	"slices"

	"github.com/prunectl/prunectl/policy"
)

// target is one arm with all that the catalog says about it: what the statements are rendered from.
type target struct {
	sweep    policy.Sweep // with its defaults
	arm      policy.Arm
	table    *table
	owner    *table // nil without an owner guard
	index    index  // the index that serves
	ties     ties
	triggers []trigger // that fire on delete
	cascades bool      // a chain of cascades leads back to the target
	gate     bool      // one sweeper at a time
}

// ties are the columns by which rows of one age are walked: the further columns of the serving index, where they make,
// with the age and the arm's equalities, a unique key of NOT NULL columns. None: such rows have no order to go by.
type ties struct {
	columns []column
	desc    bool
}

// tiesOf reads the ties from the index. Columns of mixed direction, the age among them, cannot be compared as a row, so
// they give none.
func tiesOf(t *table, x index, arm policy.Arm, age string) ties {
	at := slices.Index(x.columns, age)
	if at < 0 || at+1 == len(x.columns) {
		return ties{}
	}
	var ts ties
	ts.desc = x.desc[at]
	known := []string{age}
	for _, e := range arm.Equal {
		known = append(known, e.Column)
	}
	for i := at + 1; i < len(x.columns); i++ {
		c, ok := t.column(x.columns[i])
		if !ok || !c.notNull || x.desc[i] != ts.desc || x.collations[i] != c.collation {
			return ties{}
		}
		ts.columns = append(ts.columns, c)
		known = append(known, c.name)
	}
	for _, u := range t.indexes {
		if !u.unique || !u.valid || !u.immediate || u.predicate != "" {
			continue
		}
		if !slices.ContainsFunc(u.columns, func(c string) bool {
			col, ok := t.column(c)
			return !ok || !col.notNull || !slices.Contains(known, c)
		}) {
			return ts
		}
	}
	return ties{}
}

// exact reports whether the server's statistics of the transaction count what was removed: RETURNING is the reference and
// reads every row once more; the statistics count the same where nothing but the batch deletes from the table.
func (t *target) exact() bool {
	return t.table.statistics && len(t.triggers) == 0 && !t.cascades
}

// lockKey is what keeps two sweepers of one sweep apart. Other sweeps, tables and databases have other keys, or locks of
// their own.
func (t *target) lockKey() int64 {
	h := fnv.New64a()
	for _, s := range []string{"prunectl", t.table.name.Schema, t.table.name.Table, t.sweep.Name} {
		_, _ = h.Write(append([]byte(s), 0))
	}
	return int64(h.Sum64())
}

// col is a column of the target, which the inspection has found.
func (t *target) col(name string) column {
	c, _ := t.table.column(name)
	return c
}
