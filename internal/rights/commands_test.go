package rights

import (
	"os"
	"strings"

	"github.com/prunectl/prunectl/migrations"
)

// uncounted is what comes of a status without a right to read: the sweep is shown as refused.
func uncounted(r right) (int, []string) { return 4, []string{"missing: "} }

var statuses = []entry{
	{row: "status of a table by itself", state: theirs, policy: jobs(byAge, "guard: {state: state, terminal: [done]}"), args: "status", without: uncounted},
	{row: "status with guard.owner", state: theirs, policy: sweep("run_events", byOwner+"}}"), args: "status", without: uncounted},
	{row: "status with guard.owed", state: theirs, more: someReceipts, policy: sweep("messages", sent, byOwed), args: "status", without: uncounted},
	{row: "status with children", state: theirs, more: "DROP TABLE receipts;" + someLines, policy: sweep("messages", sent, noGuard, "children: [{table: lines, key: {id: message_id}}]"), args: "status", without: uncounted},
}

// denied is what the server says without a right, and the command after it.
func denied(r right) (int, []string) {
	return 1, []string{"permission denied for", r.on[strings.LastIndex(r.on, ".")+1:]}
}

// named is what a command fails with that knows which right is missing.
func named(code int) func(right) (int, []string) {
	return func(r right) (int, []string) { return code, []string{strings.TrimSuffix(r.printed(role), ";")} }
}

const (
	deliveries = "SELECT coalesce(string_agg(e.id || ':' || e.parked || ':' || d.status, ' ' ORDER BY e.id), 'none') FROM domain_events e JOIN domain_event_deliveries d ON d.event_id = e.id"
	ledgers    = "SELECT concat_ws(' ', (SELECT count(*) FROM inbox_outbox.inbox), (SELECT count(*) FROM inbox_outbox.outbox), (SELECT count(*) FROM inbox_outbox.leases), (SELECT string_agg(settings::text, ' ') FROM inbox_outbox.settings))"
)

// ready is the ready policy of a component.
func ready(component string) string {
	text, err := os.ReadFile("../../policy/policyfile/ready/" + component + ".yaml")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// window is the ready policy of the inbox and outbox with another window of the inbox.
func window(days string) string {
	return strings.Replace(ready("inbox_outbox"), "window: 7d", "window: "+days, 1)
}

// inboxRefused is what comes of a sweep over an inbox without a right: those to the schema, the ledger and the recorded
// policy are asked for beside those of the sweep.
func inboxRefused(r right) (int, []string) {
	switch {
	case strings.HasSuffix(r.on, ".settings"):
		return 4, []string{`GRANT SELECT, INSERT, UPDATE ON "inbox_outbox"."settings" TO "` + role + `"`}
	case strings.HasSuffix(r.on, "_migrations"):
		return named(4)(r)
	}
	return 4, []string{r.printed(role)}
}

// inboxUncounted is what comes of a status: the policy of the database is read beside the work, and the ledger not at all.
func inboxUncounted(r right) (int, []string) {
	if strings.HasSuffix(r.on, ".settings") {
		return 0, []string{"the policy was not read", "permission denied for table settings"}
	}
	return uncounted(r)
}

var components = []entry{
	{row: "sweep of the component domain_events", state: ours, policy: ready("domain_events"), args: "sweep", without: refused, changes: deliveries},
	{row: "status of the component domain_events", state: ours, policy: ready("domain_events"), args: "status", without: func(r right) (int, []string) {
		if strings.HasSuffix(r.on, "receivers") {
			return 0, []string{"permission denied for table domain_event_receivers"} // asked beside the work
		}
		return uncounted(r)
	}},
	{row: "sweep of inbox or outbox, the first", as: "inbox", state: ours, policy: window("7d"), args: "sweep --only inbox", without: inboxRefused, changes: ledgers},
	{row: "sweep of inbox or outbox, where the policy is recorded", as: "inbox", state: ours, before: strings.Replace(window("7d"), "floor: 1s", "floor: 1s\n    ceiling: {rows: 1}", 1), policy: window("7d"), args: "sweep --only inbox", without: inboxRefused, changes: ledgers},
	{row: "sweep of inbox or outbox, the first", as: "outbox", state: ours, policy: window("7d"), args: "sweep --only outbox", without: inboxRefused, changes: ledgers, other: func(r right) right {
		r.on = strings.Replace(r.on, ".inbox", ".outbox", 1)
		return r
	}},
	{row: "sweep --replace-policy", state: ours, before: window("20d"), policy: window("7d"), args: "sweep --only inbox --replace-policy --yes", without: inboxRefused, changes: ledgers},
	{row: "sweep of leases", state: ours, policy: ready("inbox_outbox"), args: "sweep --only leases", without: inboxRefused, changes: ledgers},
	{row: "status of the component inbox_outbox", state: ours, policy: ready("inbox_outbox"), args: "status", without: inboxUncounted},
	{row: "events requeue", state: ours, args: "events requeue --all", says: []string{"reopened"}, without: denied, changes: deliveries},
	{row: "events replay", state: ours, args: "events replay --event 3", says: []string{"reopened"}, without: denied, changes: deliveries},
	{row: "check --component", as: "domain_events", state: ours, args: "check --component domain_events", without: named(4)},
	{row: "migrate status", state: ours, args: "migrate status --component domain_events", without: denied},
}

var migrating = func() (all []entry) {
	for _, component := range migrations.Components() {
		schema := migrations.DefaultSchema(component)
		e := entry{row: "migrate up", as: component, state: nothing, args: "migrate up --component " + component, changes: "SELECT to_regclass('" + schema + ".prunectl_" + component + "_migrations') IS NULL"}
		e.without = func(r right) (int, []string) {
			if r.privilege == "USAGE" {
				return denied(r)
			}
			return named(1)(r)
		}
		if schema != "public" {
			e.row += " of " + component
			e.without = func(right) (int, []string) {
				return 1, []string{"GRANT CREATE ON DATABASE", `CREATE SCHEMA "` + schema + `" AUTHORIZATION "` + role + `"`}
			}
		}
		all = append(all, e)
		if schema == "public" {
			e.row, e.first, e.args, e.changes = "migrate down", e.args, "migrate down --component "+component, "SELECT count(*) FROM prunectl_"+component+"_migrations"
			all = append(all, e)
		}
	}
	return all
}()
