package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// The shop: each of two tenants has orders, with lines that are theirs by their order, and returns of their own that refer
// to an order. A return's order may be another tenant's.
const (
	shopTables = `
CREATE TABLE orders (id int PRIMARY KEY, tenant_id text NOT NULL, UNIQUE (tenant_id, id));
CREATE TABLE lines (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders ON DELETE CASCADE, UNIQUE (order_id, id));
CREATE TABLE returns (id int PRIMARY KEY, tenant_id text NOT NULL, order_id int REFERENCES orders ON DELETE CASCADE, UNIQUE (tenant_id, id));
CREATE INDEX returns_order ON returns (order_id);
`
	shopRows = `TRUNCATE orders, lines, returns;
INSERT INTO orders VALUES (1, 'acme'), (2, 'acme'), (3, 'acme'), (11, 'other'), (12, 'other');
INSERT INTO lines VALUES (101, 1), (102, 1), (103, 2), (111, 11), (112, 12);
INSERT INTO returns VALUES (201, 'acme', 1), (202, 'acme', NULL), (211, 'other', 11);
`
	shopLeft = `SELECT coalesce(string_agg(x.t || x.id, ' ' ORDER BY x.t, x.id), '-') FROM (SELECT 'o', id FROM orders WHERE tenant_id = 'acme' UNION ALL SELECT 'r', id FROM returns WHERE tenant_id = 'acme'
UNION ALL SELECT 'l', l.id FROM lines l JOIN orders o ON o.id = l.order_id WHERE o.tenant_id = 'acme') x (t, id)`
	shopOthers = `SELECT coalesce(string_agg(x.t || x.id, ' ' ORDER BY x.t, x.id), '-') FROM (SELECT 'o', id FROM orders WHERE tenant_id = 'other' UNION ALL SELECT 'r', id FROM returns WHERE tenant_id = 'other'
UNION ALL SELECT 'l', l.id FROM lines l JOIN orders o ON o.id = l.order_id WHERE o.tenant_id = 'other') x (t, id)`
	othersOfShop = "l111 l112 o11 o12 r211"
)

func shop() policy.Purge {
	p := purgeOf("returns", "orders")
	p.Tables[1].Children = []policy.Child{{Table: public("lines"), Key: keyTo("id", "order_id")}}
	p.Timeouts.Lock = 5 * time.Second
	return p
}

// The steps of the shop's purge.
const (
	stepReturns = iota
	stepLines
	stepOrders
)

// stepUnderway runs one batch of a step in another goroutine.
func stepUnderway(ctx context.Context, s tenant.Step, limit int) underway[pruner.Result] {
	return start(func() (pruner.Result, error) { return s.Remove(ctx, tenant.Batch{Limit: limit}) })
}

// pausedPurge has the pick wait for an advisory lock between its snapshot and its locks.
func pausedPurge(name, sql string) string {
	if name != "pick" {
		return sql
	}
	sql = replaceOnce(sql, "WITH gate AS MATERIALIZED", "WITH pause AS MATERIALIZED (SELECT pg_advisory_xact_lock(7) AS x), gate AS MATERIALIZED")
	return replaceOnce(sql, "     AND (SELECT g.ok FROM gate g)\n", "     AND (SELECT g.ok FROM gate g) AND (SELECT count(p.x) FROM pause p) = 1\n")
}

func purged(examined, removed, locked, stuck int) pruner.Result {
	return pruner.Result{Examined: examined, Removed: removed, Locked: locked, Stuck: stuck}
}

// purgeRace is what another session does while a step removes.
type purgeRace struct {
	name   string
	step   int
	before string // committed before
	sql    string // not committed when the batch runs, or committed between its snapshot and its locks
	want   pruner.Result
	left   string // of the tenant, when all is committed
	others string // of the others
}

