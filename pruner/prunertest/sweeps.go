package prunertest

import (
	"slices"
	"time"

	"github.com/prunectl/prunectl/policy"
)

const day = 24 * time.Hour

// The declared states of the suite's sweeps. Checks enumerate them, so that none is forgotten.
var (
	terminal = policy.Texts("completed", "failed", "cancelled")
	live     = policy.Texts("queued", "running", "waiting-for-question", "waiting-for-approval", "retry-pending")
	// unknown are states that nobody declared, some of them near misses of a terminal one.
	unknown = []policy.Value{policy.Null, policy.Text(""), policy.Text("archived"), policy.Text("Completed"), policy.Text("completed "), policy.Text("failed,cancelled")}
)

// protecting lists every state that has to protect.
func protecting() []policy.Value { return slices.Concat(live, unknown) }

// completed is a state that lets go, running one that protects.
var completed, running = terminal[0], live[1]

// sweepOf is the sweep of the suite under this guard.
func sweepOf(g policy.Guard) policy.Sweep {
	return policy.Sweep{
		Name: "entries", Table: policy.Name{Schema: "public", Table: Table}, Age: "age", Window: policy.MustWindow(30 * day), Guard: g, Index: IndexName,
		Timeouts: policy.Timeouts{Lock: 100 * time.Millisecond}, // checks of locks wait for it
	}
}

var (
	noGuard    = policy.Guard{None: "nothing is owed in a check"}
	endedGuard = policy.Guard{Ended: true}
)

func stateGuard() policy.Guard {
	return policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: terminal, Live: live}}
}

func ownerGuard() policy.Guard {
	return policy.Guard{Owner: &policy.OwnerGuard{
		Table: policy.Name{Schema: "public", Table: OwnerTable}, Column: "state", Terminal: terminal, Live: live,
		Key: []policy.KeyPair{{Target: "owner_tenant", Owner: "tenant"}, {Target: "owner_id", Owner: "id"}},
	}}
}

// bothGuards lets a row go that has ended itself and whose owner has.
func bothGuards() policy.Guard {
	return policy.Guard{State: stateGuard().State, Owner: ownerGuard().Owner}
}

// The tables that refer to entries, and to parts.
var (
	partName = policy.Name{Schema: "public", Table: PartTable}
	noteName = policy.Name{Schema: "public", Table: NoteTable}
	pinName  = policy.Name{Schema: "public", Table: PinTable}
)

// partKey leads from an entry to its parts, and to its pins.
var partKey = []policy.ChildKey{{Parent: "id", Child: "entry_id"}}

// owedGuard lets a row go when all its parts are in a terminal state.
func owedGuard() policy.Guard {
	return policy.Guard{Owed: &policy.OwedGuard{Table: partName, Key: partKey, Column: "state", Terminal: terminal}}
}

// familyOf is the sweep of rows that take their parts and the notes of those along.
func familyOf(g policy.Guard) policy.Sweep {
	s := sweepOf(g)
	s.Children = []policy.Child{{Table: partName, Key: partKey,
		Children: []policy.Child{{Table: noteName, Key: []policy.ChildKey{{Parent: "id", Child: "part_id"}}}}}}
	return s
}

// old is an age past every window of the suite but the longest; a larger n is younger, by a second each.
func old(n int) Age { return At(Now.Add(-50*day + time.Duration(n)*time.Second)) }

// young is an age inside every window.
func young(n int) Age { return At(Now.Add(-day + time.Duration(n)*time.Second)) }

// entry is a row of the owner ("a", owner) in this state.
func entry(id int64, age Age, state policy.Value, owner int64) Row {
	return Row{ID: id, Age: age, State: state, Kind: policy.Text("k"), Tenant: policy.Text("a"), Owner: policy.Int(owner)}
}

// entries are n rows, one a second from old(0) on. The newest is inserted first and has the lowest ID, so that neither the
// order of insertion nor that of IDs passes for the order of age.
func entries(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = entry(int64(i+1), old(n-i), completed, 1)
	}
	return rows
}

// owners of tenant "a": 1 has ended, 2 runs.
var owners = []Owner{{"a", 1, completed}, {"a", 2, running}}

func ids(rows []Row, keep func(Row) bool) []int64 {
	var out []int64
	for _, r := range rows {
		if keep(r) {
			out = append(out, r.ID)
		}
	}
	slices.Sort(out)
	return out
}

func isTerminal(v policy.Value) bool { return slices.Contains(terminal, v) }
