package postgres

import (
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
)

// purgeTables have each walk, a child of a child, rows that refer to each other, and a key with an action on rows of others.
const purgeTables = `
CREATE TABLE runs (tenant_id text NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
CREATE TABLE marks (id int, tenant_id text);
CREATE INDEX marks_tenant ON marks (tenant_id);
CREATE TABLE logs (id int, org text);
CREATE TABLE orders (id int PRIMARY KEY, tenant_id text NOT NULL, UNIQUE (tenant_id, id));
CREATE TABLE lines (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders, UNIQUE (order_id, id));
CREATE TABLE parts (line_id int NOT NULL REFERENCES lines, n int, note text);
CREATE INDEX parts_line ON parts (line_id);
CREATE TABLE nodes (id int PRIMARY KEY, tenant_id text NOT NULL, up int REFERENCES nodes ON DELETE CASCADE, UNIQUE (tenant_id, id));
CREATE INDEX nodes_up ON nodes (up);
`

// purgeRows gives n rows of each kind to each of the tenants acme and other.
const purgeRows = `
INSERT INTO runs SELECT t, g FROM generate_series(1, 100) g, unnest('{acme,other}'::text[]) t;
INSERT INTO marks SELECT g, t FROM generate_series(1, 100) g, unnest('{acme,other}'::text[]) t;
INSERT INTO logs SELECT g, t FROM generate_series(1, 100) g, unnest('{acme,other}'::text[]) t;
INSERT INTO orders SELECT g, CASE g % 2 WHEN 0 THEN 'acme' ELSE 'other' END FROM generate_series(1, 200) g;
INSERT INTO lines SELECT g, 1 + g % 150 FROM generate_series(1, 1000) g;
INSERT INTO lines SELECT g, 200 FROM generate_series(1001, 1100) g;
INSERT INTO parts SELECT 1 + g % 1050, g FROM generate_series(1, 3000) g;
INSERT INTO nodes SELECT g, CASE g % 2 WHEN 0 THEN 'acme' ELSE 'other' END, CASE WHEN g > 20 THEN g - 20 END FROM generate_series(1, 100) g;
`

func purgeOfAll() policy.Purge {
	p := purgeOf("runs", "marks", "logs org", "orders", "nodes")
	p.Tables[3].Children = []policy.Child{{Table: public("lines"), Key: keyTo("id", "order_id"), Children: []policy.Child{{Table: public("parts"), Key: keyTo("id", "line_id")}}}}
	return p
}

const purgeNames = "runs marks logs parts lines orders nodes"

func TestPurge(t *testing.T) {
	for _, limit := range []int{7, 100, 5000} {
		db := pgtest.New(t)
		db.Exec(t, purgeTables+purgeRows)
		p := openPurge(t, Conn(db.Conn(t)), purgeOfAll(), "acme")
		same(t, "to go", leftOf(t, p, 10_000), "100 100 100 1550 600 100 50")
		others := openPurge(t, Conn(db.Conn(t)), purgeOfAll(), "other")
		had := leftOf(t, others, 10_000)
		_, err := purgeAll(t.Context(), p, limit)
		if err != nil {
			t.Fatalf("limit %d: %v", limit, err)
		}
		same(t, "left", leftOf(t, p, 10_000), "0 0 0 0 0 0 0")
		same(t, "of the other", leftOf(t, others, 10_000), had)
	}
}
