package postgres

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// The owner-guarded population: runs a and b are done, c is live, x has no owner and two events have no key to one. Each
// has an event at each of the hours 1 to 5, and the cutoff is at hour 100. Undisturbed, a batch examines 22 events,
// removes the 10 of a and b, holds the 5 of c and leaves 7 orphans.
const (
	ownerTables = `CREATE TABLE runs (id text PRIMARY KEY, status text NOT NULL);
CREATE TABLE ev (run text, seq int, at timestamptz, UNIQUE (run, seq));
CREATE INDEX ev_at ON ev (at, run);`
	ownerRows = `TRUNCATE runs, ev;
INSERT INTO runs VALUES ('a','done'),('b','done'),('c','live');
INSERT INTO ev SELECT r, s, timestamptz '2020-01-01 00:00+00' + s * interval '1 hour' FROM unnest(array['a','b','c','x']) r, generate_series(1,5) s;
INSERT INTO ev VALUES (null, 1, '2020-01-01 01:00+00'), (null, 2, '2020-01-01 02:00+00');`
)

// ownerSteps are what other sessions do to the population.
var ownerSteps = []step{
	{"u", "ub", "BEGIN;"},
	{"u", "ureopen", "UPDATE runs SET status = 'live' WHERE id = 'b';"},
	{"u", "ukey", "UPDATE runs SET id = 'b2' WHERE id = 'b';"},
	{"u", "udel", "DELETE FROM runs WHERE id = 'b';"},
	{"u", "utouch", "UPDATE runs SET status = 'done' WHERE id = 'b';"},
	{"u", "uclose", "UPDATE runs SET status = 'done' WHERE id = 'c';"},
	{"u", "uage", "UPDATE ev SET at = at + interval '500 hours' WHERE run = 'a' AND seq = 2;"},
	{"u", "umove", "UPDATE ev SET at = at WHERE run = 'a' AND seq = 2;"},
	{"u", "uown", "UPDATE ev SET run = 'c', seq = 99 WHERE run = 'a' AND seq = 2;"},
	{"u", "uins", "INSERT INTO ev VALUES ('c', 50, '2020-01-01 02:00+00'), ('b', 50, '2020-01-01 02:00+00');"},
	{"u", "uc", "COMMIT;"},
	{"u", "ua", "ABORT;"},
	{"h", "hadv", "SELECT pg_advisory_lock(7);"},
	{"h", "hun", "SELECT pg_advisory_unlock(7);"},
	{"h", "hb", "BEGIN;"},
	{"h", "hlock", "SELECT id FROM runs WHERE id = 'a' FOR SHARE;"},
	{"h", "hrow", "SELECT seq FROM ev WHERE run = 'a' AND seq = 1 FOR UPDATE;"},
	{"h", "hc", "COMMIT;"},
	{"l", "left", `SELECT string_agg(k || n, ' ' ORDER BY k COLLATE "C") AS left FROM (SELECT coalesce(run, '-') AS k, count(*) AS n FROM ev GROUP BY 1) x;`},
}

func guardedEvents() policy.Sweep {
	return policy.Sweep{
		Name: "ev", Table: policy.Name{Schema: "public", Table: "ev"}, Age: "at", Window: policy.MustWindow(24 * time.Hour),
		Guard: policy.Guard{Owner: &policy.OwnerGuard{
			Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "run", Owner: "id"}},
			Column: "status", Terminal: policy.Texts("done"),
		}},
	}
}

// undisturbed is the batch that nobody gets in the way of.
var undisturbed = count(22, 10, 5, 0, 0, 7)