// openRaces are not committed when the batch runs.
var openRaces = []purgeRace{
	{"a row moves to another tenant", stepReturns, "", "UPDATE returns SET tenant_id = 'other' WHERE id = 201", purged(2, 1, 1, 0), "l101 l102 l103 o1 o2 o3", "l111 l112 o11 o12 r201 r211"},
	{"a row is changed", stepReturns, "", "UPDATE returns SET order_id = NULL WHERE id = 201", purged(2, 1, 1, 0), "l101 l102 l103 o1 o2 o3 r201", othersOfShop},
	{"a row is deleted", stepReturns, "", "DELETE FROM returns WHERE id = 201", purged(2, 1, 1, 0), "l101 l102 l103 o1 o2 o3", othersOfShop},
	{"a row is locked", stepReturns, "", "SELECT FROM returns WHERE id = 201 FOR KEY SHARE", purged(2, 1, 1, 0), "l101 l102 l103 o1 o2 o3 r201", othersOfShop},
	{"a row comes from another tenant", stepReturns, "", "UPDATE returns SET tenant_id = 'acme' WHERE id = 211", purged(2, 2, 0, 0), "l101 l102 l103 o1 o2 o3 r211", "l111 l112 o11 o12"},
	{"a row is added", stepReturns, "", "INSERT INTO returns VALUES (203, 'acme')", purged(2, 2, 0, 0), "l101 l102 l103 o1 o2 o3 r203", othersOfShop},
	{"a child's row moves to another tenant", stepLines, "", "UPDATE orders SET tenant_id = 'other' WHERE id = 1", purged(3, 1, 2, 0), "o2 o3 r201 r202", "l101 l102 l111 l112 o1 o11 o12 r211"},
	{"a child moves to another tenant's row", stepLines, "", "UPDATE lines SET order_id = 11 WHERE id = 101", purged(3, 2, 1, 0), "o1 o2 o3 r201 r202", "l101 l111 l112 o11 o12 r211"},
	{"a child's row is only shared", stepLines, "", "INSERT INTO lines VALUES (104, 1)", purged(3, 3, 0, 0), "l104 o1 o2 o3 r201 r202", othersOfShop},
	{"a row that another tenant's refers to", stepOrders, "DELETE FROM lines WHERE id < 110; DELETE FROM returns WHERE tenant_id = 'acme'; INSERT INTO returns VALUES (212, 'other', 2)", "SELECT",
		purged(3, 2, 0, 1), "o2", "l111 l112 o11 o12 r211 r212"},
	{"a row that another tenant's begins to refer to", stepOrders, "DELETE FROM lines WHERE id < 110; DELETE FROM returns WHERE tenant_id = 'acme'", "INSERT INTO returns VALUES (212, 'other', 2)",
		purged(3, 2, 1, 0), "o2", "l111 l112 o11 o12 r211 r212"},
	{"a row that a child of its own begins to refer to", stepOrders, "DELETE FROM lines WHERE id < 110; DELETE FROM returns WHERE tenant_id = 'acme'", "INSERT INTO lines VALUES (104, 2)",
		purged(3, 2, 1, 0), "l104 o2", othersOfShop},
	{"a row that another tenant's ceases to refer to", stepOrders, "DELETE FROM lines WHERE id < 110; DELETE FROM returns WHERE tenant_id = 'acme'; INSERT INTO returns VALUES (212, 'other', 2)", "UPDATE returns SET order_id = NULL WHERE id = 212",
		purged(3, 2, 0, 1), "o2", "l111 l112 o11 o12 r211 r212"},
}

// snapshotRaces are committed between the snapshot of the pick and its locks.
var snapshotRaces = []purgeRace{
	{"a row has moved to another tenant", stepReturns, "", "UPDATE returns SET tenant_id = 'other' WHERE id = 201", purged(2, 1, 1, 0), "l101 l102 l103 o1 o2 o3", "l111 l112 o11 o12 r201 r211"},
	{"a row was deleted", stepReturns, "", "DELETE FROM returns WHERE id = 201", purged(2, 1, 1, 0), "l101 l102 l103 o1 o2 o3", othersOfShop},
	{"a child's row has moved to another tenant", stepLines, "", "UPDATE orders SET tenant_id = 'other' WHERE id = 1", purged(3, 1, 2, 0), "o2 o3 r201 r202", "l101 l102 l111 l112 o1 o11 o12 r211"},
	{"a child has moved to another tenant's row", stepLines, "", "UPDATE lines SET order_id = 11 WHERE id = 101", purged(3, 2, 1, 0), "o1 o2 o3 r201 r202", "l101 l111 l112 o11 o12 r211"},
	{"another tenant's row has begun to refer to a row", stepOrders, "DELETE FROM lines WHERE id < 110; DELETE FROM returns WHERE tenant_id = 'acme'", "INSERT INTO returns VALUES (212, 'other', 2)",
		purged(3, 2, 0, 1), "o2", "l111 l112 o11 o12 r211 r212"},
	{"a child has begun to refer to a row", stepOrders, "DELETE FROM lines WHERE id < 110; DELETE FROM returns WHERE tenant_id = 'acme'", "INSERT INTO lines VALUES (104, 2)",
		purged(3, 2, 0, 1), "l104 o2", othersOfShop},
}

