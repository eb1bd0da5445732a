package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// TestPurgeLook holds what a look counts, up to which bound, and that it is one snapshot of all tables.
func TestPurgeLook(t *testing.T) {
	for _, m := range execModes {
		db := pgtest.New(t)
		db.Exec(t, purgeTables+purgeRows)
		p := openPurge(t, Conn(db.Conn(t, mode(m))), purgeOfAll(), "acme")
		for bound, want := range map[int]string{1: "1+ 1+ 1+ 1+ 1+ 1+ 1+", 50: "50+ 50+ 50+ 50+ 50+ 50+ 50", 99: "99+ 99+ 99+ 99+ 99+ 99+ 50", 100: "100 100 100 100+ 100+ 100 50", 1549: "100 100 100 1549+ 600 100 50", 1550: "100 100 100 1550 600 100 50"} {
			same(t, fmt.Sprintf("%s, %d", m, bound), leftOf(t, p, bound), want)
		}
		proof, err := p.Look(t.Context(), 5)
		if err != nil || proof.Empty() || proof.Rows() != 35 || time.Since(proof.At).Abs() > time.Minute || proof.At.Location() != time.UTC {
			t.Errorf("%+v, %v", proof, err)
		}
		if _, err := p.Look(t.Context(), 0); err == nil {
			t.Error("a look that counts to 0 says nothing")
		}
	}
}

// TestPurgeLooksOnce has another session move a row from a table that is still to be counted to one that is counted already:
// the look finds it all the same, where it was.
func TestPurgeLooksOnce(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE a (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE b (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); INSERT INTO b VALUES ('acme', 1)`)
	r := &race{DB: db, admin: db.Conn(t)}
	p := openPurge(t, Conn(db.Conn(t)), purgeOf("a", "b"), "acme")
	p.steps[1].edit = func(_, sql string) string {
		return replaceOnce(sql, "   WHERE ", "   WHERE (SELECT pg_advisory_lock_shared(7)::text) IS NOT NULL AND ")
	}
	holder := db.Conn(t)
	mustExec(t, holder, "SELECT pg_advisory_lock(7)")
	look := start(func() (tenant.Proof, error) { return p.Look(t.Context(), 10) })
	r.untilWaiting(t, p.db.conn.PgConn().PID())
	mustExec(t, r.admin, "BEGIN; INSERT INTO a SELECT * FROM b; DELETE FROM b; COMMIT")
	mustExec(t, holder, "SELECT pg_advisory_unlock(7)")
	same(t, "left", look.must(t).Left, []tenant.Left{{}, {Rows: 1}})
}

// TestPurgeWriters holds who is named as about to add rows, and who is not.
func TestPurgeWriters(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables+shopRows+"CREATE TABLE beside (id int PRIMARY KEY)")
	app := func(name string) *pgx.Conn {
		return db.Conn(t, func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = name })
	}
	p := openPurge(t, Conn(app("purge")), shop(), "acme")
	for n, c := range []struct{ sql, want string }{
		{"INSERT INTO returns VALUES (300, 'acme')", "public.returns"},
		{"UPDATE lines SET id = id WHERE id = 101", "public.lines"},
		{"DELETE FROM orders WHERE id = 12", "public.lines public.orders public.returns"}, // the keys' actions write there too
		{"INSERT INTO lines VALUES (300, 1); UPDATE returns SET id = id", "public.lines public.returns"},
		{"SELECT FROM orders FOR UPDATE", ""}, {"SELECT FROM orders", ""}, {"INSERT INTO beside VALUES (1)", ""},
		{"LOCK TABLE lines IN SHARE UPDATE EXCLUSIVE MODE", ""}, // VACUUM
		{"LOCK TABLE lines IN SHARE ROW EXCLUSIVE MODE", "public.lines"},
	} {
		conn := app(fmt.Sprintf("writer %d", n))
		mustExec(t, conn, begin+c.sql)
		proof, err := p.Look(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		var tables []string
		for _, w := range proof.Writers {
			if w.PID != int(conn.PgConn().PID()) || w.App != fmt.Sprintf("writer %d", n) {
				t.Errorf("%s: %+v", c.sql, w)
			}
			tables = append(tables, w.Table.String())
		}
		slices.Sort(tables)
		same(t, c.sql, strings.Join(tables, " "), c.want)
		mustExec(t, conn, "ROLLBACK")
	}
	proof, err := p.Look(t.Context(), 100)
	if err != nil || len(proof.Writers) > 0 {
		t.Errorf("%+v, %v", proof, err)
	}
}

// TestPurgeLookFails holds that a look which cannot see everything says so, and proves nothing.
func TestPurgeLookFails(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, shopTables+shopRows)
	conn := db.Conn(t)
	p := openPurge(t, Conn(conn), shop(), "acme")
	db.Exec(t, "DROP TABLE returns")
	if proof, err := p.Look(t.Context(), 10); err == nil || !strings.HasPrefix(err.Error(), "look for rows of the tenant: public.returns: ") || proof.Left != nil {
		t.Errorf("%+v, %v", proof, err)
	}
	same(t, "the connection", string(conn.PgConn().TxStatus()), "I")
}
