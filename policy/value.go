package policy

import (
	"slices"
	"strconv"
	"strings"
)

// Name is the name of a table, exactly as in the catalog: no folding, no quotes.
type Name struct{ Schema, Table string }

// String is schema.table, for messages; statements quote each part.
func (n Name) String() string {
	if n.Schema == "" {
		return n.Table
	}
	return n.Schema + "." + n.Table
}

// IsZero reports whether no table is named.
func (n Name) IsZero() bool { return n == Name{} }

// Kind says what a [Value] was written as.
type Kind int

// The kinds of a Value. The zero Kind is null.
const (
	KindNull Kind = iota
	KindText
	KindInt
	KindBool
)

// Value is a state or a value of a match: text, a whole number, true, false or null, compared as the column's own type.
// The zero Value is null. Values are comparable with ==.
type Value struct {
	kind Kind
	text string
}

// Null is the zero Value, with a name.
var Null = Value{}

// Text returns the value of a text.
func Text(s string) Value { return Value{KindText, s} }

// Int returns the value of a whole number.
func Int(n int64) Value { return Value{KindInt, strconv.FormatInt(n, 10)} }

// Bool returns true or false as a value.
func Bool(b bool) Value { return Value{KindBool, strconv.FormatBool(b)} }

// Texts returns the values of several texts.
func Texts(s ...string) []Value {
	v := make([]Value, len(s))
	for i := range s {
		v[i] = Text(s[i])
	}
	return v
}

// Kind says what the value was written as.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// String is the value as PostgreSQL's input functions read it, "null" for null.
func (v Value) String() string {
	if v.IsNull() {
		return "null"
	}
	return v.text
}

// JoinValues lists values for a message.
func JoinValues(vs []Value) string {
	s := make([]string, len(vs))
	for i := range vs {
		s[i] = vs[i].String()
	}
	return strings.Join(s, ", ")
}

// Match is one condition of `only`: a column and the values it may have, null among them, or may not have. With Not,
// null passes unless null is one of the values.
type Match struct {
	Column string
	Values []Value
	Not    bool
}

// Matches reports whether a row whose column holds v passes.
func (m Match) Matches(v Value) bool { return slices.Contains(m.Values, v) != m.Not }

// Scalar reports whether the match is column = value with one value that is not null: an equality that an index can lead
// with.
func (m Match) Scalar() bool { return !m.Not && len(m.Values) == 1 && !m.Values[0].IsNull() }

// plain reports whether the match is one simple condition, from which a planner can prove the predicate of an index: a
// list without null, null, or not null.
func (m Match) plain() bool {
	null := slices.Contains(m.Values, Null)
	return !m.Not && !null || null && len(m.Values) == 1
}
