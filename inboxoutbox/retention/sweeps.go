package retention

import (
	"cmp"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/policy"
)

// The ledgers, in the order in which they are swept, by the names of their tables and sweeps.
const (
	inbox  = "inbox"
	outbox = "outbox"
	leases = "leases"
)

// Sweeps returns the sweeps of the ready policy inbox_outbox, over the tables in a schema,
// inboxoutbox.DefaultSchema when empty: completed inbox rows, delivered outbox records, and
// leases that have expired. The settings must have no problems, see
// [inboxoutbox.Settings.Check].
func Sweeps(schema string, settings inboxoutbox.Settings) []policy.Sweep {
	schema = cmp.Or(schema, inboxoutbox.DefaultSchema)
	given := settings.Batch
	settings = settings.WithDefaults()
	sweep := func(table, age, index string, w policy.Window, g policy.Guard) policy.Sweep {
		return policy.Sweep{
			Name: table, Table: policy.Name{Schema: schema, Table: table}, Age: age, Window: w, Floor: policy.MinWindow,
			Guard: g, Index: index, Batch: policy.Batch{Limit: given},
		}
	}
	state := &policy.StateGuard{
		Column:   "state",
		Terminal: policy.Texts(string(inboxoutbox.Completed)),
		Live:     policy.Texts(string(inboxoutbox.Pending)),
	}
	expired := sweep(leases, "expires_at", "leases_expiry", policy.AtOnce, policy.Guard{None: noneOwed})
	expired.Expires, expired.Floor = true, 0
	return []policy.Sweep{
		sweep(inbox, "completed_at", "inbox_retention", policy.MustWindow(settings.InboxWindow), policy.Guard{State: state}),
		sweep(outbox, "delivered_at", "outbox_retention", policy.MustWindow(settings.OutboxWindow), policy.Guard{Ended: true}),
		expired,
	}
}

// noneOwed is why nothing protects a lease.
const noneOwed = "an expired lease is nobody's: its holder can not renew it"
