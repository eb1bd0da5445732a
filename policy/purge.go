package policy

import (
	"time"
)

// Purge is one named removal by whose a row is, not by how old it is: which tables hold the rows of one tenant, in the
// order in which they go. Zero fields of Batch and Timeouts mean their documented defaults. Its commits wait for the disk.
type Purge struct {
	Name     string        // [a-z][a-z0-9_]{0,47}
	Key      string        // the column that says whose a row is, of every table that names no other
	Tables   []PurgeTable  // a table whose rows refer to another's stands before it
	Exclude  []Exclusion   // tables that have such a column, and whose rows stay
	Batch    Batch         // rows of one transaction
	Timeouts Timeouts      // of a batch
	Pause    time.Duration // between batches
	Set      []Setting     // set for the transaction of each batch
}

// PurgeTable is a table with a column that says whose a row is. Children are tables without one, whose rows are the
// tenant's because they refer to such a row; they go first, and ignore what a sweep would keep.
type PurgeTable struct {
	Table    Name
	Column   string // "": Purge.Key
	Children []Child
}

// Exclusion is a table that keeps its rows, and the reason, which the receipt repeats.
type Exclusion struct {
	Table  Name
	Reason string
}

// WithDefaults is the purge with every zero field replaced by its documented default, and with the column of each table.
func (p Purge) WithDefaults() Purge {
	def(&p.Batch.Limit, DefaultLimit)
	def(&p.Batch.Target, DefaultTarget)
	def(&p.Timeouts.Statement, DefaultStatementTimeout)
	def(&p.Timeouts.Lock, DefaultLockTimeout)
	tables := make([]PurgeTable, len(p.Tables))
	for i, t := range p.Tables {
		def(&t.Column, p.Key)
		tables[i] = t
	}
	p.Tables = tables
	return p
}
