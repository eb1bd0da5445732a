package prunertest

import (
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// Schema makes the tables of a population, as PostgreSQL reads it; an index of [Indexes] is made beside it. Entries are
// swept, owners guard them, and a pin is a foreign key that keeps an entry in place. Parts are the children of entries, or
// owed to them, and notes are the children of parts.
const Schema = `
create table owners (
  tenant text not null,
  id bigint not null,
  state text,
  primary key (tenant, id));
create table entries (
  id bigint primary key,
  age timestamptz,
  state text,
  kind text,
  owner_tenant text,
  owner_id bigint,
  hold boolean,
  own bigint,
  span interval generated always as (own * interval '1 second') stored,
  expires timestamptz generated always as (((age at time zone 'UTC') + own * interval '1 second') at time zone 'UTC') stored);
create table pins (
  entry_id bigint not null constraint ` + PinConstraint + ` references entries (id));
create index pins_entry_id on pins (entry_id);
create table parts (
  id bigint primary key,
  entry_id bigint not null references entries (id),
  name text not null,
  state text,
  unique (entry_id, name));
create index parts_owed on parts (entry_id, state);
create table notes (
  id bigint primary key,
  part_id bigint not null references parts (id));
create index notes_part_id on notes (part_id);
`

// The names of Schema. The tables are in the schema public; a Factory that makes its populations elsewhere changes the
// tables of the Fixture's Sweep with [Moved].
const (
	Table         = "entries"
	OwnerTable    = "owners"
	PinTable      = "pins"
	PinConstraint = "pins_entry_id_fkey"
	PartTable     = "parts"
	NoteTable     = "notes"
	IndexName     = "entries_retention"
	OwnIndexName  = "entries_own"
)

// Index is an index that serves a population. It is named IndexName, or OwnIndexName if it serves rows with a window of
// their own alone.
type Index struct {
	Name    string
	Columns []string
	Where   []string // the columns of its predicate, for a partial one
	Expiry  int      // see policy.Index
	DDL     string
}

func index(columns string, names ...string) Index { return named(IndexName, columns, names) }

func named(name, columns string, names []string) Index {
	return Index{Name: name, Columns: names, DDL: "create index " + name + " on entries (" + columns + ")"}
}

func partial(ix Index, predicate string, columns ...string) Index {
	ix.Where, ix.DDL = columns, ix.DDL+" where "+predicate
	return ix
}

// own is an index of the rows with a window of their own.
func own(expiry int, columns string, names ...string) Index {
	ix := partial(named(OwnIndexName, columns, names), "own is not null", "own")
	ix.Expiry = expiry
	return ix
}

// The indexes that the suite asks for.
var (
	// AgeUnique is led by the age, and its further column makes it unique.
	AgeUnique = index("age, id", "age", "id")
	// AgeAlone has nothing to tell equal ages apart.
	AgeAlone = index("age", "age")
	// StateAge is led by the state: one arm a terminal state.
	StateAge = index("state, age, id", "state", "age", "id")
	// KindAge is led by a column of `only`.
	KindAge = index("kind, age, id", "kind", "age", "id")
	// AgeTerminal is led by the age, and holds terminal rows only.
	AgeTerminal = partial(AgeUnique, "state in ('completed', 'failed', 'cancelled')", "state")
	// AgeExpires holds rows with an age only.
	AgeExpires = partial(AgeUnique, "age is not null", "age")
	// DefaultAge holds rows without a window of their own only.
	DefaultAge = partial(AgeUnique, "own is null", "own")
	// OwnExpiry is led by the end of a row's own window.
	OwnExpiry = own(1, "expires, id", "expires", "id")
	// OwnAge is led by the age of rows with a window of their own.
	OwnAge = own(0, "age, id", "age", "id")
	// OwnDays is led by the end of a row's own window in days, an expression.
	OwnDays = own(1, "(((age at time zone 'UTC') + own * interval '1 day') at time zone 'UTC'), id", "", "id")
)

// Indexes lists every index that a Fixture may have as its Index.
func Indexes() []Index {
	return []Index{AgeUnique, AgeAlone, StateAge, KindAge, AgeTerminal, AgeExpires, DefaultAge}
}

// OwnIndexes lists every index that a Fixture may have as its OwnIndex.
func OwnIndexes() []Index { return []Index{OwnExpiry, OwnAge, OwnDays} }

func (ix Index) shape() policy.Index {
	return policy.Index{Name: ix.Name, Columns: ix.Columns, Where: ix.Where, Expiry: ix.Expiry}
}

// Fixture describes a population: what a Factory has to make.
type Fixture struct {
	Sweep    policy.Sweep
	Index    Index
	OwnIndex Index // for the rows with a window of their own; none: Index serves them too
	Rows     []Row // to be inserted in this order
	Owners   []Owner
}

// Arms cuts a sweep of the Fixture into the arms that its indexes give.
func (f Fixture) Arms(s policy.Sweep) []policy.Arm {
	ix := f.Index
	if f.OwnIndex.DDL != "" {
		ix = f.OwnIndex
	}
	return append(s.Arms(f.Index.shape()), s.OwnArms(ix.shape())...)
}

// DDL makes the tables and the indexes.
func (f Fixture) DDL() string { return Schema + f.Index.DDL + ";" + f.OwnIndex.DDL + ";" }

// Tables lists the tables of Schema in an order in which they can be emptied.
func Tables() []string { return []string{NoteTable, PartTable, PinTable, Table, OwnerTable} }

// Moved is the sweep with every table in another schema.
func Moved(s policy.Sweep, schema string) policy.Sweep {
	s.Table.Schema = schema
	if g := s.Guard.Owner; g != nil {
		there := *g
		there.Table.Schema = schema
		s.Guard.Owner = &there
	}
	if g := s.Guard.Owed; g != nil {
		there := *g
		there.Table.Schema = schema
		s.Guard.Owed = &there
	}
	s.Children = movedChildren(s.Children, schema)
	return s
}

func movedChildren(cs []policy.Child, schema string) []policy.Child {
	cs = slices.Clone(cs)
	for i := range cs {
		cs[i].Table.Schema = schema
		cs[i].Children = movedChildren(cs[i].Children, schema)
	}
	return cs
}

// Row is an entry. Values that are zero are null.
type Row struct {
	ID     int64
	Age    Age
	State  policy.Value
	Kind   policy.Value
	Tenant policy.Value
	Owner  policy.Value // a whole number
	Hold   policy.Value // true or false
	Own    policy.Value // a whole number; the column span is an interval of as many seconds
	Parts  []Part
}

// Part is a part of an entry. Its name is its number.
type Part struct {
	ID    int64
	State policy.Value
	Notes []int64
}

// Columns are the row's columns by their names in Schema, the age left out.
func (r Row) Columns() map[string]policy.Value {
	return map[string]policy.Value{"id": policy.Int(r.ID), "state": r.State, "kind": r.Kind, "owner_tenant": r.Tenant, "owner_id": r.Owner,
		"hold": r.Hold, "own": r.Own, "span": r.Own}
}

// Owner is an owner.
type Owner struct {
	Tenant string
	ID     int64
	State  policy.Value
}

// Age is a timestamptz. The zero Age is null.
type Age struct {
	infinite int
	at       *time.Time
}

// The ages that are no instant.
var (
	NoAge         Age
	Infinity      = Age{infinite: +1}
	MinusInfinity = Age{infinite: -1}
)

// At is the age t, of whole microseconds and after Christ.
func At(t time.Time) Age { return Age{at: &t} }

// Text is the age as PostgreSQL reads a timestamptz; nil is null.
func (a Age) Text() *string {
	var s string
	switch {
	case a.infinite > 0:
		s = "infinity"
	case a.infinite < 0:
		s = "-infinity"
	case a.at == nil:
		return nil
	default:
		s = a.at.UTC().Format("2006-01-02 15:04:05.999999Z07:00")
	}
	return &s
}

// Instant is the age as a time; nil is null. An infinite one is an instant beyond all others.
func (a Age) Instant() *time.Time {
	switch {
	case a.infinite > 0:
		t := time.Date(290000, 1, 1, 0, 0, 0, 0, time.UTC)
		return &t
	case a.infinite < 0:
		t := time.Date(-290000, 1, 1, 0, 0, 0, 0, time.UTC)
		return &t
	}
	return a.at
}

// String is the age for a message.
func (a Age) String() string {
	if s := a.Text(); s != nil {
		return *s
	}
	return "null"
}