// TestPurgeRaces has another session in the way of a batch: nothing of another tenant goes, by no key's action either, and
// nothing is waited for.
func TestPurgeRaces(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables)
	r := &race{DB: db, admin: db.Conn(t)}
	p := openPurge(t, Conn(db.Conn(t)), shop(), "acme")
	other, holder := db.Conn(t), db.Conn(t)
	for n, c := range append(slices.Clone(openRaces), snapshotRaces...) {
		since := n >= len(openRaces)
		t.Run(fmt.Sprintf("%s, since the snapshot %t", c.name, since), func(t *testing.T) {
			db.Exec(t, shopRows+c.before)
			s := p.steps[c.step]
			s.edit = nil
			if since {
				s.edit = pausedPurge
				mustExec(t, holder, "SELECT pg_advisory_lock(7)")
			} else {
				mustExec(t, other, begin+c.sql)
			}
			batch := stepUnderway(t.Context(), s, 50)
			if since {
				r.untilWaiting(t, p.db.conn.PgConn().PID())
				mustExec(t, other, begin+c.sql)
				mustExec(t, other, "COMMIT")
				mustExec(t, holder, "SELECT pg_advisory_unlock(7)")
			}
			res := batch.must(t)
			if !since {
				mustExec(t, other, "COMMIT")
			}
			if res.Stuck > 0 && len(res.Blocked) != 1 {
				t.Errorf("%d rows are stuck, by %+v", res.Stuck, res.Blocked)
			}
			res.Blocked = nil
			same(t, "the batch", counts(res), c.want)
			same(t, "left", db.Text(t, shopLeft), c.left)
			same(t, "of the others", db.Text(t, shopOthers), c.others)
		})
	}
}

// TestPurgeWaitsForNobody holds that a new reference to a row that is being removed waits for the batch, and finds nothing.
func TestPurgeWaitsForNobody(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables+shopRows+"DELETE FROM lines; DELETE FROM returns;")
	r := &race{DB: db, admin: db.Conn(t)}
	p := openPurge(t, Conn(db.Conn(t)), shop(), "acme")
	holder, other := db.Conn(t), db.Conn(t)
	mustExec(t, holder, "SELECT pg_advisory_lock(7)")
	s := p.steps[stepOrders]
	s.edit = func(name, sql string) string { // after the locks, before the probes
		if name == "delete" {
			return replaceOnce(sql, " WHERE d.ctid", " WHERE (SELECT pg_advisory_xact_lock(7)) IS NOT NULL AND d.ctid")
		}
		return sql
	}
	batch := stepUnderway(t.Context(), s, 50)
	r.untilWaiting(t, p.db.conn.PgConn().PID())
	insert := start(func() (int64, error) {
		tag, err := other.Exec(context.Background(), "INSERT INTO returns VALUES (212, 'other', 2)")
		return tag.RowsAffected(), err
	})
	r.untilWaiting(t, other.PgConn().PID())
	mustExec(t, holder, "SELECT pg_advisory_unlock(7)")
	same(t, "the batch", counts(batch.must(t)), purged(3, 3, 0, 0))
	if _, err := insert.end(t); err == nil || !strings.Contains(err.Error(), "violates foreign key constraint") {
		t.Errorf("the insert says %v", err)
	}
}

