package rights

// tenantsFile is a file with a purge of these tables.
func tenantsFile(tables string) string {
	return "version: 1\ndefaults: {schema: public}\npurges:\n  tenant:\n    key: tenant_id\n    tables: [" + tables + "]\n"
}

const (
	purgedNotes  = "{table: notes}"
	purgedOrders = "{table: orders, children: [{table: order_lines, key: {id: order_id}}]}"

	// someInvoices are rows that stay, of a table that refers to one whose rows go.
	someInvoices = "CREATE SCHEMA archive; CREATE TABLE archive.invoices (id bigint PRIMARY KEY, order_id bigint REFERENCES orders, body text); CREATE INDEX ON archive.invoices (order_id);"

	notesThere  = "SELECT count(*) FROM notes"
	ordersThere = "SELECT (SELECT count(*) FROM orders) || ' ' || (SELECT count(*) FROM order_lines)"
)

var purges = []entry{
	purgeOf("purge --tenant", purgedNotes, "DROP TABLE order_lines, orders;", notesThere, ""),
	purgeOf("purge --tenant with children", purgedOrders, "DROP TABLE notes;", ordersThere, ""),
	purgeOf("purge --tenant where an excluded table refers to one of the purge", purgedOrders, "DROP TABLE notes;"+someInvoices, ordersThere, "    exclude: {archive.invoices: \"kept for ten years by law\"}\n"),
}

// purgeOf is a purge and its dry run, which says what would refuse it.
func purgeOf(row, tables, more, changes, exclude string) entry {
	return entry{
		row: row, state: theirs, more: more, policy: tenantsFile(tables) + exclude, changes: changes,
		args: "purge --tenant acme --yes -o json", also: []string{"purge --tenant acme --dry-run"},
		says: []string{`"proved": true`}, without: refused,
	}
}