var ownerOrders = []order{
	{"ub ureopen sweep uc left", "reopened before, not yet committed: kept and counted as locked",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "", ""},
	{"ub ureopen sweep ua sweep left", "reopened before and rolled back: kept now, removed by the next batch",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7), count(17, 5, 5, 0, 0, 7)}, "-2 c5 x5", "", ""},
	{"sb batch ub ureopen sc uc left", "reopened after the owner's lock: waits for our commit, as if the sweep had come first",
		[]pruner.Result{undisturbed}, "-2 c5 x5", "ureopen", ""},
	{"hb hrow sweep ub ureopen hc uc left", "reopened while the batch waits for a row: waits for our commit",
		[]pruner.Result{undisturbed}, "-2 c5 x5", "sweep ureopen", ""},
	{"ub udel sweep uc sweep left", "owner deleted, not yet committed: locked now, an orphan the next time",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7), count(17, 0, 5, 0, 0, 12)}, "-2 b5 c5 x5", "", ""},
	{"ub ukey sweep uc sweep left", "owner's key changed, not yet committed: locked now, an orphan the next time",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7), count(17, 0, 5, 0, 0, 12)}, "-2 b5 c5 x5", "", ""},
	{"ub utouch sweep uc sweep left", "owner touched, still terminal, not yet committed: locked now, removed the next time",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7), count(17, 5, 5, 0, 0, 7)}, "-2 c5 x5", "", ""},
	{"ub uage sweep uc left", "age moved forward while the batch waits for the row: kept, moved",
		[]pruner.Result{count(22, 9, 5, 0, 1, 7)}, "-2 a1 c5 x5", "sweep", ""},
	{"ub uage sweep ua left", "the same, rolled back: removed",
		[]pruner.Result{undisturbed}, "-2 c5 x5", "sweep", ""},
	{"ub umove sweep uc left", "row updated while the batch waits, still due: another address, so kept for the next pass, moved",
		[]pruner.Result{count(22, 9, 5, 0, 1, 7)}, "-2 a1 c5 x5", "sweep", ""},
	{"ub uown sweep uc left", "row given to a live owner while the batch waits: kept, moved",
		[]pruner.Result{count(22, 9, 5, 0, 1, 7)}, "-2 c6 x5", "sweep", ""},
	{"sb b2 batch batch2 sc c2 left", "two sweepers on one range: the second waits, removes nothing and says that all it picked had moved",
		[]pruner.Result{undisturbed, count(22, 0, 5, 0, 10, 7)}, "-2 c5 x5", "batch2", ""},
	{"hb hlock sweep hc left", "an owner that is share-locked by a reader is no obstacle",
		[]pruner.Result{undisturbed}, "-2 c5 x5", "", ""},
	{"ub uins sweep uc left sweep left", "rows inserted behind the cursor: kept, and judged the next time",
		[]pruner.Result{undisturbed, count(14, 1, 6, 0, 0, 7)}, "-2 c6 x5", "", ""},
	{"sb sq ub ureopen uc batch sc left", "reopened and committed within our transaction, before the statement: held",
		[]pruner.Result{count(22, 5, 10, 0, 0, 7)}, "-2 b5 c5 x5", "", ""},
}

// paused has the statement wait for an advisory lock after it has taken its snapshot and before it reads a row, so that
// others can commit in between. Nothing else in the text is changed.
func paused(_ shape, sql string) string {
	sql = replaceOnce(sql, "WITH edge AS MATERIALIZED", "WITH pause AS MATERIALIZED (SELECT pg_advisory_xact_lock(7) AS x), edge AS MATERIALIZED")
	return replaceOnce(sql, "   ORDER BY e.", "     AND (SELECT count(p.x) FROM pause p) = 1\n   ORDER BY e.")
}

// replaceOnce panics where there is nothing to replace: an edit that does nothing would prove nothing.
func replaceOnce(s, old, new string) string {
	if !strings.Contains(s, old) {
		panic("the statement has no " + old)
	}
	return strings.Replace(s, old, new, 1)
}

