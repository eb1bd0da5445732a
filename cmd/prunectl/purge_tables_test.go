package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// tenants are tables that hold rows of tenants: with a key that leads with the tenant, with no index on it, with one that
// does not settle an order, and without the column at all.
var tenants = pgtest.NewTemplate("command_tenants", func(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.PgConn().Exec(ctx, `
CREATE TABLE runs (tenant_id text NOT NULL, id bigint NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE run_events (tenant_id text NOT NULL, run_id bigint NOT NULL, seq int NOT NULL, PRIMARY KEY (tenant_id, run_id, seq),
  FOREIGN KEY (tenant_id, run_id) REFERENCES runs);
CREATE TABLE messages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, org text NOT NULL);
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant_id text NOT NULL);
CREATE INDEX orders_tenant ON orders (tenant_id);
CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders, nr int NOT NULL, PRIMARY KEY (order_id, nr));
CREATE TABLE audit_log (tenant_id text NOT NULL, at timestamptz NOT NULL DEFAULT now());`).Close()
})

const (
	tenantPurge = `
  tenant:
    key: tenant_id
    tables:
      - {table: run_events}
      - {table: messages, column: org}
      - {table: orders, children: [{table: order_lines, key: {id: order_id}}]}
      - {table: runs}
    exclude: {public.audit_log: "kept for ten years by law"}
`
	// wrongOrder is the same with the runs before what refers to them.
	wrongOrder = `
  tenant:
    key: tenant_id
    tables:
      - {table: messages, column: org}
      - {table: orders, children: [{table: order_lines, key: {id: order_id}}]}
      - {table: runs}
      - {table: run_events}
    exclude: {public.audit_log: "kept for ten years by law"}
`
	// rowsOfRun is how many rows a tenant has for each of its runs: 3 events, a message, 2 lines, an order, the run.
	rowsOfRun = 8

	sqlTenant = "'; DROP TABLE runs; --"
)

// tenantTables are the tables in the order in which their rows go.
var tenantTables = []string{"public.run_events", "public.messages", "public.order_lines", "public.orders", "public.runs"}

// purgesOf is a policy file with these purges and no sweeps.
func purgesOf(purges ...string) string {
	return "version: 1\ndefaults: {schema: public}\npurges:\n" + strings.Join(purges, "")
}

// addTenant adds a tenant of so many runs.
func addTenant(t *testing.T, db *pgtest.DB, name string, runs int) {
	t.Helper()
	db.Exec(t, `
WITH r AS (INSERT INTO runs SELECT $1, g FROM generate_series(1, $2::int) g),
     m AS (INSERT INTO messages (org) SELECT $1 FROM generate_series(1, $2::int)),
     a AS (INSERT INTO audit_log SELECT $1 FROM generate_series(1, $2::int)),
     o AS (INSERT INTO orders (tenant_id) SELECT $1 FROM generate_series(1, $2::int) RETURNING id),
     l AS (INSERT INTO order_lines SELECT id, nr FROM o, generate_series(1, 2) nr)
INSERT INTO run_events SELECT $1, g, seq FROM generate_series(1, $2::int) g, generate_series(1, 3) seq`, name, runs)
}

// likeNames are tenants that differ by case, by a blank or only look like something else.
var likeNames = []string{"acme", "Acme", "acme ", " acme", sqlTenant, "acme%", "null"}

// addTenants adds all of them, and says what each has.
func addTenants(t *testing.T, db *pgtest.DB) {
	t.Helper()
	for i, name := range likeNames {
		addTenant(t, db, name, 4+i)
	}
}

const tenantRowsSQL = `
SELECT 'run_events' AS of, tenant_id AS tenant, tableoid, ctid, xmin::text, run_id::text || ' ' || seq AS key FROM run_events
UNION ALL SELECT 'messages', org, tableoid, ctid, xmin::text, id::text FROM messages
UNION ALL SELECT 'order_lines', o.tenant_id, l.tableoid, l.ctid, l.xmin::text, order_id::text || ' ' || nr FROM order_lines l JOIN orders o ON o.id = l.order_id
UNION ALL SELECT 'orders', tenant_id, tableoid, ctid, xmin::text, id::text FROM orders
UNION ALL SELECT 'runs', tenant_id, tableoid, ctid, xmin::text, id::text FROM runs
UNION ALL SELECT 'audit_log', 'kept', tableoid, ctid, xmin::text, tenant_id FROM audit_log`

// tenantRows is how many rows the tables have of a tenant.
func tenantRows(t *testing.T, db *pgtest.DB, name string) int {
	t.Helper()
	return int(db.Int(t, "SELECT count(*) FROM ("+tenantRowsSQL+") x WHERE tenant = $1", name))
}

// othersRows is a checksum of all rows but the tenant's: where they are and who wrote them, too.
func othersRows(t *testing.T, db *pgtest.DB, name string) string {
	t.Helper()
	return db.Text(t, "SELECT count(*) || ' ' || md5(string_agg(concat_ws('|', of, tenant, tableoid, ctid, xmin, key), ';' ORDER BY of, ctid)) FROM ("+tenantRowsSQL+") x WHERE tenant <> $1", name)
}

// purgeOf is the receipt in the document.
func purgeOf(t *testing.T, r report.Report) *report.Purge {
	t.Helper()
	if r.Purge == nil {
		t.Fatalf("no purge in the report: %+v", r)
	}
	return r.Purge
}

// tablesSay is what the receipt says of each table, as "found removed late left".
func tablesSay(p *report.Purge) string {
	say := func(n *int) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	var all []string
	for _, table := range p.Tables {
		all = append(all, fmt.Sprintf("%s %s %d %d %s", strings.TrimPrefix(table.Table, "public."), say(table.Found), table.Removed, table.Late, say(table.Left)))
	}
	return strings.Join(all, "; ")
}

// slowPurge makes each deleted run take milliseconds.
func slowPurge(t *testing.T, db *pgtest.DB, table string, ms int) {
	t.Helper()
	db.Exec(t, fmt.Sprintf(`
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(%d / 1000.0); RETURN old; END $$;
CREATE TRIGGER slow BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION slow()`, ms, table))
}
