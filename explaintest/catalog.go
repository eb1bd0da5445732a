package explaintest

import (
	"fmt"
	"slices"
)

// Catalog is what a plan's text does not say of the tables and indexes in it. The runner in pgxplan fills it; who parses text
// alone may fill in what the rules need: the columns of an index for its bounds, the parents of partitions.
type Catalog struct {
	Tables  []Table
	Indexes []Index
}

// Table is a table that a plan reads.
type Table struct {
	Name     Name
	Parents  []Name // the partitioned tables, or inheritance parents, that it belongs to, at any distance
	Analyzed bool   // it has statistics
	Rows     int64  // by its statistics
	Pages    int64  // by its statistics
}

// Index is an index that a plan uses.
type Index struct {
	Name    Name
	Method  string   // "btree" if empty
	Columns []string // its key columns in order, or their expressions, as pg_get_indexdef(index, n, false) writes them
	Parents []Name   // the partitioned indexes that it belongs to, at any distance
}

func (c Catalog) table(n Name) (Table, bool) {
	i := slices.IndexFunc(c.Tables, func(t Table) bool { return n.fits(t.Name) })
	if i < 0 {
		return Table{}, false
	}
	return c.Tables[i], true
}

func (c Catalog) index(n Name) (Index, bool) {
	i := slices.IndexFunc(c.Indexes, func(x Index) bool { return n.fits(x.Name) })
	if i < 0 {
		return Index{}, false
	}
	return c.Indexes[i], true
}

// isTable says whether a table is the wanted one or a partition of it.
func (c Catalog) isTable(want, is Name) bool {
	t, _ := c.table(is)
	return want.fits(is) || slices.ContainsFunc(t.Parents, want.fits)
}

// isIndex says whether an index is the wanted one or a partition's part of it.
func (c Catalog) isIndex(want, is Name) bool {
	x, _ := c.index(is)
	return want.fits(is) || slices.ContainsFunc(x.Parents, want.fits)
}

// EnoughPages is the size from which on the planner has a choice: to read so many pages costs it some ten times as much as
// to look up a row in an index. A smaller table is rightly read whole.
const EnoughPages = 100

// Enough is an error where the planner has no choice, or does not know that it has: the table is small or was never analysed.
func (t Table) Enough() error {
	switch {
	case !t.Analyzed:
		return fmt.Errorf("%s was never analysed, so the planner guesses: ANALYZE it first", t.Name)
	case t.Pages < EnoughPages:
		return fmt.Errorf("%s has %d rows in %d pages by its statistics, and a table of less than %d pages is rightly read whole: fill in more rows, and ANALYZE it", t.Name, t.Rows, t.Pages, EnoughPages)
	}
	return nil
}
