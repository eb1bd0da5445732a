package migrations

import "github.com/prunectl/prunectl/connections"

// connectionsOf declares the component connections: what tenants connected to. Bounds are those of package connections.
//
// It is one version in one transaction. Its table is new and empty, so that its index is built in there too.
func connectionsOf() *component {
	return declare(&component{
		name: "connections",
		indexes: []Index{
			// A tenant's list, in its order. What is revoked is in no list.
			{Name: "connections_listed", Table: "connections", Columns: []string{"tenant_id", "created_at", "id"}, Where: "(revoked_at IS NULL)", Version: 1},
		},
		facts: map[string]any{"MaxText": connections.MaxText, "MaxSecret": connections.MaxSecret},
	})
}
