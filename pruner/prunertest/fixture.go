package prunertest

import (
	"time"

	"github.com/prunectl/prunectl/policy"
)

// Schema makes the tables of a population, as PostgreSQL reads it; an index of [Indexes] is made beside it. Entries are
// swept, owners guard them, and a pin is a foreign key that keeps an entry in place.
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
  owner_id bigint);
create table pins (
  entry_id bigint not null constraint ` + PinConstraint + ` references entries (id));
create index pins_entry_id on pins (entry_id);
`

// The names of Schema. Table and OwnerTable are in the schema public; a Factory that makes its populations elsewhere
// changes Sweep.Table and Sweep.Guard.Owner.Table of the Fixture.
const (
	Table         = "entries"
	OwnerTable    = "owners"
	PinTable      = "pins"
	PinConstraint = "pins_entry_id_fkey"
	IndexName     = "entries_retention"
)

// Index is an index that serves a population; each is named IndexName.
type Index struct {
	Columns []string
	Where   []string // the columns of its predicate, for a partial one
	DDL     string
}

func index(columns string, names ...string) Index {
	return Index{Columns: names, DDL: "create index " + IndexName + " on entries (" + columns + ")"}
}

func partial(ix Index, predicate string, columns ...string) Index {
	return Index{Columns: ix.Columns, Where: columns, DDL: ix.DDL + " where " + predicate}
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
)

// Indexes lists every index that a Fixture may have.
func Indexes() []Index { return []Index{AgeUnique, AgeAlone, StateAge, KindAge, AgeTerminal} }

// Arms cuts the sweep into the arms that the index gives.
func (ix Index) Arms(s policy.Sweep) []policy.Arm {
	return s.Arms(policy.Index{Name: IndexName, Columns: ix.Columns, Where: ix.Where})
}

// Fixture describes a population: what a Factory has to make.
type Fixture struct {
	Sweep  policy.Sweep
	Index  Index
	Rows   []Row // to be inserted in this order
	Owners []Owner
}

// Row is an entry. Values that are zero are null.
type Row struct {
	ID     int64
	Age    Age
	State  policy.Value
	Kind   policy.Value
	Tenant policy.Value
	Owner  policy.Value // a whole number
}

// Columns are the row's columns by their names in Schema, the age left out.
func (r Row) Columns() map[string]policy.Value {
	return map[string]policy.Value{"id": policy.Int(r.ID), "state": r.State, "kind": r.Kind, "owner_tenant": r.Tenant, "owner_id": r.Owner}
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
