package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// The outbox: event 1 has an ok and a dead delivery, event 2 two that are ok, event 3 a pending one. The cutoff is at hour
// 100. Undisturbed, a batch examines three events, removes two with four deliveries and holds one.
const (
	outboxTables = `CREATE TABLE ev (id int PRIMARY KEY, at timestamptz NOT NULL, parked bool);
CREATE INDEX ev_at ON ev (at, id);
CREATE TABLE dl (id int PRIMARY KEY, ev int NOT NULL REFERENCES ev, rcv text NOT NULL, status text NOT NULL, UNIQUE (ev, rcv));
CREATE INDEX dl_open ON dl (ev) WHERE status NOT IN ('ok', 'dead');`
	outboxRows = `TRUNCATE ev, dl;
INSERT INTO ev SELECT g, timestamptz '2020-01-01 00:00+00' + g * interval '1 hour' FROM generate_series(1,3) g;
INSERT INTO dl VALUES (11, 1, 'r1', 'ok'), (12, 1, 'r2', 'dead'), (21, 2, 'r1', 'ok'), (22, 2, 'r2', 'ok'), (31, 3, 'r1', 'pending');`
	outboxLeft = `SELECT coalesce(string_agg(id || k, ' ' ORDER BY id), '-') AS left FROM (
 SELECT e.id, coalesce(':' || string_agg(d.id || d.status, ',' ORDER BY d.id), '') AS k FROM ev e LEFT JOIN dl d ON d.ev = e.id GROUP BY 1) x;`
)

func outboxOfEv() policy.Sweep {
	key := []policy.ChildKey{{Parent: "id", Child: "ev"}}
	table := policy.Name{Schema: "public", Table: "dl"}
	return policy.Sweep{
		Name: "ev", Table: policy.Name{Schema: "public", Table: "ev"}, Age: "at", Window: policy.MustWindow(24 * time.Hour),
		Guard:    policy.Guard{Owed: &policy.OwedGuard{Table: table, Key: key, Column: "status", Terminal: policy.Texts("ok", "dead")}, Hold: "parked"},
		Children: []policy.Child{{Table: table, Key: key}},
	}
}

// family is what a batch of parents must count.
func familyCount(examined, removed, children, held, locked, moved int) pruner.Result {
	return pruner.Result{Examined: examined, Removed: removed, Children: children, Held: held, Locked: locked, Moved: moved}
}

var undisturbedOutbox = familyCount(3, 2, 4, 1, 0, 0)

// outboxSteps are what other sessions do to the outbox.
var outboxSteps = []step{
	{"q", "q0", "BEGIN;"},
	{"q", "qlock", "SELECT id FROM ev WHERE id = 1 FOR UPDATE;"},
	{"q", "qre", "UPDATE dl SET status = 'pending' WHERE id = 12 RETURNING id AS requeued;"},
	{"q", "qtouch", "UPDATE dl SET status = status WHERE id = 12 RETURNING id AS touched;"},
	{"q", "qins", "INSERT INTO dl VALUES (13, 1, 'r9', 'pending');"},
	{"q", "qdel", "DELETE FROM dl WHERE ev = 1; DELETE FROM ev WHERE id = 1;"},
	{"q", "qage", "UPDATE ev SET at = at + interval '500 hours' WHERE id = 1;"},
	{"q", "qpark", "UPDATE ev SET parked = true WHERE id = 1;"},
	{"q", "q1", "COMMIT;"},
	{"q", "qa", "ABORT;"},
	{"h", "hadv", "SELECT pg_advisory_lock(7);"},
	{"h", "hun", "SELECT pg_advisory_unlock(7);"},
	{"l", "left", outboxLeft},
}

const allOfOutbox = "1:11ok,12dead 2:21ok,22ok 3:31pending"