// TestPurgesAtOnce holds that the second of two purges of one tenant is busy and reads nothing, and that purges of other
// tenants, and of another name, go on.
func TestPurgesAtOnce(t *testing.T) {
	for _, step := range []int{stepReturns, stepLines} {
		db := pgtest.New(t)
		db.Exec(t, shopTables+shopRows)
		r := &race{DB: db, admin: db.Conn(t)}
		open := func(name, of string) *removal {
			p := shop()
			p.Name = name
			return openPurge(t, Conn(db.Conn(t)), p, of).steps[step]
		}
		first, second, others, named := open("tenant", "acme"), open("tenant", "acme"), open("tenant", "other"), open("second", "acme")
		first.edit = pausedPurge
		holder := db.Conn(t)
		mustExec(t, holder, "SELECT pg_advisory_lock(7)")
		// The first takes the gate as it reads it, and then waits.
		first.edit = func(name, sql string) string {
			if name == "delete" {
				return replaceOnce(sql, " WHERE d.ctid", " WHERE (SELECT pg_advisory_xact_lock(7)) IS NOT NULL AND d.ctid")
			}
			return sql
		}
		batch := stepUnderway(t.Context(), first, 50)
		r.untilWaiting(t, first.db.conn.PgConn().PID())
		res := stepUnderway(t.Context(), second, 50).must(t)
		same(t, "the second", res, pruner.Result{Busy: true})
		if res := stepUnderway(t.Context(), others, 50).must(t); res.Busy || res.Removed == 0 {
			t.Errorf("the other tenant's: %+v", res)
		}
		if res := stepUnderway(t.Context(), named, 50).must(t); res.Busy || res.Locked == 0 {
			t.Errorf("the other purge's: %+v", res)
		}
		mustExec(t, holder, "SELECT pg_advisory_unlock(7)")
		if res := batch.must(t); res.Removed == 0 {
			t.Errorf("the first: %+v", res)
		}
		same(t, "the second, again", stepUnderway(t.Context(), second, 50).must(t).Busy, false)
	}
}

// TestPurgeStuck holds that what keeps rows is named: keys of several tables, and a trigger.
func TestPurgeStuck(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables+shopRows+`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id IN (3, 102, 202) THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER "veto of orders" BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION keep(); CREATE TRIGGER vetoed BEFORE DELETE ON lines FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TRIGGER counts AFTER DELETE ON lines FOR EACH ROW EXECUTE FUNCTION keep(); INSERT INTO orders VALUES (4, 'acme'); INSERT INTO returns VALUES (212, 'other', 2), (213, 'other', 1)`)
	p := openPurge(t, Conn(db.Conn(t)), shop(), "acme")
	sums, err := purgeAll(t.Context(), p, 2)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "lines", sums[stepLines].Blocked, []pruner.Block{{Constraint: "vetoed", Table: "public.lines", Rows: 1}})
	// Order 1 has a line and a return, and is named once.
	same(t, "orders", sums[stepOrders].Blocked, []pruner.Block{
		{Constraint: "lines_order_id_fkey", Table: "public.lines", Rows: 1}, {Constraint: "returns_order_id_fkey", Table: "public.returns", Rows: 1}, {Constraint: "veto of orders", Table: "public.orders", Rows: 1},
	})
	same(t, "left", db.Text(t, shopLeft), "l102 o1 o2 o3")
	same(t, "of the others", db.Text(t, shopOthers), "l111 l112 o11 o12 r211 r212 r213")
}

