package rights

import (
	"slices"
	"strings"
)

// table is every row of the document.
var table = slices.Concat(sweeps, statuses, purges, components, migrating)

// jobs is a sweep of rows that go by themselves, with these lines in it.
func jobs(lines ...string) string { return sweep("jobs", lines...) }

func sweep(table string, lines ...string) string {
	return "  " + table + ":\n    table: " + table + "\n    " + strings.Join(lines, "\n    ") + "\n"
}

const (
	byAge    = "age: finished_at\n    window: 7d"
	byOwner  = "age: created_at\n    window: 30d\n    guard: {owner: {table: runs, key: {run_id: id}, state: status, terminal: [completed]"
	sent     = "age: sent_at\n    window: 30d"
	byOwed   = "guard: {owed: {table: receipts, key: {id: message_id}, state: status, terminal: [read]}}"
	receipts = "children: [{table: receipts, key: {id: message_id}}]"
	noGuard  = `guard: {none: "a line of a log, on which nothing is owed"}`
	cascade  = "cascades: [marks]"
)

// refused is what comes of a sweep, a plan and a check without a right: the sweep is refused, with the statement that gives
// it.
func refused(r right) (int, []string) { return 4, []string{"missing: ", r.printed(role)} }

// What a sweep of each kind changes.
const (
	jobsThere     = "SELECT count(*) FROM jobs"
	eventsThere   = "SELECT count(*) FROM run_events"
	messagesThere = "SELECT count(*) FROM messages"
)

const (
	someReceipts = "INSERT INTO receipts SELECT g, g, CASE WHEN g = 2 THEN 'sent' ELSE 'read' END FROM generate_series(1, 3) g;"
	someLines    = "INSERT INTO lines SELECT g, l FROM generate_series(1, 3) g, generate_series(1, 2) l;"
	someMarks    = "DROP TABLE receipts, lines; CREATE TABLE marks (message_id bigint NOT NULL REFERENCES messages ON DELETE CASCADE, mark int NOT NULL, PRIMARY KEY (message_id, mark)); INSERT INTO marks SELECT g, 1 FROM generate_series(1, 3) g;"
)

var sweeps = slices.Concat(
	sweepOf("sweep of a table by itself", jobsThere, "",
		kind{"state", jobs(byAge, "guard: {state: state, terminal: [done]}")},
		kind{"none", jobs(byAge, noGuard)},
		kind{"ended", jobs(byAge, "guard: {ended: true}")},
		kind{"by state", jobs("age: finished_at", "window: {done: 7d, failed: never}", "guard: {state: state, terminal: [done, failed]}")},
		kind{"hold", jobs(byAge, "guard: {hold: held}")},
		kind{"only", jobs(byAge, "only: {state: done}", noGuard)},
		kind{"row_window", jobs(byAge, "row_window: {column: keep_seconds, unit: s}", "guard: {state: state, terminal: [done]}")},
		kind{"expires", jobs("expires: expires_at", noGuard)},
	),
	sweepOf("sweep with guard.owner", eventsThere, "", kind{"", sweep("run_events", byOwner+"}}")}),
	sweepOf("sweep with guard.owner and final: true", eventsThere, "", kind{"", sweep("run_events", byOwner+", final: true}}")}),
	sweepOf("sweep with guard.owed", messagesThere, "INSERT INTO receipts VALUES (1, 1, 'sent');", kind{"", sweep("messages", sent, byOwed)}),
	sweepOf("sweep with children", messagesThere, "DROP TABLE receipts;"+someLines, kind{"", sweep("messages", sent, noGuard, "children: [{table: lines, key: {id: message_id}}]")}),
	sweepOf("sweep with guard.owed and children of its table", messagesThere, "DROP TABLE lines;"+someReceipts, kind{"", sweep("messages", sent, byOwed, receipts)}),
	sweepOf("sweep with cascades", messagesThere, someMarks, kind{"", sweep("messages", sent, noGuard, cascade)}),
	[]entry{{
		row: "sweep that passes over locked rows", state: theirs, policy: jobs(byAge, "guard: {state: state, terminal: [done]}"), args: "check --strict",
		without: func(r right) (int, []string) {
			if r.privilege == "UPDATE" {
				return 4, []string{"a locked row cannot be skipped", r.printed(role)}
			}
			return refused(r)
		},
	}},
)

// kind is a policy, and what it is called where the row has several.
type kind struct{ as, policy string }

// sweepOf has a sweep of each kind, and of the first a plan and a check, which say what would refuse it: what they ask for
// does not hang on the kind.
func sweepOf(row, changes, more string, kinds ...kind) (all []entry) {
	for i, k := range kinds {
		e := entry{row: row, as: k.as, state: theirs, more: more, policy: k.policy, args: "sweep -o json", without: refused, changes: changes}
		if i == 0 {
			e.also = []string{"check", "plan -o json", "sweep --dry-run -o json"}
		}
		all = append(all, e)
	}
	return all
}
