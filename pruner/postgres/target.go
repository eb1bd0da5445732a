package postgres

import (
	"hash/fnv"

	"github.com/prunectl/prunectl/policy"
)

// target is one arm with all that the catalog says about it: what the statements are rendered from.
type target struct {
	sweep    policy.Sweep // with its defaults
	arm      policy.Arm
	table    *table
	owner    *table   // nil without an owner guard
	index    index    // the index that serves the arm
	expiry   string   // where the arm's range is one of expiries: the generated column, "" for an expression
	owed     *child   // guard.owed: nil without
	children []*child // in the order in which their rows go: the deepest first
	ties     ties
	triggers []trigger // that fire on delete
	cascades bool      // a chain of cascades leads back to the target
	gate     bool      // one sweeper at a time
}

// served is an arm with the index that serves it.
type served struct {
	arm    policy.Arm
	index  index
	at     int    // which of the index's columns the range is one of
	expiry string // see target
}

// serve makes the target that of one arm.
func (t *target) serve(s served) {
	t.arm, t.index, t.expiry = s.arm, s.index, s.expiry
	t.ties = tiesOf(t.table, s.index, s.arm, s.at)
}

// ties are the columns by which rows of one age are walked: the further columns of the serving index, where they make,
// with the age and the arm's equalities, a unique key of NOT NULL columns. None: such rows have no order to go by.
type ties struct {
	columns []column
	desc    bool
}

// tiesOf reads the ties from the index, whose column at is what the range is one of. Columns of mixed direction, that one
// among them, cannot be compared as a row, so they give none.
func tiesOf(t *table, x index, arm policy.Arm, at int) ties {
	if at < 0 || at+1 == len(x.columns) {
		return ties{}
	}
	var ts ties
	ts.desc = x.desc[at]
	known := []string{x.columns[at]}
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
	if t.unique(known) {
		return ts
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
