package inboxoutbox

// DefaultSchema is the schema of the tables where none is named.
const DefaultSchema = "inbox_outbox"

// State is the state of an inbox row, as the column inbox.state holds it.
type State string

// The states of an inbox row.
const (
	Pending   State = "pending"   // received and not handled to its end
	Completed State = "completed" // handled
)

// States returns every state of an inbox row. The slice is the caller's own.
func States() []State { return []State{Pending, Completed} }