// TestPurgeSelf holds that rows which refer to each other go leaves first, and those in a circle stay and are named; but one
// that refers to itself alone goes.
func TestPurgeSelf(t *testing.T) {
	for _, limit := range []int{2, 100} {
		db := pgtest.New(t)
		db.Exec(t, `CREATE TABLE nodes (id int PRIMARY KEY, tenant_id text NOT NULL, up int REFERENCES nodes ON DELETE CASCADE, UNIQUE (tenant_id, id)); CREATE INDEX ON nodes (up);
INSERT INTO nodes VALUES (1, 'acme', 1), (2, 'acme', NULL), (3, 'acme', 2), (4, 'acme', 3), (5, 'acme', NULL), (6, 'other', 5), (7, 'acme', 6); INSERT INTO nodes VALUES (8, 'acme', NULL), (9, 'acme', 8), (10, 'acme', 9); UPDATE nodes SET up = 10 WHERE id = 8`)
		p := openPurge(t, Conn(db.Conn(t)), purgeOf("nodes"), "acme")
		same(t, "the key", p.Steps()[0].Spec().Self, "nodes_up_fkey")
		first, err := passOf(t.Context(), p.Steps()[0], limit)
		if err != nil || first.Removed == 0 || first.Stuck == 0 {
			t.Errorf("the first pass: %+v, %v", first, err)
		}
		sums, err := purgeAll(t.Context(), p, limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "stuck", sums[0].Blocked, []pruner.Block{{Constraint: "nodes_up_fkey", Table: "public.nodes", Rows: 4}})
		same(t, "left", db.Text(t, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM nodes"), "5 6 8 9 10")
	}
}

// TestPurgeSteps holds that rows which are stepped over are counted, kept and passed, by every walk.
func TestPurgeSteps(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, purgeTables+purgeRows)
	p := openPurge(t, Conn(db.Conn(t)), purgeOfAll(), "acme")
	had := rowsOf(t, db, strings.Fields(purgeNames)...)
	for _, s := range p.Steps() {
		for mode, want := range map[pruner.Mode]func(n int) pruner.Result{
			pruner.StepStuck:  func(n int) pruner.Result { return pruner.Result{Examined: n, Stuck: n} },
			pruner.StepLocked: func(n int) pruner.Result { return pruner.Result{Examined: n, Locked: n} },
		} {
			var at pruner.Cursor
			var sum pruner.Result
			for n := 0; ; n++ {
				res, err := s.Remove(t.Context(), tenant.Batch{Limit: 40, After: at, Mode: mode})
				if err != nil || n > 500 {
					t.Fatal(s.Spec().Table, n, err)
				}
				sum = plusPurged(sum, res)
				if at = res.Next; res.End {
					break
				}
			}
			rows := map[string]int{"runs": 100, "marks": 100, "logs": 100, "parts": 1550, "lines": 600, "orders": 100, "nodes": 50}[s.Spec().Table.Table]
			same(t, fmt.Sprintf("%s, %s", s.Spec().Table, mode), counts(sum), want(rows))
		}
	}
	same(t, "rows", rowsOf(t, db, strings.Fields(purgeNames)...), had)
}

// TestPurgeGivesUpWithoutAnOrder holds that rows which stay, and that no index orders, do not make every batch dearer than
// the one before for ever: the walk ends, and says that it did.
func TestPurgeGivesUpWithoutAnOrder(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE marks (id int, tenant_id text); CREATE INDEX ON marks (tenant_id); INSERT INTO marks SELECT g, 'acme' FROM generate_series(1, 200) g;
CREATE TABLE orders (id int PRIMARY KEY, tenant_id text, UNIQUE (tenant_id, id)); CREATE TABLE parts (n int, order_id int REFERENCES orders); CREATE INDEX ON parts (order_id);
INSERT INTO orders VALUES (1, 'acme'), (2, 'acme'); INSERT INTO parts SELECT g, 1 FROM generate_series(1, 200) g; INSERT INTO parts VALUES (0, 2);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN OLD.n > 0 THEN NULL ELSE OLD END; END'; CREATE TRIGGER veto BEFORE DELETE ON parts FOR EACH ROW EXECUTE FUNCTION keep()`)
	p := purgeOf("marks", "orders")
	p.Tables[1].Children = []policy.Child{{Table: public("parts"), Key: keyTo("id", "order_id")}}
	p.Batch.Limit = 5
	opened := openPurge(t, Conn(db.Conn(t)), p, "acme")
	holder := db.Conn(t)
	mustExec(t, holder, begin+"SELECT FROM marks FOR UPDATE")
	for n, what := range []string{"rows of the tenant that no index orders, and that stay", "rows of one row that no index orders, and that stay"} {
		sum, err := passOf(t.Context(), opened.Steps()[n], 5)
		if err != nil || sum.Examined > 60 || !slices.ContainsFunc(sum.Blocked, func(b pruner.Block) bool { return b.Constraint == what }) {
			t.Errorf("%+v, %v", sum, err)
		}
	}
	same(t, "parts", db.Int(t, "SELECT count(*) FROM parts"), int64(200)) // the walk went on with order 2
}

// TestPurgeErrors holds which errors a batch ends with: those of the port.
func TestPurgeErrors(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables+shopRows)
	conn, other := db.Conn(t), db.Conn(t)
	p := openPurge(t, Conn(conn), shop(), "acme")
	for _, limit := range []int{0, -1, pruner.MaxLimit + 1} {
		if _, err := p.Steps()[0].Remove(t.Context(), tenant.Batch{Limit: limit}); !errors.Is(err, pruner.ErrLimit) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	for _, text := range []string{"x", "{}", "[]", `{"begun":false}`, `{"begun":true,"at":"x"}`, "17"} {
		if _, err := p.Steps()[0].Remove(t.Context(), tenant.Batch{Limit: 5, After: pruner.NewCursor(text)}); err == nil || !strings.Contains(err.Error(), "is no cursor of a purge") {
			t.Errorf("cursor %s: %v", text, err)
		}
	}
	hasty := shop()
	hasty.Timeouts.Lock = 50 * time.Millisecond
	hastyPurge := openPurge(t, Conn(conn), hasty, "acme")
	for table, step := range map[string]int{"returns": stepReturns, "orders": stepLines, "lines": stepLines} {
		mustExec(t, other, begin+"LOCK TABLE "+table+" IN SHARE MODE")
		if table == "orders" {
			mustExec(t, other, "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
		}
		_, err := hastyPurge.Steps()[step].Remove(t.Context(), tenant.Batch{Limit: 5})
		var locked *pruner.LockTimeoutError
		if !errors.As(err, &locked) || locked.Table != "public."+table || locked.CanSkip || locked.LockAfter != 50*time.Millisecond {
			t.Errorf("%s locked: %v", table, err)
		}
		mustExec(t, other, "ROLLBACK")
	}
	mustExec(t, other, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(5); RETURN OLD; END'; CREATE TRIGGER slow BEFORE DELETE ON returns FOR EACH ROW EXECUTE FUNCTION slow()`)
	var timeout *pruner.TimeoutError
	if res, err := p.Steps()[stepReturns].Remove(t.Context(), tenant.Batch{Limit: 5, Timeout: 100 * time.Millisecond}); !errors.As(err, &timeout) || timeout.After != 100*time.Millisecond || !reflect.DeepEqual(res, pruner.Result{}) {
		t.Errorf("%+v, %v", res, err)
	}
	mustExec(t, other, `DROP TRIGGER slow ON returns; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23503', CONSTRAINT = 'c', TABLE = 'returns', SCHEMA = 'public'; END$$; CREATE TRIGGER refuse BEFORE DELETE ON returns FOR EACH ROW EXECUTE FUNCTION refuse()`)
	var refused *pruner.RefusedError
	if _, err := p.Steps()[stepReturns].Remove(t.Context(), tenant.Batch{Limit: 5}); !errors.As(err, &refused) || refused.Block != (pruner.Block{Constraint: "c", Table: "public.returns"}) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := p.Steps()[stepReturns].Remove(ctx, tenant.Batch{Limit: 5}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("%v", err)
	}
	mustExec(t, conn, "BEGIN")
	if _, err := p.Steps()[stepReturns].Remove(t.Context(), tenant.Batch{Limit: 5}); !errors.Is(err, ErrInTransaction) {
		t.Errorf("%v", err)
	}
	mustExec(t, conn, "ROLLBACK; SET default_transaction_read_only = on")
	if _, err := p.Steps()[stepReturns].Remove(t.Context(), tenant.Batch{Limit: 5}); err == nil || !strings.HasPrefix(err.Error(), "read-only target") {
		t.Errorf("%v", err)
	}
	same(t, "left", db.Text(t, shopLeft), "l101 l102 l103 o1 o2 o3 r201 r202")
}

// TestPurgeIsDurable holds what synchronous_commit is in a batch: on, unless the session asks for more.
func TestPurgeIsDurable(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE users (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE said (what text);
CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO said VALUES (current_setting('synchronous_commit')); RETURN OLD; END$$; CREATE TRIGGER say AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION say()`)
	for in, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		for _, m := range execModes {
			db.Exec(t, "TRUNCATE said; INSERT INTO users VALUES ('acme', 1)")
			conn := db.Conn(t, mode(m))
			mustExec(t, conn, "SET synchronous_commit = "+in)
			if _, err := passOf(t.Context(), openPurge(t, Conn(conn), purgeOf("users"), "acme").Steps()[0], 10); err != nil {
				t.Fatal(err)
			}
			same(t, in+", "+m.String(), db.Text(t, "SELECT string_agg(what, '') FROM said"), want)
			same(t, "afterwards", textOf(t, conn, "SELECT current_setting('synchronous_commit')"), in)
		}
	}
}

// TestPurgeInEveryMode purges everything in every exec mode, from a connection and from a pool, and leaves no setting and no
// prepared statement.
func TestPurgeInEveryMode(t *testing.T) {
	for _, m := range execModes {
		db := pgtest.New(t)
		db.Exec(t, purgeTables+purgeRows)
		conn := db.Conn(t, mode(m))
		p := openPurge(t, Conn(conn), purgeOfAll(), "acme")
		if _, err := purgeAll(t.Context(), p, 500); err != nil {
			t.Fatal(m, err)
		}
		same(t, m.String(), leftOf(t, p, 10), "0 0 0 0 0 0 0")
		for _, setting := range []string{setPicked, setPassed, "enable_seqscan", "row_security", "enable_hashjoin"} {
			var got string
			if err := conn.QueryRow(t.Context(), "SELECT coalesce(current_setting($1::text, true), '')", pgx.QueryExecModeSimpleProtocol, setting).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != "" && got != "on" {
				t.Errorf("%s: %s is %q afterwards", m, setting, got)
			}
		}
		var prepared int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeSimpleProtocol).Scan(&prepared); err != nil || prepared > 0 {
			t.Errorf("%s: %d prepared statements, %v", m, prepared, err)
		}
		others := openPurge(t, Pool(db.Pool(t)), purgeOfAll(), "other")
		if _, err := purgeAll(t.Context(), others, 500); err != nil {
			t.Fatal(m, err)
		}
		same(t, "at last", leftOf(t, others, 10), "0 0 0 0 0 0 0")
	}
}

// TestPurgeIsUnreachable holds that no sweep leads to a purge: a step is no Pruner, and nothing that a sweep is opened by or
// runs with returns one.
func TestPurgeIsUnreachable(t *testing.T) {
	prunes := reflect.TypeFor[pruner.Pruner]()
	for _, typ := range []reflect.Type{reflect.TypeFor[*removal](), reflect.TypeFor[tenant.Step](), reflect.TypeFor[*Purge](), reflect.TypeFor[tenant.Remover]()} {
		if typ.Implements(prunes) {
			t.Errorf("%s is a Pruner", typ)
		}
	}
	leads := map[reflect.Type]bool{reflect.TypeFor[*removal](): true, reflect.TypeFor[removal](): true, reflect.TypeFor[*Purge](): true, reflect.TypeFor[Purge](): true, reflect.TypeFor[tenant.Step](): true,
		reflect.TypeFor[tenant.Remover](): true, reflect.TypeFor[*PurgeInspection](): true, reflect.TypeFor[PurgeInspection](): true}
	seen := map[reflect.Type]bool{}
	var visit func(way string, typ reflect.Type)
	visit = func(way string, typ reflect.Type) {
		if leads[typ] {
			t.Errorf("%s leads to a purge", way)
		}
		if seen[typ] || typ.PkgPath() != "" && !strings.Contains(typ.PkgPath(), "prunectl") {
			return
		}
		seen[typ] = true
		for m := range typ.Methods() {
			for n := range m.Type.NumOut() {
				visit(way+"."+m.Name, m.Type.Out(n))
			}
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			visit(way, typ.Elem())
		case reflect.Struct:
			for n := range typ.NumField() {
				visit(way+"."+typ.Field(n).Name, typ.Field(n).Type)
			}
		case reflect.Func:
			for n := range typ.NumOut() {
				visit(way+"()", typ.Out(n))
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[*Arm](), reflect.TypeFor[*Inspection](), reflect.TypeFor[Options](), reflect.TypeFor[pruner.Pruner](), reflect.TypeFor[pruner.Surveyor](), reflect.TypeFor[*DB]()} {
		visit(typ.String(), typ)
	}
	if !seen[reflect.TypeFor[policy.Sweep]()] {
		t.Error("it looked nowhere")
	}
}
