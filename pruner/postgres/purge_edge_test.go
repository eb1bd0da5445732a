package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// growing has somebody add rows of the tenant after each batch of a step, more than the next one takes.
type growing struct {
	tenant.Step
	write func() error
	times int
}

func (g *growing) Remove(ctx context.Context, b tenant.Batch) (pruner.Result, error) {
	res, err := g.Step.Remove(ctx, b)
	if err == nil && !res.End {
		g.times++
		err = g.write()
	}
	return res, err
}

// edgeCase is a walk, and how larger rows come while it goes on.
type edgeCase struct {
	name, rows string
	purge      policy.Purge
	step       int
	grow       string // $1 is how often it was run before, $2 how many rows to add
	had        int    // rows of the tenant as the pass begins
	removed    int    // by the pass, where it ends behind the last row that was there; 0: it ends anywhere
	batches    int    // it may take, with limit 10
}

// ofOrders are the lines of orders, and their parts.
func ofOrders(children ...policy.Child) policy.Purge {
	p := policy.Purge{Name: "tenant", Key: "tenant_id", Tables: []policy.PurgeTable{{Table: public("orders"), Children: []policy.Child{{Table: public("lines"), Key: keyTo("id", "order_id"), Children: children}}}}}
	keep := []string{"runs", "marks", "nodes"}
	if len(children) == 0 {
		keep = append(keep, "parts")
	}
	return excluding(p, keep...)
}

func edgeCases() []edgeCase {
	const others = "INSERT INTO %s SELECT t, g + length(t) * 1000 FROM generate_series(9000000, 9000020) g, unnest('{aaa,other}'::text[]) t;"
	parts := policy.Child{Table: public("parts"), Key: keyTo("id", "line_id")}
	return []edgeCase{
		{"by key", "INSERT INTO runs SELECT 'acme', g FROM generate_series(1, 55) g;" + fmt.Sprintf(others, "runs (tenant_id, id)"), excludingAllBut("runs"), 0,
			"INSERT INTO runs SELECT 'acme', 1000 + 100 * $1 + g FROM generate_series(1, $2::int) g", 55, 55, 6},
		{"by an index that orders nothing", "INSERT INTO marks SELECT g, 'acme' FROM generate_series(1, 55) g;" + fmt.Sprintf(others, "marks (tenant_id, id)"), excludingAllBut("marks"), 0,
			"INSERT INTO marks SELECT 1000 + 100 * $1 + g, 'acme' FROM generate_series(1, $2::int) g", 55, 0, 8192/leastRow/10 + 1},
		{"by pages", "INSERT INTO logs SELECT g, 'acme' FROM generate_series(1, 55) g;" + fmt.Sprintf(others, "logs (org, id)"), excludingAllBut("logs org"), 0,
			"INSERT INTO logs SELECT 1000 + 100 * $1 + g, 'acme' FROM generate_series(1, $2::int) g", 55, 0, 100},
		{"a child, by its rows' key", "INSERT INTO orders SELECT g, 'acme' FROM generate_series(1, 55) g; INSERT INTO lines SELECT id, id FROM orders;" + fmt.Sprintf(others, "orders (tenant_id, id)") + "INSERT INTO lines SELECT id, id FROM orders WHERE tenant_id <> 'acme'", ofOrders(), 0,
			"WITH o AS (INSERT INTO orders SELECT 1000 + 100 * $1 + g, 'acme' FROM generate_series(1, $2::int) g RETURNING id) INSERT INTO lines SELECT id, id FROM o", 55, 55, 60},
		{"a child of one row, by key", "INSERT INTO orders VALUES (1, 'acme'), (2, 'acme'), (3, 'other'); INSERT INTO lines SELECT g, 1 FROM generate_series(1, 55) g; INSERT INTO lines VALUES (56, 2), (57, 3)", ofOrders(), 0,
			"INSERT INTO lines SELECT 1000 + 100 * $1 + g, 1 FROM generate_series(1, $2::int) g", 56, 0, 8192/leastRow/10 + 5},
		{"a grandchild of one row, which no key orders", "INSERT INTO orders VALUES (1, 'acme'), (2, 'other'); INSERT INTO lines VALUES (1, 1), (2, 2); INSERT INTO parts SELECT 1, g FROM generate_series(1, 55) g; INSERT INTO parts VALUES (2, 1)", ofOrders(parts), 0,
			"INSERT INTO parts SELECT 1, 1000 + 100 * $1 + g FROM generate_series(1, $2::int) g", 55, 0, 8192/leastRow/10 + 5},
	}
}

// excludingAllBut is a purge of one of purgeTables.
func excludingAllBut(table string) policy.Purge {
	p := purgeOf(table)
	return excluding(p, slices.DeleteFunc([]string{"runs", "marks", "orders", "nodes"}, func(t string) bool { return public(t) == p.Tables[0].Table })...)
}

// run goes through a pass while rows are added, and through another one when nobody adds any.
func (c edgeCase) run(ctx context.Context, db *pgtest.DB, t *testing.T, p *Purge) error {
	others := db.Text(t, mixedLeft)
	g := &growing{Step: p.Steps()[c.step]}
	writer := db.Conn(t)
	defer func() { _ = writer.Close(ctx) }()
	g.write = func() error {
		if g.times > c.batches {
			return fmt.Errorf("%d batches, and the pass goes on", g.times)
		}
		_, err := writer.Exec(ctx, c.grow, g.times, 12)
		return err
	}
	sum, err := passOf(ctx, g, 10)
	if err != nil {
		return err
	}
	if g.times < 3 || sum.Removed < c.had || c.removed > 0 && sum.Removed != c.removed {
		return fmt.Errorf("%d batches before the last removed %d rows, of %d that were there", g.times, sum.Removed, c.had)
	}
	left, err := p.Look(ctx, 100_000)
	if err != nil || left.Left[c.step].Rows != c.had+12*g.times-sum.Removed {
		return fmt.Errorf("the look says %v after %d of %d rows, %w", left.Left, sum.Removed, c.had+12*g.times, err)
	}
	again, err := passOf(ctx, p.Steps()[c.step], 10)
	if err != nil || again.Removed != left.Left[c.step].Rows {
		return fmt.Errorf("the pass after it removed %d of %v, %w", again.Removed, left.Left, err)
	}
	if now := db.Text(t, mixedLeft); now != others {
		return fmt.Errorf("of the others there are %s rows, not %s", now, others)
	}
	return nil
}

// TestPassesEnd: a pass ends whoever adds rows behind it, and however many. They are for the look, and the pass after it.
func TestPassesEnd(t *testing.T) {
	for _, c := range edgeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Exec(t, purgeTables+c.rows)
			if err := c.run(t.Context(), db, t, openPurge(t, Conn(db.Conn(t)), c.purge, "acme")); err != nil {
				t.Error(err)
			}
		})
	}
}

// edges has passes end while somebody adds rows.
var edges = purgeVictim{"a pass ends while rows are added", func(ctx context.Context, b *purgeBench) error {
	for _, c := range edgeCases() {
		p, err := b.open(purgeTables+c.rows, c.purge, "acme")
		if err == nil {
			err = c.run(ctx, b.db, b.t, p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}}