var afterSnapshotOrders = []order{
	{"hadv ub ureopen sweep uc hun left", "reopened before the snapshot, committed after it, before the lock: kept, by a look at the newest version",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "sweep", ""},
	{"hadv sweep ub ureopen uc hun left", "reopened and committed after the snapshot, before the lock: kept",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "sweep", ""},
	{"hadv sweep ub udel uc hun left", "owner deleted since the snapshot: kept, locked",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "sweep", ""},
	{"hadv sweep ub ukey uc hun left", "owner's key changed since the snapshot: kept, locked",
		[]pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "sweep", ""},
	{"hadv sweep ub utouch uc hun left", "owner touched since the snapshot, still terminal: removed",
		[]pruner.Result{undisturbed}, "-2 c5 x5", "sweep", ""},
	{"hadv sweep ub uown uc hun left", "row given to a live owner since the snapshot: kept, moved",
		[]pruner.Result{count(22, 9, 5, 0, 1, 7)}, "-2 c6 x5", "sweep", ""},
	{"hadv sweep ub uclose uc hun left", "a live owner closed since the snapshot: still held, due the next time",
		[]pruner.Result{undisturbed}, "-2 c5 x5", "sweep", ""},
	{"hadv sweep ub uage uc hun left", "age moved forward since the snapshot: kept, moved",
		[]pruner.Result{count(22, 9, 5, 0, 1, 7)}, "-2 a1 c5 x5", "sweep", ""},
}

var skipLockedOrders = []order{
	{"skip left", "nobody in the way", []pruner.Result{undisturbed}, "-2 c5 x5", "", ""},
	{"hb hrow skip hc left", "a locked row is passed, not waited for", []pruner.Result{count(22, 9, 5, 1, 0, 7)}, "-2 a1 c5 x5", "", ""},
	{"ub uage skip uc left", "a row that is being updated is passed", []pruner.Result{count(22, 9, 5, 1, 0, 7)}, "-2 a1 c5 x5", "", ""},
	{"ub ureopen skip uc left", "an owner that is being reopened keeps its rows", []pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "", ""},
	{"ub uage hb hrow skip ua hc skip left", "two rows locked by two sessions, removed the next time",
		[]pruner.Result{count(22, 8, 5, 2, 0, 7), count(14, 2, 5, 0, 0, 7)}, "-2 c5 x5", "", ""},
}

var skipAfterSnapshotOrders = []order{
	{"hadv skip ub uage uc hun left", "age moved forward since the snapshot: passed", []pruner.Result{count(22, 9, 5, 1, 0, 7)}, "-2 a1 c5 x5", "skip", ""},
	{"hadv skip ub uown uc hun left", "row given to a live owner since the snapshot: passed", []pruner.Result{count(22, 9, 5, 1, 0, 7)}, "-2 c6 x5", "skip", ""},
	{"hadv skip ub ureopen uc hun left", "reopened since the snapshot: kept", []pruner.Result{count(22, 5, 5, 5, 0, 7)}, "-2 b5 c5 x5", "skip", ""},
}

// Where the policy says that terminal states are final the owner is read, not locked: a reopening that is on its way
// loses the events of its run. That is the policy's word, and what the lock is for.
var finalOrders = []order{
	{"ub ureopen sweep uc left", "reopened before, not yet committed: THE EVENTS ARE LOST", []pruner.Result{undisturbed}, "-2 c5 x5", "", ""},
	{"ub ureopen uc sweep left", "reopened and committed before: held", []pruner.Result{count(22, 5, 10, 0, 0, 7)}, "-2 b5 c5 x5", "", ""},
	{"sb batch ub ureopen uc sc left", "reopened after the batch: does not wait for our commit", []pruner.Result{undisturbed}, "-2 c5 x5", "", ""},
	{"ub utouch sweep uc left", "an owner that is being touched is no obstacle", []pruner.Result{undisturbed}, "-2 c5 x5", "", ""},
	{"ub uage sweep uc left", "the row itself is asked again all the same", []pruner.Result{count(22, 9, 5, 0, 1, 7)}, "-2 a1 c5 x5", "sweep", ""},
}

var oneSweeperOrders = []order{
	{"sb b2 batch batch2 sc c2 left", "the second does not wait: it examines nothing and is busy", []pruner.Result{undisturbed, {}}, "-2 c5 x5", "", ""},
	{"sb b2 batch sc batch2 c2 left", "the lock ends with the batch", []pruner.Result{undisturbed, count(12, 0, 5, 0, 0, 7)}, "-2 c5 x5", "", ""},
}

