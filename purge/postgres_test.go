package purge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/postgres"
	"github.com/prunectl/prunectl/pruner/tenant"
	"github.com/prunectl/prunectl/purge"
)

// schema has a reference between two tables, rows without a tenant of their own, and rows that refer to each other: node n is
// below node n-1, so that they go one by one from the last. The tenants differ by little.
const schema = `
CREATE TABLE runs (tenant_id text NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE run_events (tenant_id text NOT NULL, id int NOT NULL, run_id int, PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, run_id) REFERENCES runs);
CREATE INDEX ON run_events (tenant_id, run_id);
CREATE TABLE orders (tenant_id text NOT NULL, id int PRIMARY KEY, UNIQUE (tenant_id, id));
CREATE TABLE order_lines (order_id int NOT NULL REFERENCES orders, no int NOT NULL, PRIMARY KEY (order_id, no));
CREATE TABLE nodes (org text NOT NULL, id int PRIMARY KEY, up int REFERENCES nodes, UNIQUE (org, id));
CREATE INDEX ON nodes (up);
CREATE TABLE audit_log (tenant_id text, note text);

INSERT INTO runs SELECT t, g FROM unnest($1::text[]) t, generate_series(1, 300) g;
INSERT INTO run_events SELECT t, g, 1 + g % 300 FROM unnest($1::text[]) t, generate_series(1, 2500) g;
INSERT INTO orders SELECT t, o * 1000 + g FROM unnest($1::text[]) WITH ORDINALITY AS u(t, o), generate_series(1, 100) g;
INSERT INTO order_lines SELECT id, g FROM orders, generate_series(1, 7) g;
INSERT INTO nodes SELECT t, o * 1000 + g, CASE WHEN g > 1 THEN o * 1000 + g - 1 END FROM unnest($1::text[]) WITH ORDINALITY AS u(t, o), generate_series(1, 12) g;
INSERT INTO audit_log SELECT t, 'note' FROM unnest($1::text[]) t;
`

var tenants = []string{"acme", "Acme", "acme ", "acme' OR 'a' = 'a"}

// counts are the rows of each table by tenant; audit_log is excluded.
const counts = `
SELECT string_agg(format('%s %s %s', t, w, n), E'\n' ORDER BY t, w) FROM (
  SELECT 'run_events' t, tenant_id w, count(*) n FROM run_events GROUP BY 2
  UNION ALL SELECT 'runs', tenant_id, count(*) FROM runs GROUP BY 2
  UNION ALL SELECT 'orders', tenant_id, count(*) FROM orders GROUP BY 2
  UNION ALL SELECT 'order_lines', o.tenant_id, count(*) FROM order_lines JOIN orders o ON o.id = order_id GROUP BY 2
  UNION ALL SELECT 'nodes', org, count(*) FROM nodes GROUP BY 2
  UNION ALL SELECT 'audit_log', tenant_id, count(*) FROM audit_log GROUP BY 2) c`

func filled(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	create, insert, _ := strings.Cut(schema, "\n\n")
	db.Exec(t, create)
	for _, sql := range strings.Split(insert, ";\n") {
		if sql = strings.TrimSpace(sql); strings.Contains(sql, "$1") {
			db.Exec(t, sql, tenants)
		} else if sql != "" {
			db.Exec(t, sql)
		}
	}
	return db
}

func open(t *testing.T, db *pgtest.DB, of string) tenant.Remover {
	t.Helper()
	in := func(table string) policy.Name { return policy.Name{Schema: "public", Table: table} }
	p := policy.Purge{Name: "tenant", Key: "tenant_id", Tables: []policy.PurgeTable{
		{Table: in("run_events")}, {Table: in("runs")},
		{Table: in("orders"), Children: []policy.Child{{Table: in("order_lines"), Key: []policy.ChildKey{{Parent: "id", Child: "order_id"}}}}},
		{Table: in("nodes"), Column: "org"},
	}, Exclude: []policy.Exclusion{{Table: in("audit_log"), Reason: "kept for ten years by law"}}}
	conn := postgres.Conn(db.Conn(t))
	i, err := postgres.InspectPurge(t.Context(), conn, p, of)
	if err != nil {
		t.Fatal(err)
	}
	r, err := i.Open(conn)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// others are the rows of every tenant but one, and of the table that is excluded.
func others(text, of string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool {
		table, rest, _ := strings.Cut(l, " ")
		return table != "audit_log" && rest[:strings.LastIndexByte(rest, ' ')] == of
	}), "\n")
}

// removed are the counts of a report, as "table removed late left".
func removed(r purge.Report) string {
	var out []string
	for _, s := range r.Steps {
		out = append(out, fmt.Sprintf("%s %d %d %d", s.Table.Table, s.Removed, s.Late, s.Left.Rows))
	}
	return strings.Join(out, ", ")
}