var outboxOrders = []order{
	{"sweep left", "nobody in the way", []pruner.Result{undisturbedOutbox}, "3:31pending", "", ""},
	{"sb s1 sk s2 s3 s4 s5 sc left", "nobody in the way, statement by statement", []pruner.Result{undisturbedOutbox}, "3:31pending", "", ""},
	{"q0 qlock qre sweep q1 left", "requeued first, under the parent's lock: the parent is passed",
		[]pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "1:11ok,12pending 3:31pending", "", ""},
	{"q0 qlock qre sweep qa sweep left", "the same, rolled back: kept now, removed by the next batch",
		[]pruner.Result{familyCount(3, 1, 2, 1, 1, 0), familyCount(2, 1, 2, 1, 0, 0)}, "3:31pending", "", ""},
	{"sb s1 q0 qlock sk s2 s3 s4 s5 sc qre q1 left", "the sweep first: the requeuing waits and finds nothing",
		[]pruner.Result{undisturbedOutbox}, "3:31pending", "qlock", ""},
	{"q0 qre sweep q1 left", "requeued without the parent's lock, not committed when the sweep begins: its child and the parent stay",
		[]pruner.Result{familyCount(3, 1, 3, 1, 0, 1)}, "1:12pending 3:31pending", "sweep", ""},
	{"sb s1 q0 qre sk s2 s3 q1 s4 s5 sc left", "the same, after the parent was locked",
		[]pruner.Result{familyCount(3, 1, 3, 1, 0, 1)}, "1:12pending 3:31pending", "s3", ""},
	{"sb s1 q0 qre sk s2 s3 qa s4 s5 sc left", "the same, rolled back: removed", []pruner.Result{undisturbedOutbox}, "3:31pending", "s3", ""},
	{"hb s1 q0 qre sk s2 s3 sr q1 left", "the same, and it does not end: the batch gives up and removes nothing",
		nil, "1:11ok,12pending 2:21ok,22ok 3:31pending", "s3", timedOut},
	{"sb s1 q0 qre q1 sk s2 s3 s4 s5 sc left", "requeued without the parent's lock and committed between two statements: kept whole",
		[]pruner.Result{familyCount(3, 1, 2, 1, 0, 1)}, "1:11ok,12pending 3:31pending", "", ""},
	{"sb s1 sk s2 q0 qre q1 s3 s4 s5 sc left", "the same, after it was asked again: its child and the parent stay",
		[]pruner.Result{familyCount(3, 1, 3, 1, 0, 1)}, "1:12pending 3:31pending", "", ""},
	{"q0 qins sweep q1 left", "a child added before, not committed: it shares the parent's lock, so the parent is passed",
		[]pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "1:11ok,12dead,13pending 3:31pending", "", ""},
	{"q0 qins q1 sweep left", "the same, committed: held", []pruner.Result{familyCount(3, 1, 2, 2, 0, 0)}, "1:11ok,12dead,13pending 3:31pending", "", ""},
	{"sb s1 q0 qins sk s2 s3 s4 s5 sc q1 left", "a child added after the lock: it waits, and finds no parent",
		[]pruner.Result{undisturbedOutbox}, "3:31pending", "qins", "violates foreign key constraint"},
	{"q0 qdel sweep q1 left", "somebody else deletes the parent: passed", []pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "3:31pending", "", ""},
	{"q0 qage sweep q1 left", "the parent's age is being moved: passed", []pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "1:11ok,12dead 3:31pending", "", ""},
	{"q0 qpark sweep q1 sweep left", "the parent is being held: passed, held the next time",
		[]pruner.Result{familyCount(3, 1, 2, 1, 1, 0), familyCount(2, 0, 0, 2, 0, 0)}, "1:11ok,12dead 3:31pending", "", ""},
	{"sb tb s1 t1 sk s2 s3 tk t2 t3 t4 t5 s4 s5 sc tc left", "two sweepers: the second passes what the first has",
		[]pruner.Result{familyCount(3, 0, 0, 1, 2, 0), undisturbedOutbox}, "3:31pending", "", ""},
}

// outboxAfterSnapshotOrders have another session commit between the first statement's snapshot and its locks.
var outboxAfterSnapshotOrders = []order{
	{"hadv sweep q0 qlock qre q1 hun left", "requeued since the snapshot: kept whole, by the second look", []pruner.Result{familyCount(3, 1, 2, 1, 0, 1)}, "1:11ok,12pending 3:31pending", "sweep", ""},
	{"hadv sweep q0 qins q1 hun left", "a child added since the snapshot: kept whole", []pruner.Result{familyCount(3, 1, 2, 1, 0, 1)}, "1:11ok,12dead,13pending 3:31pending", "sweep", ""},
	{"hadv sweep q0 qage q1 hun left", "age moved forward since the snapshot: kept", []pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "1:11ok,12dead 3:31pending", "sweep", ""},
	{"hadv sweep q0 qpark q1 hun left", "held since the snapshot: kept", []pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "1:11ok,12dead 3:31pending", "sweep", ""},
	{"hadv sweep q0 qdel q1 hun left", "deleted since the snapshot", []pruner.Result{familyCount(3, 1, 2, 1, 1, 0)}, "3:31pending", "sweep", ""},
}

// parentIsolation is a spec for isolationtester, generated from the statements of the parent form.
type parentIsolation struct {
	name, golden string // golden: of another spec that must give the same output
	edit         func(shape, string) string
	editStep     func(shape, string, string) string
	defaults     string
	orders       []order
}

// calls are the statements of one batch, with their values put in, by the names of their steps.
func (s parentIsolation) calls(a *Arm, lock time.Duration) (names []string, sql map[string]string) {
	b := pruner.Batch{Cutoff: raceCutoff, Limit: 50}
	values := a.values(b, place{Age: a.sweep.Since.UnixMicro()})
	values[argLook], values[argWhole], values[argLockTimeout], values[argStatementTimeout] = "12", "50", millis(lock), millis(5*time.Minute)
	braces := strings.NewReplacer("'{}'", `U&'\007B\007D'`) // the spec language ends a block at a brace
	text := func(st statement) string { return braces.Replace(strings.TrimSpace(st.inline(values))) }
	deleting := func(st statement) string {
		return "WITH gone AS (\n" + text(st) + "\n RETURNING 1) SELECT count(*) AS gone FROM gone g;"
	}
	sh := shape{}
	sql = map[string]string{
		"b": isolationBegin + "\nSELECT count(s.*) AS settings FROM (" + text(a.settingsSQL()) + "\n) s;",
		"1": text(a.statement(sh)) + "\n;", "k": nearKeysSQL + ";",
		"2": text(a.step(sh, "recheck", a.recheckSQL())) + "\n;",
		"3": deleting(a.step(sh, "child public.dl", a.childSQL(a.children[0]))),
		"4": deleting(a.step(sh, "parents", a.parentSQL())),
		"5": "SELECT a.left, a.owed, NULL AS xid, a.passed, a.kids FROM (" + text(a.step(sh, "after", a.afterParentsSQL())) + "\n) a;",
	}
	return []string{"b", "1", "k", "2", "3", "4", "5"}, sql
}