// One age for all: 20 events at hour 1, no orphan keys.
const groupRows = `TRUNCATE runs, ev;
INSERT INTO runs VALUES ('a','done'),('b','done'),('c','live');
INSERT INTO ev SELECT r, s, timestamptz '2020-01-01 01:00+00' FROM unnest(array['a','b','c','x']) r, generate_series(1,5) s;`

var groupOrders = []order{
	{"sweep left", "nobody in the way", []pruner.Result{count(20, 10, 5, 0, 0, 5)}, "c5 x5", "", ""},
	{"ub ureopen sweep uc left", "reopened before, not yet committed: kept", []pruner.Result{count(20, 5, 5, 5, 0, 5)}, "b5 c5 x5", "", ""},
	{"sb batch ub ureopen sc uc left", "reopened after the lock: waits", []pruner.Result{count(20, 10, 5, 0, 0, 5)}, "c5 x5", "ureopen", ""},
	{"ub uage sweep uc left", "age moved out of the group while the batch waits: kept, moved", []pruner.Result{count(20, 9, 5, 0, 1, 5)}, "a1 c5 x5", "sweep", ""},
	{"ub umove sweep uc left", "row updated while the batch waits: kept, moved", []pruner.Result{count(20, 9, 5, 0, 1, 5)}, "a1 c5 x5", "sweep", ""},
	{"ub uown sweep uc left", "row given to a live owner while the batch waits: kept, moved", []pruner.Result{count(20, 9, 5, 0, 1, 5)}, "c6 x5", "sweep", ""},
	{"sb b2 batch batch2 sc c2 left", "two sweepers on one group", []pruner.Result{count(20, 10, 5, 0, 0, 5), count(20, 0, 5, 0, 10, 5)}, "c5 x5", "batch2", ""},
	{"hb hrow skip hc left", "a locked row is passed", []pruner.Result{count(20, 9, 5, 1, 0, 5)}, "a1 c5 x5", "", ""},
}

// The jobs: 1 to 5 are done at the hours 1 to 5, 6 is live, 7 is done without an age.
const (
	jobTables = `CREATE TABLE job (id int PRIMARY KEY, state text, fin timestamptz);
CREATE INDEX job_sf ON job (state, fin) WHERE fin IS NOT NULL;`
	jobRows = `TRUNCATE job;
INSERT INTO job SELECT g, 'done', timestamptz '2020-01-01 00:00+00' + g * interval '1 hour' FROM generate_series(1,5) g;
INSERT INTO job VALUES (6, 'live', null), (7, 'done', null);`
)

var jobSteps = []step{
	{"u", "rb", "BEGIN;"},
	{"u", "retry", "UPDATE job SET state = 'available', fin = null WHERE id = 3;"},
	{"u", "restate", "UPDATE job SET state = 'available' WHERE id = 3;"},
	{"u", "touch", "UPDATE job SET fin = fin WHERE id = 3;"},
	{"u", "fwd", "UPDATE job SET fin = fin + interval '900 hours' WHERE id = 3;"},
	{"u", "rc", "COMMIT;"},
	{"u", "ra", "ABORT;"},
	{"h", "hadv", "SELECT pg_advisory_lock(7);"},
	{"h", "hun", "SELECT pg_advisory_unlock(7);"},
	{"l", "left", "SELECT string_agg(id || state, ' ' ORDER BY id) AS left FROM job;"},
}

func doneJobs() policy.Sweep {
	return policy.Sweep{
		Name: "job", Table: policy.Name{Schema: "public", Table: "job"}, Age: "fin", Window: policy.MustWindow(24 * time.Hour),
		Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}},
	}
}

const timedOut = "canceling statement due to lock timeout"

