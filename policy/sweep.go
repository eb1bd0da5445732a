package policy

import "time"

// The documented defaults of a sweep. Each is a choice, not a constant of nature.
const (
	DefaultFloor            = time.Hour
	DefaultLimit            = 5000
	MaxLimit                = 100_000
	DefaultTarget           = 100 * time.Millisecond
	DefaultRows             = 1_000_000
	DefaultTime             = 10 * time.Minute
	DefaultStatementTimeout = 30 * time.Second
	DefaultLockTimeout      = 500 * time.Millisecond // below the server's deadlock_timeout of 1s, so that the sweep gives way first
	DefaultBudgetTime       = 30 * time.Minute
	DefaultTurn             = 30 * time.Second
)

// DefaultSince is the earliest instant that counts as an age: what is older (0001-01-01, the epoch, -infinity) is a
// mistake in the data rather than an age, so such a row is undated, kept and counted.
var DefaultSince = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// Sweep is one named rule: which rows of which table go, and when. Zero fields mean their documented defaults; a window
// that is not set keeps for ever.
type Sweep struct {
	Name     string // [a-z][a-z0-9_]{0,47}
	Table    Name
	Age      string    // the timestamptz column a row's age is read from
	Since    time.Time // an older age is undated; zero: DefaultSince
	Expires  bool      // Age is when a row expires: it goes once that is past, by Window as the grace; null keeps for ever
	Window   Window    // for every row, unless ByState is given
	ByState  []StateWindow
	Own      *RowWindow    // a row's own window, where it has one
	Floor    time.Duration // no window may be below it; zero: DefaultFloor, none where Expires
	Only     []Match       // rows outside are never removed; not a guard
	Guard    Guard
	Children []Child // rows of other tables that go with a row
	Cascades []Name  // tables whose rows the database may remove with a row, uncounted
	Index    string  // the index that must serve; "" picks one
	Batch    Batch
	Ceiling  Ceiling
	Timeouts Timeouts
	Pause    time.Duration // between batches
	Set      []Setting     // set for the transaction of each batch
	Sync     bool          // commits wait for the disk
	Overlaps []string      // earlier sweeps on the same table that may remove the same rows
}

// StateWindow is the window of the rows in one terminal state.
type StateWindow struct {
	State  Value
	Window Window
}

// RowWindow says where a row's own window is. A null there means that the row goes by the sweep's window. A window below
// the floor is raised to it; one that is zero, negative or over [MaxWindow] is unusable, and its row is kept.
type RowWindow struct {
	Column    string
	Unit      time.Duration // of a whole number: a second, a minute, an hour or a day; 0: the column is an interval
	ZeroNever bool          // 0 keeps the row for ever; else it is unusable
}

// Child is a table whose rows go with a row of the target, or with one of the Child above it: removed first, in the same
// transaction. A row with more of them than a batch removes loses them in batches of their own, and goes with the last.
type Child struct {
	Table    Name
	Key      []ChildKey // all columns of the reference
	Children []Child
}

// ChildKey maps a column to the column of the child that refers to it.
type ChildKey struct{ Parent, Child string }

// Batch bounds one transaction. Zero fields: DefaultLimit, DefaultTarget.
type Batch struct {
	Limit  int           // rows examined at most, 1 to MaxLimit
	Target time.Duration // the time a batch is adapted to
}

// Ceiling bounds one sweep in one run. Zero fields: no ceiling of batches, DefaultRows, DefaultTime; NoCeiling lifts one.
type Ceiling struct {
	Batches int // batches that removed something
	Rows    int // rows removed
	Time    time.Duration
}

// Timeouts are those of a batch. Zero fields: DefaultStatementTimeout, DefaultLockTimeout.
type Timeouts struct{ Statement, Lock time.Duration }

// Setting is a parameter of PostgreSQL that is set for the transaction of each batch.
type Setting struct{ Name, Value string }

// Budget bounds a whole run. Zero fields: DefaultBudgetTime, no bound on rows, DefaultTurn.
type Budget struct {
	Time time.Duration
	Rows int
	Turn time.Duration // how long a sweep works before the next has its turn
}

// WithDefaults is the sweep with every zero field replaced by its documented default.
func (s Sweep) WithDefaults() Sweep {
	if s.Since.IsZero() {
		s.Since = DefaultSince
	}
	if !s.Expires {
		def(&s.Floor, DefaultFloor)
	}
	def(&s.Batch.Limit, DefaultLimit)
	def(&s.Batch.Target, DefaultTarget)
	def(&s.Ceiling.Batches, NoCeiling)
	def(&s.Ceiling.Rows, DefaultRows)
	def(&s.Ceiling.Time, DefaultTime)
	def(&s.Timeouts.Statement, DefaultStatementTimeout)
	def(&s.Timeouts.Lock, DefaultLockTimeout)
	return s
}

// WithDefaults is the budget with every zero field replaced by its documented default.
func (b Budget) WithDefaults() Budget {
	def(&b.Time, DefaultBudgetTime)
	def(&b.Rows, NoCeiling)
	def(&b.Turn, DefaultTurn)
	return b
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Shortest is the shortest window of the sweep: the one that bounds what a pass examines. [Never] if every row is kept.
func (s Sweep) Shortest() Window {
	if len(s.ByState) == 0 {
		return s.Window
	}
	w := Never
	for _, sw := range s.ByState {
		if sw.Window.Shorter(w) {
			w = sw.Window
		}
	}
	return w
}

// OwnWindow is the window of a row whose own is of this many seconds, raised to the floor; ok is false where it is
// unusable.
func (s Sweep) OwnWindow(seconds int64) (w Window, ok bool) {
	switch {
	case seconds == 0 && s.Own.ZeroNever:
		return Never, true
	case seconds < 1 || seconds > int64(MaxWindow/time.Second):
		return Never, false
	}
	return Window{max(seconds, int64(s.WithDefaults().Floor/time.Second))}, true
}

// WindowOf is the window of a row in this state. A state that has no window of its own goes by the shortest: such a row
// is protected by the guard, and is held from then on.
func (s Sweep) WindowOf(state Value) Window {
	for _, sw := range s.ByState {
		if sw.State == state {
			return sw.Window
		}
	}
	return s.Shortest()
}
