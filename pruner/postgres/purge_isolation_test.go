package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/pruner"
)

// shopSteps are what other sessions do to the shop. Each order of the orders' specs begins with emptied lines and returns.
var shopSteps = []step{
	{"q", "q0", "BEGIN;"},
	{"q", "qmove", "UPDATE orders SET tenant_id = 'other' WHERE id = 1;"},
	{"q", "qcome", "UPDATE orders SET tenant_id = 'acme' WHERE id = 12;"},
	{"q", "qadd", "INSERT INTO orders VALUES (4, 'acme');"},
	{"q", "qdel", "DELETE FROM lines WHERE order_id = 1; DELETE FROM returns WHERE order_id = 1; DELETE FROM orders WHERE id = 1;"},
	{"q", "qkey", "SELECT id FROM orders WHERE id = 1 FOR KEY SHARE;"},
	{"q", "qref", "INSERT INTO returns VALUES (212, 'other', 1);"},
	{"q", "qback", "UPDATE returns SET order_id = 12 WHERE id = 212;"},
	{"q", "qline", "INSERT INTO lines VALUES (104, 1);"},
	{"q", "qturn", "UPDATE lines SET order_id = 11 WHERE id = 101;"},
	{"q", "qturned", "UPDATE lines SET order_id = 1 WHERE id = 111;"},
	{"q", "q1", "COMMIT;"},
	{"q", "qa", "ABORT;"},
	{"h", "hadv", "SELECT pg_advisory_lock(7);"},
	{"h", "hun", "SELECT pg_advisory_unlock(7);"},
	{"l", "left", strings.Replace(shopLeft, "SELECT coalesce(", "SELECT coalesce((SELECT string_agg('O' || o.id || ':' || coalesce((SELECT string_agg(l.id::text, ',') FROM (SELECT l.id FROM lines l WHERE l.order_id = o.id ORDER BY 1) l), ''), ' ' ORDER BY o.id) FROM orders o WHERE o.tenant_id = 'other') || ' ', '') || coalesce(", 1) + ";"},
}