var jobOrders = []order{
	{"sweep left", "nobody in the way", []pruner.Result{count(5, 5, 0, 0, 0, 0)}, "6live 7done", "", ""},
	{"rb retry sweep rc left", "retried while the batch waits: kept, moved", []pruner.Result{count(5, 4, 0, 0, 1, 0)}, "3available 6live 7done", "sweep", ""},
	{"rb restate sweep rc left", "only its state changed: kept, moved", []pruner.Result{count(5, 4, 0, 0, 1, 0)}, "3available 6live 7done", "sweep", ""},
	{"rb retry sweep ra left", "the retry rolled back: removed", []pruner.Result{count(5, 5, 0, 0, 0, 0)}, "6live 7done", "sweep", ""},
	{"rb retry hasty sr left ra", "the retry does not end: the batch gives up and removes nothing", nil, "1done 2done 3done 4done 5done 6live 7done", "hasty", timedOut},
	{"rb touch sweep rc left", "touched while the batch waits: another address, so kept for the next pass, moved", []pruner.Result{count(5, 4, 0, 0, 1, 0)}, "3done 6live 7done", "sweep", ""},
	{"rb fwd sweep rc left", "age moved forward while the batch waits: kept, moved", []pruner.Result{count(5, 4, 0, 0, 1, 0)}, "3done 6live 7done", "sweep", ""},
	{"rb retry skip rc left", "a job that is being retried is passed", []pruner.Result{count(5, 4, 0, 1, 0, 0)}, "3available 6live 7done", "", ""},
	{"rb touch skip rc left", "a job that is being touched is passed", []pruner.Result{count(5, 4, 0, 1, 0, 0)}, "3done 6live 7done", "", ""},
	{"sb b2 batch batch2 sc c2 left", "two sweepers: the second removes nothing", []pruner.Result{count(5, 5, 0, 0, 0, 0), count(5, 0, 0, 0, 5, 0)}, "6live 7done", "batch2", ""},
}

var jobAfterSnapshotOrders = []order{
	{"hadv sweep rb retry rc hun left", "retried since the snapshot: kept, moved", []pruner.Result{count(5, 4, 0, 0, 1, 0)}, "3available 6live 7done", "sweep", ""},
	{"hadv sweep rb fwd rc hun left", "age moved forward since the snapshot: kept, moved", []pruner.Result{count(5, 4, 0, 0, 1, 0)}, "3done 6live 7done", "sweep", ""},
	{"hadv skip rb retry rc hun left", "retried since the snapshot: passed", []pruner.Result{count(5, 4, 0, 1, 0, 0)}, "3available 6live 7done", "skip", ""},
}

// withHeld adds what an age-led index makes a batch examine as well: the live job, which then has an age.
func withHeld(orders []order) []order {
	var more []order
	for _, o := range orders {
		var want []pruner.Result
		for _, w := range o.want {
			w.Examined++
			w.Held++
			want = append(want, w)
		}
		o.want = want
		more = append(more, o)
	}
	return more
}