// TestRunOverPostgres: a tenant goes, whatever its name, and rows that came meanwhile with it; of no other tenant a row is
// missing.
func TestRunOverPostgres(t *testing.T) {
	for _, of := range tenants {
		db := filled(t)
		before := db.Text(t, counts)
		r, err := purge.Run(t.Context(), open(t, db, of), purge.Bounds{Limit: 400, OnBatch: func(p purge.Progress) {
			if p.Step == 1 && p.Pass == 1 && p.Removed == 300 { // run_events is done, and so are the runs
				db.Exec(t, "INSERT INTO runs VALUES ($1, 7)", of)
				db.Exec(t, "INSERT INTO run_events VALUES ($1, 1, 7), ($1, 2, NULL)", of)
			}
		}})
		if err != nil || r.Stop != purge.StopPurged || !r.Proved() || r.Passes != 2 || !r.Proof.Empty() {
			t.Fatalf("%q: %q, %v, %d passes, %+v", of, r.Stop, err, r.Passes, r.Proof)
		}
		if got, w := removed(r), "run_events 2502 2 0, runs 301 1 0, order_lines 700 0 0, orders 100 0 0, nodes 12 0 0"; got != w {
			t.Errorf("%q\ngot  %s\nwant %s", of, got, w)
		}
		if got, w := db.Text(t, counts), others(before, of); got != w {
			t.Errorf("%q: left are\n%s\nwant\n%s", of, got, w)
		}
	}
}

// TestLockedOverPostgres: a row that somebody holds stays, and is said; the other tables go. Run again when it is free, the
// purge goes on.
func TestLockedOverPostgres(t *testing.T) {
	db := filled(t)
	tx, err := db.Conn(t).BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM run_events WHERE tenant_id = 'acme' AND id = 9 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	remover := open(t, db, "acme")
	r, err := purge.Run(t.Context(), remover, purge.Bounds{})
	if err != nil || r.Stop != purge.StopLeft || r.Steps[0].Locked != 1 || r.Steps[1].Stuck != 1 {
		t.Errorf("%q, %v\n%+v", r.Stop, err, r.Steps)
	}
	if len(r.Steps[1].Blocked) != 1 || r.Steps[1].Blocked[0].Table != "public.run_events" || r.Steps[1].Blocked[0].Rows != 1 {
		t.Errorf("blocked by %+v", r.Steps[1].Blocked)
	}
	if got, w := removed(r), "run_events 2499 1 1, runs 299 1 1, order_lines 700 0 0, orders 100 0 0, nodes 12 0 0"; got != w {
		t.Errorf("got  %s\nwant %s", got, w)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err = purge.Run(t.Context(), remover, purge.Bounds{})
	if got, w := removed(r), "run_events 1 0 0, runs 1 0 0, order_lines 0 0 0, orders 0 0 0, nodes 0 0 0"; err != nil || !r.Proved() || got != w {
		t.Errorf("%q, %v\ngot  %s\nwant %s", r.Stop, err, got, w)
	}
}

// TestEndedOverPostgres: what a purge counted when it was ended is gone, and a next one finds the rest.
func TestEndedOverPostgres(t *testing.T) {
	db := filled(t)
	before := db.Text(t, counts)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := make(chan struct{})
	first, err := purge.Run(ctx, open(t, db, "acme"), purge.Bounds{Limit: 100, Stop: stop, OnBatch: func(p purge.Progress) {
		if p.Step == 0 && p.Removed == 700 {
			close(stop)
		}
	}})
	if got := db.Int(t, "SELECT count(*) FROM run_events WHERE tenant_id = 'acme'"); err != nil || first.Stop != purge.StopSignal || first.Removed() != 700 || got != 1800 {
		t.Errorf("%q, %v: %d removed, %d there", first.Stop, err, first.Removed(), got)
	}
	second, err := purge.Run(ctx, open(t, db, "acme"), purge.Bounds{Limit: 100, OnBatch: func(p purge.Progress) {
		if p.Step == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || second.Stop != purge.StopSignal || second.Steps[0].Removed != 1800 || second.Steps[1].Removed != 300 || second.Proof != nil {
		t.Errorf("%q, %v: %s", second.Stop, err, removed(second))
	}
	third, err := purge.Run(t.Context(), open(t, db, "acme"), purge.Bounds{Limit: 100})
	if err != nil || !third.Proved() || third.Steps[0].Removed != 0 || second.Steps[2].Removed+third.Steps[2].Removed != 700 {
		t.Errorf("%q, %v: %s after %s", third.Stop, err, removed(third), removed(second))
	}
	if got, w := db.Text(t, counts), others(before, "acme"); got != w {
		t.Errorf("left are\n%s\nwant\n%s", got, w)
	}
}

// TestSelfOverPostgres: rows that refer to each other go from the leaves up, also one a pass.
func TestSelfOverPostgres(t *testing.T) {
	db := filled(t)
	r, err := purge.Run(t.Context(), open(t, db, "acme"), purge.Bounds{Limit: 100})
	if s := r.Steps[4]; err != nil || !r.Proved() || r.Passes != 1 || s.Removed != 12 || s.Self == "" {
		t.Errorf("%q, %v, %d passes\n%+v", r.Stop, err, r.Passes, s)
	}
}