// spec writes the spec. ours has a short name for each of the engine's texts in it.
func (s parentIsolation) spec(a *Arm) (text string, ours map[string]string) {
	ours = map[string]string{}
	names, sql := s.calls(a, 2*time.Minute)
	_, hasty := s.calls(a, 50*time.Millisecond)
	var b strings.Builder
	fmt.Fprintf(&b, "setup { %s }\n", outboxRows)
	for _, session := range []string{"s", "t"} {
		fmt.Fprintf(&b, "session %s\n", session)
		if s.defaults != "" {
			fmt.Fprintf(&b, "setup { SET default_transaction_isolation = '%s'; }\n", s.defaults)
		}
		whole := ""
		for _, n := range names {
			fmt.Fprintf(&b, "step %s%s { %s }\n", session, n, sql[n])
			whole += sql[n] + "\n"
			ours[sql[n]] = n
		}
		fmt.Fprintf(&b, "step %sc { COMMIT; }\n", session)
		if session == "s" {
			fmt.Fprintf(&b, "step sweep { %s COMMIT; }\nstep hb { %s }\nstep sr { ROLLBACK; }\n", whole, hasty["b"])
			ours[hasty["b"]] = "b, hasty"
		}
	}
	for _, session := range []string{"q", "h", "l"} {
		fmt.Fprintf(&b, "session %s\n", session)
		for _, st := range outboxSteps {
			if st.session == session {
				fmt.Fprintf(&b, "step %s { %s }\n", st.name, st.sql)
			}
		}
	}
	for _, o := range s.orders {
		fmt.Fprintf(&b, "permutation %s\n", o.steps)
	}
	return b.String(), ours
}

// run runs the spec and returns the output of each order.
func (s parentIsolation) run(t *testing.T) []string {
	t.Helper()
	tester := isolationTester(t)
	db := pgtest.New(t)
	db.Exec(t, outboxTables)
	arms, err := Open(t.Context(), Conn(db.Conn(t)), outboxOfEv(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := arms[0]
	a.edit, a.editStep = s.edit, s.editStep
	text, names := s.spec(a)
	return runSpec(t, tester, db, text, names, len(s.orders))
}

// read takes the answers of the batches out of an output, in the order in which they end, and has the engine count them.
func (s parentIsolation) read(out string) (counts []pruner.Result, left string, err error) {
	a := &Arm{target: target{table: &table{}, owed: &child{}, children: []*child{{}}}}
	sessionOf := func(name string) (string, bool) {
		session := name[:1]
		if strings.HasPrefix(name, "hb") {
			session = "s"
		}
		return session, slices.Contains([]string{"sb", "hb", "tb", "sweep"}, name)
	}
	isLeft := func(head answer, _ string) bool { return head[0].text == "left" && len(head) == 1 }
	return readBatches(out, 7, sessionOf, isLeft, func(answers []answer) (pruner.Result, error) {
		res, _, _, err := a.countParents(answers, shape{})
		return res, err
	})
}

func (s parentIsolation) check(o order, out string) error {
	counts, left, err := s.read(out)
	if err != nil {
		return err
	}
	return o.check(out, counts, left)
}

// pausedParents is as paused is for the other form.
func pausedParents(_ shape, sql string) string {
	sql = replaceOnce(sql, "WITH seen AS MATERIALIZED", "WITH pause AS MATERIALIZED (SELECT pg_advisory_xact_lock(7) AS x), seen AS MATERIALIZED")
	return replaceOnce(sql, "           ORDER BY e.", "             AND (SELECT count(p.x) FROM pause p) = 1\n           ORDER BY e.")
}

func parentIsolationSpecs() []parentIsolation {
	return []parentIsolation{
		{name: "parents", orders: outboxOrders},
		{name: "parents-repeatable-read", golden: "parents", defaults: "repeatable read", orders: outboxOrders},
		{name: "parents-serializable", golden: "parents", defaults: "serializable", orders: outboxOrders},
		{name: "parents-after-snapshot", edit: pausedParents, orders: outboxAfterSnapshotOrders},
	}
}

// TestIsolationParents runs the orders on the engine's own statements.
func TestIsolationParents(t *testing.T) {
	t.Parallel()
	for _, s := range parentIsolationSpecs() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			holdOrders(t, s.name, s.golden, s.orders, s.run(t), s.check)
		})
	}
}