func isolationSpecs() []isolation {
	owner := isolation{name: "owner-guard", tables: ownerTables, rows: ownerRows, sweep: guardedEvents(), steps: ownerSteps, orders: ownerOrders}
	jobs := isolation{name: "own-state", tables: jobTables, rows: jobRows, sweep: doneJobs(), steps: jobSteps, orders: jobOrders}
	with := func(s isolation, name string, change func(*isolation)) isolation {
		s.name = name
		change(&s)
		return s
	}
	return []isolation{
		owner,
		with(owner, "owner-guard-repeatable-read", func(s *isolation) { s.golden, s.defaults = "owner-guard", "repeatable read" }),
		with(owner, "owner-guard-serializable", func(s *isolation) { s.golden, s.defaults = "owner-guard", "serializable" }),
		with(owner, "owner-guard-returning", func(s *isolation) { s.returning = true }),
		with(owner, "owner-guard-after-snapshot", func(s *isolation) { s.edit, s.orders = paused, afterSnapshotOrders }),
		with(owner, "owner-guard-skip-locked", func(s *isolation) { s.orders = skipLockedOrders }),
		with(owner, "owner-guard-skip-locked-after-snapshot", func(s *isolation) { s.edit, s.orders = paused, skipAfterSnapshotOrders }),
		with(owner, "owner-guard-final", func(s *isolation) {
			g := *s.sweep.Guard.Owner
			g.Final = true
			s.sweep.Guard.Owner, s.orders = &g, finalOrders
		}),
		with(owner, "owner-guard-one-sweeper", func(s *isolation) { s.gate, s.orders = true, oneSweeperOrders }),
		with(owner, "group-by-key", func(s *isolation) {
			s.tables = strings.NewReplacer("UNIQUE", "PRIMARY KEY", "at timestamptz", "at timestamptz NOT NULL", "(at, run)", "(at, run, seq)").Replace(s.tables)
			s.rows, s.group, s.orders = groupRows, true, groupOrders
		}),
		with(owner, "group-without-key", func(s *isolation) { s.rows, s.group, s.orders = groupRows, true, groupOrders }),
		jobs,
		with(jobs, "own-state-after-snapshot", func(s *isolation) { s.edit, s.orders = paused, jobAfterSnapshotOrders }),
		with(jobs, "own-state-age-led", func(s *isolation) {
			s.tables = strings.Replace(s.tables, "(state, fin) WHERE fin IS NOT NULL", "(fin, id)", 1)
			s.rows = strings.Replace(s.rows, "(6, 'live', null)", "(6, 'live', '2020-01-01 06:00+00')", 1)
			s.orders = withHeld(s.orders)
		}),
		// The statement that everybody writes, which the orders above are there to rule out: it must be seen to lose.
		with(owner, "counter-example-loses-a-run", func(s *isolation) {
			s.steps = append([]step{{"s", "sweep", `DELETE FROM ev WHERE ctid IN (SELECT e.ctid FROM ev e JOIN runs r ON r.id = e.run
 WHERE e.at < '` + hour(100) + `' AND r.status = 'done' ORDER BY e.at LIMIT 50);`}}, s.steps...)
			s.orders = []order{{"ub ureopen sweep uc left", "reopened before, not yet committed: ITS EVENTS ARE LOST", nil, "-2 c5 x5", "", ""}}
		}),
		with(jobs, "counter-example-loses-a-job", func(s *isolation) {
			s.steps = append([]step{{"s", "sweep", `DELETE FROM job WHERE id IN (SELECT id FROM job WHERE state = 'done' AND fin < '` + hour(100) + `' ORDER BY id LIMIT 50);`}}, s.steps...)
			s.orders = []order{{"rb retry sweep rc left", "retried while the delete waits: THE RETRIED JOB IS LOST", nil, "6live 7done", "sweep", ""}}
		}),
	}
}

// TestIsolation runs each spec's orders on the engine's own statements.
func TestIsolation(t *testing.T) {
	t.Parallel()
	for _, s := range isolationSpecs() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.test(t)
		})
	}
}

// sabotage takes a clause out of the statement. red: the orders that must then give something else; an order in green
// must stay as it is, where the clause is one of two that hold the same.
type sabotage struct {
	name       string
	spec       string
	edit       func(string) string
	red, green []string
}

// cut is an edit that takes one text out, or puts another in its place.
func cut(old, new string) func(string) string {
	return func(sql string) string { return replaceOnce(sql, old, new) }
}

// The delete side follows a row to its new version, as one that names rows by key does. With it the clauses that ask age
// and state again stand alone; by address they are the second of two locks, since a new version has a new address.
func followed(table string, key ...string) func(string) string {
	var same []string
	for _, k := range key {
		same = append(same, "f."+k+" = d."+k)
	}
	return cut("   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])", "   USING (SELECT x.* FROM ONLY "+table+` x WHERE x.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])) f
   WHERE `+strings.Join(same, " AND "))
}

func both(f, g func(string) string) func(string) string {
	return func(sql string) string { return g(f(sql)) }
}

// cutLine takes out the line with this text; of one that opens a bracket, what is in it.
func cutLine(with string) func(string) string {
	return func(sql string) string {
		at := strings.Index(sql, with)
		if at < 0 {
			panic("the statement has no " + with)
		}
		start, end := strings.LastIndex(sql[:at], "\n")+1, at+strings.Index(sql[at:], "\n")+1
		instead := ""
		if strings.HasPrefix(with, "(") {
			instead = "     AND (true\n"
		}
		return sql[:start] + instead + sql[end:]
	}
}

