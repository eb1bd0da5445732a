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
	Window   Window    // for every row, unless ByState is given
	ByState  []StateWindow
	Floor    time.Duration // no window may be below it; zero: DefaultFloor
	Only     []Match       // rows outside are never removed; not a guard
	Guard    Guard
	Index    string // the index that must serve; "" picks one
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
	def(&s.Floor, DefaultFloor)
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