// ordersOrders are those of a table whose rows say whose they are, and which others refer to. There are no lines and no
// returns when they begin.
var ordersOrders = []order{
	{"purge left", "nobody in the way", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: -", "", ""},
	{"sb s1 s2 s3 sc left", "nobody in the way, statement by statement", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: -", "", ""},
	{"q0 qmove purge q1 left", "a row is on its way to another tenant: passed, and it is the other's", []pruner.Result{purged(3, 2, 1, 0)}, "O1: O11: O12: -", "", ""},
	{"q0 qmove purge qa purge left", "the same, rolled back: the next batch has it", []pruner.Result{purged(3, 2, 1, 0), purged(1, 1, 0, 0)}, "O11: O12: -", "", ""},
	{"q0 qmove q1 purge left", "moved before: none of ours", []pruner.Result{purged(2, 2, 0, 0)}, "O1: O11: O12: -", "", ""},
	{"sb s1 q0 qmove s2 s3 sc q1 left", "moved after it was locked: it waits, and finds nothing", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: -", "qmove", ""},
	{"sb s1 q0 qcome s2 s3 sc q1 left", "a row comes from another tenant: it stays for a look", []pruner.Result{purged(3, 3, 0, 0)}, "O11: o12", "", ""},
	{"sb s1 q0 qadd s2 s3 sc q1 left", "a row is added: it stays for a look", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: o4", "", ""},
	{"q0 qdel purge q1 left", "somebody else deletes a row: passed", []pruner.Result{purged(3, 2, 1, 0)}, "O11: O12: -", "", ""},
	{"sb s1 q0 qdel s2 s3 sc q1 left", "the same, after it was locked", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: -", "qdel", ""},
	{"q0 qkey purge q1 left", "somebody shares the key of a row: passed", []pruner.Result{purged(3, 2, 1, 0)}, "O11: O12: o1", "", ""},
	{"q0 qref purge q1 left", "another tenant's row begins to refer to a row: passed", []pruner.Result{purged(3, 2, 1, 0)}, "O11: O12: o1", "", ""},
	{"q0 qref q1 purge left", "the same, committed: stuck, and nothing is taken along", []pruner.Result{purged(3, 2, 0, 1)}, "O11: O12: o1", "", ""},
	{"sb s1 q0 qref s2 s3 sc q1 left", "the same, after it was locked: it waits, and finds nothing", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: -", "qref", "violates foreign key constraint"},
	{"q0 qref q1 sb s1 q0 qback s2 s3 sc q1 left", "it ceases to: stuck while it is not committed", []pruner.Result{purged(3, 2, 0, 1)}, "O11: O12: o1", "", ""},
	{"q0 qref q1 sb s1 q0 qback q1 s2 s3 sc left", "the same, committed between two statements: removed", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: -", "", ""},
	{"q0 qline purge q1 left", "a child is added: the row is passed", []pruner.Result{purged(3, 2, 1, 0)}, "O11: O12: l104 o1", "", ""},
	{"q0 qline q1 purge left", "the same, committed: stuck", []pruner.Result{purged(3, 2, 0, 1)}, "O11: O12: l104 o1", "", ""},
	{"sb tb s1 t1 t2 t3 tc s2 s3 sc left", "a second purge of the tenant is busy and takes nothing", []pruner.Result{{}, purged(3, 3, 0, 0)}, "O11: O12: -", "", ""},
	{"sb s1 s2 s3 sc tb t1 t2 t3 tc left", "one after the other", []pruner.Result{purged(3, 3, 0, 0), purged(0, 0, 0, 0)}, "O11: O12: -", "", ""},
}

// linesOrders are those of a table whose rows go by the rows that they refer to.
var linesOrders = []order{
	{"purge left", "nobody in the way", []pruner.Result{purged(3, 3, 0, 0)}, "O11:111 O12:112 o1 o2 o3", "", ""},
	{"sb s1 s2 s3 sc left", "nobody in the way, statement by statement", []pruner.Result{purged(3, 3, 0, 0)}, "O11:111 O12:112 o1 o2 o3", "", ""},
	{"q0 qmove purge q1 left", "their row is on its way to another tenant: passed with it", []pruner.Result{purged(3, 1, 2, 0)}, "O1:101,102 O11:111 O12:112 o2 o3", "", ""},
	{"q0 qmove q1 purge left", "moved before: none of ours", []pruner.Result{purged(1, 1, 0, 0)}, "O1:101,102 O11:111 O12:112 o2 o3", "", ""},
	{"sb s1 q0 qmove s2 s3 sc q1 left", "moved after they were locked: it waits", []pruner.Result{purged(3, 3, 0, 0)}, "O1: O11:111 O12:112 o2 o3", "qmove", ""},
	{"q0 qturn purge q1 left", "a row is on its way to another tenant's: passed", []pruner.Result{purged(3, 2, 1, 0)}, "O11:101,111 O12:112 o1 o2 o3", "", ""},
	{"sb s1 q0 qturn s2 s3 sc q1 left", "the same, after it was locked: it waits, and finds nothing", []pruner.Result{purged(3, 3, 0, 0)}, "O11:111 O12:112 o1 o2 o3", "qturn", ""},
	{"q0 qturned purge q1 left", "a row comes from another tenant's: it stays for a look", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12:112 l111 o1 o2 o3", "", ""},
	{"q0 qline purge q1 left", "a row is added: it stays for a look", []pruner.Result{purged(3, 3, 0, 0)}, "O11:111 O12:112 l104 o1 o2 o3", "", ""},
	{"sb s1 q0 qline s2 s3 sc q1 left", "the same, after they were locked: it waits for nobody", []pruner.Result{purged(3, 3, 0, 0)}, "O11:111 O12:112 l104 o1 o2 o3", "", ""},
	{"q0 qdel purge q1 left", "somebody else deletes the row and its rows: passed", []pruner.Result{purged(3, 1, 2, 0)}, "O11:111 O12:112 o2 o3", "", ""},
	{"sb tb s1 t1 t2 t3 tc s2 s3 sc left", "a second purge of the tenant is busy and takes nothing", []pruner.Result{{}, purged(3, 3, 0, 0)}, "O11:111 O12:112 o1 o2 o3", "", ""},
}

// What another session commits between the snapshot of the pick and its locks.
var (
	ordersSnapshotOrders = []order{
		{"hadv purge q0 qmove q1 hun left", "moved since the snapshot: passed", []pruner.Result{purged(3, 2, 1, 0)}, "O1: O11: O12: -", "purge", ""},
		{"hadv purge q0 qdel q1 hun left", "deleted since the snapshot", []pruner.Result{purged(3, 2, 1, 0)}, "O11: O12: -", "purge", ""},
		{"hadv purge q0 qref q1 hun left", "referred to since the snapshot: stuck, by the second look", []pruner.Result{purged(3, 2, 0, 1)}, "O11: O12: o1", "purge", ""},
		{"hadv purge q0 qline q1 hun left", "a child added since the snapshot: stuck", []pruner.Result{purged(3, 2, 0, 1)}, "O11: O12: l104 o1", "purge", ""},
		{"hadv purge q0 qadd q1 hun left", "added since the snapshot: it stays for a look", []pruner.Result{purged(3, 3, 0, 0)}, "O11: O12: o4", "purge", ""},
	}
	linesSnapshotOrders = []order{
		{"hadv purge q0 qmove q1 hun left", "their row moved since the snapshot: passed", []pruner.Result{purged(3, 1, 2, 0)}, "O1:101,102 O11:111 O12:112 o2 o3", "purge", ""},
		{"hadv purge q0 qturn q1 hun left", "a row moved since the snapshot: passed", []pruner.Result{purged(3, 2, 1, 0)}, "O11:101,111 O12:112 o1 o2 o3", "purge", ""},
		{"hadv purge q0 qline q1 hun left", "added since the snapshot: it stays for a look", []pruner.Result{purged(3, 3, 0, 0)}, "O11:111 O12:112 l104 o1 o2 o3", "purge", ""},
	}
)

// purgeIsolation is a spec for isolationtester, generated from the statements of a step of the shop's purge.
type purgeIsolation struct {
	name, golden string // golden: of another spec that must give the same output
	step         int
	edit         func(name, sql string) string
	defaults     string
	orders       []order
}

// calls are the statements of one batch, with their values put in, by the names of their steps.
func (p purgeIsolation) calls(s *removal) (names []string, sql map[string]string) {
	values := s.values(50, 12, spot{})
	values[argLockTimeout], values[argStatementTimeout] = millis(2*time.Minute), millis(5*time.Minute)
	braces := strings.NewReplacer("'{}'", `U&'\007B\007D'`) // the spec language ends a block at a brace
	text := func(name string, st statement) string {
		return braces.Replace(strings.TrimSpace(s.statement(name, st).inline(values)))
	}
	sql = map[string]string{
		"b": isolationBegin + "\nSELECT count(s.*) AS settings FROM (" + text("settings", s.settingsSQL()) + "\n) s;",
		"1": text("pick", s.pickSQL(form{})) + "\n;",
		"2": "WITH gone AS (\n" + text("delete", s.deleteSQL()) + "\n RETURNING 1) SELECT count(*) AS gone FROM gone g;",
		"3": "SELECT a.left, NULL AS xid, a.passed, a.kept FROM (" + text("after", s.afterSQL(form{})) + "\n) a;",
	}
	return []string{"b", "1", "2", "3"}, sql
}

// spec writes the spec. ours has a short name for each of the engine's texts in it.
func (p purgeIsolation) spec(s *removal) (text string, ours map[string]string) {
	ours = map[string]string{}
	names, sql := p.calls(s)
	var b strings.Builder
	rows := shopRows + "DELETE FROM returns;"
	if p.step == stepOrders {
		rows += "DELETE FROM lines;"
	}
	fmt.Fprintf(&b, "setup { %s }\n", rows)
	for _, session := range []string{"s", "t"} {
		fmt.Fprintf(&b, "session %s\n", session)
		if p.defaults != "" {
			fmt.Fprintf(&b, "setup { SET default_transaction_isolation = '%s'; }\n", p.defaults)
		}
		whole := ""
		for _, n := range names {
			fmt.Fprintf(&b, "step %s%s { %s }\n", session, n, sql[n])
			whole += sql[n] + "\n"
			ours[sql[n]] = n
		}
		fmt.Fprintf(&b, "step %sc { COMMIT; }\n", session)
		if session == "s" {
			fmt.Fprintf(&b, "step purge { %s COMMIT; }\n", whole)
		}
	}
	for _, session := range []string{"q", "h", "l"} {
		fmt.Fprintf(&b, "session %s\n", session)
		for _, st := range shopSteps {
			if st.session == session {
				fmt.Fprintf(&b, "step %s { %s }\n", st.name, st.sql)
			}
		}
	}
	for _, o := range p.orders {
		fmt.Fprintf(&b, "permutation %s\n", o.steps)
	}
	return b.String(), ours
}

// open makes the shop and opens the step.
func (p purgeIsolation) open(t *testing.T) (*pgtest.DB, *removal) {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, shopTables)
	s := openPurge(t, Conn(db.Conn(t)), shop(), "acme").steps[p.step]
	s.edit = p.edit
	return db, s
}

// read takes the answers of the batches out of an output, in the order in which they end, and has the engine count them.
func (p purgeIsolation) read(s *removal, out string) (counts []pruner.Result, left string, err error) {
	sessionOf := func(name string) (string, bool) {
		return strings.Replace(name[:1], "p", "s", 1), slices.Contains([]string{"sb", "tb", "purge"}, name)
	}
	isLeft := func(head answer, session string) bool {
		return head[0].text == "coalesce" || head[0].text == "?column?" && session == "l"
	}
	return readBatches(out, 4, sessionOf, isLeft, func(answers []answer) (pruner.Result, error) {
		res, _, _, err := s.count(answers, form{})
		return res, err
	})
}

func purgeIsolationSpecs() []purgeIsolation {
	return []purgeIsolation{
		{name: "purge", step: stepOrders, orders: ordersOrders},
		{name: "purge-repeatable-read", golden: "purge", step: stepOrders, defaults: "repeatable read", orders: ordersOrders},
		{name: "purge-after-snapshot", step: stepOrders, edit: pausedPurge, orders: ordersSnapshotOrders},
		{name: "purge-children", step: stepLines, orders: linesOrders},
		{name: "purge-children-serializable", golden: "purge-children", step: stepLines, defaults: "serializable", orders: linesOrders},
		{name: "purge-children-after-snapshot", step: stepLines, edit: pausedPurge, orders: linesSnapshotOrders},
	}
}

// TestIsolationPurges runs the orders on the engine's own statements.
func TestIsolationPurges(t *testing.T) {
	t.Parallel()
	for _, p := range purgeIsolationSpecs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			db, s := p.open(t)
			text, names := p.spec(s)
			outs := runSpec(t, isolationTester(t), db, text, names, len(p.orders))
			holdOrders(t, p.name, p.golden, p.orders, outs, func(o order, out string) error {
				counts, left, err := p.read(s, out)
				if err != nil {
					return err
				}
				return o.check(out, counts, left)
			})
		})
	}
}