var isolationSabotages = []sabotage{
	{"no owner lock", "owner-guard", cut(" FOR SHARE SKIP LOCKED", ""),
		[]string{"ub ureopen sweep uc left", "sb batch ub ureopen sc uc left", "ub udel sweep uc sweep left"}, nil},
	{"no owner lock, after the snapshot", "owner-guard-after-snapshot", cut(" FOR SHARE SKIP LOCKED", ""), []string{"hadv sweep ub ureopen uc hun left"}, nil},
	{"an owner lock that a reopening passes", "owner-guard", cut("FOR SHARE SKIP LOCKED", "FOR KEY SHARE SKIP LOCKED"), []string{"ub ureopen sweep uc left"}, nil},
	{"waiting for owners", "owner-guard", cut("FOR SHARE SKIP LOCKED", "FOR SHARE"), []string{"ub ureopen sweep uc left"}, nil},
	{"no state of the owner", "owner-guard", cutLine("  -- guard\n"), []string{"ub uage sweep ua left"}, nil},
	{"no guard of the picked rows", "owner-guard", cut(" FROM owners o WHERE o.got)", " FROM owners o)"), []string{"ub uage sweep ua left"}, nil},
	{"no age again, by key", "owner-guard", both(followed("ev", "run", "seq"), cutLine("(d.\"at\" <")), []string{"ub uage sweep uc left"}, nil},
	{"by key", "owner-guard", followed("ev", "run", "seq"), []string{"ub umove sweep uc left"}, []string{"ub uage sweep uc left", "ub uage sweep ua left"}},
	{"no state again, by key", "own-state", both(followed("job", "id"), cutLine("AND d.\"state\"")), []string{"rb restate sweep rc left"}, nil},
	{"no age again, jobs by key", "own-state", both(followed("job", "id"), cutLine("(d.\"fin\" <")), []string{"rb fwd sweep rc left"}, nil},
	{"jobs by key", "own-state", followed("job", "id"), []string{"rb touch sweep rc left"}, []string{"rb restate sweep rc left", "rb fwd sweep rc left"}},
	{"waiting for rows", "owner-guard-skip-locked", cut("FOR UPDATE SKIP LOCKED", "FOR UPDATE"), []string{"hb hrow skip hc left"}, nil},
	{"a gate that lets everybody in", "owner-guard-one-sweeper", cut(") AS ok\n", ") OR true AS ok\n"), []string{"sb b2 batch batch2 sc c2 left"}, nil},
}

// TestIsolationSabotage proves that the orders see a clause that is missing.
func TestIsolationSabotage(t *testing.T) {
	t.Parallel()
	specs := isolationSpecs()
	for _, sab := range isolationSabotages {
		t.Run(sab.name, func(t *testing.T) {
			t.Parallel()
			s := specs[slices.IndexFunc(specs, func(s isolation) bool { return s.name == sab.spec })]
			var orders []order
			for _, name := range append(slices.Clone(sab.red), sab.green...) {
				i := slices.IndexFunc(s.orders, func(o order) bool { return o.steps == name })
				if i < 0 {
					t.Fatalf("%s has no order %q", s.name, name)
				}
				orders = append(orders, s.orders[i])
			}
			before := s.edit
			s.edit = func(sh shape, sql string) string {
				if before != nil {
					sql = before(sh, sql)
				}
				if sh.mode == pruner.SkipLocked != strings.Contains(sab.spec, "skip-locked") {
					return sql // the clause is in the other statement
				}
				return sab.edit(sql)
			}
			s.orders = orders
			for i, out := range s.run(t) {
				err := s.check(orders[i], out)
				switch red := i < len(sab.red); {
				case red && err == nil:
					t.Errorf("%s: nothing was noticed\n%s", orders[i].steps, out)
				case !red && err != nil:
					t.Errorf("%s: %v\n%s", orders[i].steps, err, out)
				default:
					t.Logf("%s: %v", orders[i].steps, err)
				}
			}
		})
	}
}
