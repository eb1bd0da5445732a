package policy

import "slices"

// Guard is the test that protects rows still needed. All parts that are given must let a row go. A guard with no part at
// all is a [Problem]: that nothing is owed has to be said, with the reason, in None.
type Guard struct {
	None  string      // nothing is owed, and why (at least 10 characters); stands alone
	Ended bool        // the age is null, or before Since, while the row lives
	State *StateGuard // by the row's own state
	Owner *OwnerGuard // by the state of its owner
	Owed  *OwedGuard  // by rows of another table that refer to it
	Hold  string      // the name of a boolean column: true protects, false and null let go
}

// StateGuard lets a row go by its own state: every state not in Terminal protects, null too.
type StateGuard struct {
	Column   string
	Terminal []Value
	Live     []Value // optional: makes the two lists complete, so that a value in neither is an error of `check`
	Final    bool    // terminal states are final
}

// OwnerGuard lets a row go by the state of the row of another table that owns it. A row whose owner does not exist, or
// whose key to it is null, is an orphan: kept and counted.
type OwnerGuard struct {
	Table    Name
	Key      []KeyPair
	Column   string // the owner's state
	Terminal []Value
	Live     []Value
	Final    bool // terminal states are final: the owner is not locked, only read
}

// OwedGuard protects a row while a row of Table that refers to it is in no terminal state; without a Column every such row
// protects.
type OwedGuard struct {
	Table    Name
	Key      []ChildKey
	Column   string // the state of the row that is owed
	Terminal []Value
}

// KeyPair maps a column of the target to a column of the owner.
type KeyPair struct{ Target, Owner string }

// Lets reports whether a row in this state may go.
func (g *StateGuard) Lets(v Value) bool { return !v.IsNull() && slices.Contains(g.Terminal, v) }

// Lets reports whether a row that refers to the target in this state lets it go.
func (g *OwedGuard) Lets(v Value) bool {
	return g.Column != "" && !v.IsNull() && slices.Contains(g.Terminal, v)
}

// Lets reports whether rows of an owner in this state may go.
func (g *OwnerGuard) Lets(v Value) bool { return !v.IsNull() && slices.Contains(g.Terminal, v) }
