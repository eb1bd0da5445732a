package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// uncounted has the statement count what it removes.
func uncounted(c *pgx.ConnConfig) { c.RuntimeParams["track_counts"] = "off" }

// heirOfKept is an heir of keptThing with rows at the same addresses.
const heirOfKept = "CREATE TABLE child () INHERITS (thing); INSERT INTO child SELECT g, 3600, false, '2020-01-01 00:00+00' FROM generate_series(1, 5) g;"

var (
	// heirOfAll is heir for rows that nothing guards.
	heirOfAll = victim{"the rows of an heir are nobody's, without a guard", func(ctx context.Context, b *bench) error {
		a, err := b.own(things, unguarded, Options{})
		if err != nil {
			return err
		}
		b.db.Exec(b.t, `CREATE TABLE child () INHERITS (thing); INSERT INTO child SELECT g, 1, 'done', '2020-01-01 00:00+00' FROM generate_series(100, 109) g`)
		return expect(ctx, a, count(10, 10, 0, 0, 0, 0))
	}}
	// loserOfAll is loserCost for rows that nothing guards.
	loserOfAll = victim{"a loser reads nothing, without a guard", func(ctx context.Context, b *bench) error {
		a, err := b.own(things, unguarded, Options{OneSweeper: true})
		if err != nil {
			return err
		}
		other := b.db.Conn(b.t)
		defer func() { _ = other.Close(ctx) }()
		mustExec(b.t, other, fmt.Sprintf("SELECT pg_advisory_lock(%d)", a.lockKey()))
		conn, bill := billed(b.t, b.db)
		a.db = Conn(conn)
		for range 2 { // the first one reads the catalog
			bill.take()
			if _, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}); err != nil {
				return err
			}
		}
		if c := bill.take(); c.buffers > 0 {
			return fmt.Errorf("it read %d buffers", c.buffers)
		}
		return nil
	}}
	// settingsOfPolicy has a trigger write down what a policy set.
	settingsOfPolicy = victim{"what a policy sets is in force", func(ctx context.Context, b *bench) error {
		s := unguarded
		s.Sync = true
		s.Set = []policy.Setting{{Name: "row_security", Value: "on"}, {Name: "app.tenant", Value: `o'hara\`}}
		a, err := b.own(things+`CREATE TABLE seen (name text, setting text);
CREATE OR REPLACE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen SELECT x, current_setting(x, true) FROM unnest(ARRAY[''synchronous_commit'', ''row_security'', ''app.tenant'']) x; RETURN NULL; END';
CREATE TRIGGER look AFTER DELETE ON thing FOR EACH STATEMENT EXECUTE FUNCTION look()`, s, Options{}, func(c *pgx.ConnConfig) { c.RuntimeParams["synchronous_commit"] = "off" })
		if err != nil {
			return err
		}
		if err := expect(ctx, a, count(10, 10, 0, 0, 0, 0)); err != nil {
			return err
		}
		const want = `app.tenant=o'hara\ row_security=on synchronous_commit=on`
		if got := b.db.Text(b.t, "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM seen"); got != want {
			return fmt.Errorf("what holds is %s; want %s", got, want)
		}
		return nil
	}}
)

// moreClauses are those that stand where a sweep has another guard, another index, or more rows of one age than the limit.
func moreClauses() []clause {
	const tied, heldTied = "more equal ages than many limits", "held rows among equal ages"
	movedInGroup := meanwhileIn("an age that moves while the batch waits is kept, among those of one age", keptThing, "UPDATE thing SET at = at - interval '1 hour' WHERE id = 2", 3, count(3, 2, 0, 0, 1, 0), "2 4 5")
	movedBesideHeir := meanwhile("a row that moved is not stuck, whatever an heir has at its address", heirOfKept+"COMMIT; BEGIN; UPDATE ONLY thing SET hold = true WHERE id = 2", uncounted)
	return []clause{
		{name: "edge: one", edit: inQuery("edge", re(` LIMIT 1`, "")), victim: conformance("the limit is never exceeded")},
		{name: "range: ONLY, without a guard", edit: inQuery("tally", re(`FROM ONLY`, "FROM")), victim: heirOfAll},
		{name: "range: gate, without a guard", edit: inQuery("tally", re(gateLine, "")), victim: loserOfAll},
		{name: "tally: orphans, of those not got", edit: inQuery("tally", re(`o\.got IS NULL AND o\.ok IS NULL`, "o.ok IS NULL")), victim: conformance("the owner's state guards")},
		{name: "group: part", edit: inQuery("seen", re(`     AND e\."keep_seconds" IS NULL\n`, "")), victim: plans("part_within", "")},
		{name: "group: own windows", edit: inQuery("seen", re(`     AND e\."keep_seconds" IS NOT NULL\n`, "")), victim: plans("own_generated", "")},
		{name: "group: age, again", under: follow("thing", "id"), edit: inQuery("gone", re(`\(d\."at" = .*`, "(true")), victim: movedInGroup},
		{name: "group: one last key", edit: re(`(ORDER BY e\."id" DESC) LIMIT 1\) AS last`, "$1) AS last"), victim: conformance(heldTied)},
		{name: "group: key order, the other way round", edit: inQuery("seen", re(`(?m)^   ORDER BY .*\n`, "")), victim: conformance(tied, descending, crowded)},
		{name: "group: the last key, the other way round", edit: re(`ORDER BY e\."id" LIMIT 1\) AS last`, `ORDER BY e."id" DESC LIMIT 1) AS last`), victim: conformance(heldTied, descending)},
		{name: "after: ONLY", wire: [2]string{"FROM ONLY \"public\".\"thing\" d\n         WHERE d.ctid = ANY (coalesce", "FROM \"public\".\"thing\" d\n         WHERE d.ctid = ANY (coalesce"}, victim: movedBesideHeir},
		{name: "settings: synchronous_commit of a policy", wire: [2]string{"set_config('synchronous_commit', CASE", "set_config('my.commit', CASE"}, victim: settingsOfPolicy},
		{name: "settings: synchronous_commit that is off", wire: [2]string{"WHEN 'off' THEN 'on'", "WHEN 'on' THEN 'on'"}, victim: settingsOfPolicy},
		{name: "settings: of a policy", wire: [2]string{"set_config('app.tenant'", "set_config('app.other'"}, victim: settingsOfPolicy},
		{name: "settings: row_security of a policy", wire: [2]string{"'row_security', 'on'", "'row_security', 'no'"}, victim: settingsOfPolicy},
		{name: "step: what is due", edit: inParents("counted", re(`j\.class = 'due'`, "true")), victim: conformance("stepping over removes no children")},
	}
}

// inParents is inQuery in the first statement of the parent form.
func inParents(query string, edit func(string) string) func(string) string {
	in := inQuery(query, edit)
	return func(sql string) string {
		if !strings.Contains(sql, "judged AS") {
			return sql
		}
		return in(sql)
	}
}

// batchOf is one batch of parents, and what it must count and leave.
func batchOf(name, script string, s func() policy.Sweep, change func(*parentBench) func(), limit int, want pruner.Result, left string) parentVictim {
	return parentVictim{name, func(ctx context.Context, b *parentBench) error {
		a, err := b.open(script, s(), Options{}, false)
		if err != nil {
			return err
		}
		if change != nil {
			defer change(b)()
		}
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: limit})
		if err != nil {
			return err
		}
		res.Blocked = nil
		if got := counts(res); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("it counted %+v; want %+v", got, want)
		}
		if got := b.db.Text(b.t, left); got != "" {
			return fmt.Errorf("%s", got)
		}
		return nil
	}}
}

// executed is a change that a superuser makes once the arm is open.
func executed(sql string) func(*parentBench) func() {
	return func(b *parentBench) func() {
		b.db.Exec(b.t, sql)
		return func() {}
	}
}

// moreParentClauses are those that stand where parents have another guard, or children have children.
func moreParentClauses() []parentClause {
	keyed, nested := mixPass("keyed", 7, 2), mixPass("nested", 7, 100)
	const nothing = "SELECT ''"
	ownedOutbox := strings.Replace(outboxTables, "parked bool", "parked bool, run text, own int", 1) +
		"CREATE TABLE runs (id text PRIMARY KEY, status text NOT NULL); INSERT INTO runs VALUES ('a', 'done'), ('b', 'done'), ('c', 'done');" + outboxRows + "UPDATE ev SET run = CASE id WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END;"
	withOwner := func() policy.Sweep {
		s := outboxOfEv()
		s.Guard.Owner = guardedEvents().Guard.Owner
		return s
	}
	heldOwner := batchOf("no owner is locked but of parents that nothing holds", ownedOutbox+"UPDATE ev SET parked = true WHERE id = 2", withOwner, nil, 50, familyCount(3, 1, 2, 2, 0, 0),
		"SELECT CASE WHEN string_agg(id, ' ' ORDER BY id) = 'a' THEN '' ELSE 'locked owners: ' || string_agg(id, ' ' ORDER BY id) END FROM runs WHERE xmax::text <> '0'")
	lockedOwner := batchOf("a locked owner keeps its parents", ownedOutbox, withOwner, func(b *parentBench) func() {
		other := b.db.Conn(b.t)
		mustExec(b.t, other, "BEGIN; SELECT FROM runs WHERE id = 'b' FOR UPDATE")
		return func() { _ = other.Close(context.Background()) }
	}, 50, familyCount(3, 1, 2, 1, 1, 0), nothing)
	nonsense := familyCount(3, 1, 2, 1, 0, 0)
	nonsense.Unusable, nonsense.Raised = 1, 2
	ownWindows := batchOf("own windows of parents are counted", ownedOutbox+"UPDATE ev SET own = CASE id WHEN 1 THEN 60 WHEN 2 THEN -5 ELSE 60 END", func() policy.Sweep {
		s := outboxOfEv()
		s.Window, s.Own, s.Guard.Hold = policy.Never, &policy.RowWindow{Column: "own", Unit: time.Second}, ""
		return s
	}, nil, 50, nonsense, nothing)
	stateless := strings.NewReplacer("REFERENCES ev", "").Replace(outboxTables)
	owedAlone := batchOf("parents without children go once nothing is owed", stateless+outboxRows, func() policy.Sweep {
		s := outboxOfEv()
		s.Children = nil
		return s
	}, nil, 50, familyCount(3, 2, 0, 1, 0, 0), nothing)
	owedHeirs := batchOf("parents without children go, whatever heirs owe", stateless+outboxRows, func() policy.Sweep {
		s := outboxOfEv()
		s.Children = nil
		return s
	}, executed("CREATE TABLE dlh () INHERITS (dl); INSERT INTO dlh VALUES (-1, 1, 'r', 'pending')"), 50, familyCount(3, 2, 0, 1, 0, 0), nothing)
	stuck := familyCount(3, 1, 4, 1, 0, 0)
	stuck.Stuck = 1
	vetoed := outboxTables + outboxRows + `CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 1 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON ev FOR EACH ROW EXECUTE FUNCTION keep()`
	stuckBesideOwed := batchOf("a parent that a trigger keeps is stuck, beside one that is owed", vetoed, outboxOfEv, nil, 50, stuck, nothing)
	stuckBesideHeirs := batchOf("a parent that a trigger keeps is stuck, whatever heirs owe", vetoed, outboxOfEv,
		executed("CREATE TABLE dlh () INHERITS (dl); INSERT INTO dlh VALUES (-1, 1, 'r', 'pending')"), 50, stuck, nothing)
	twoRequeued := disturbed(disturbance{name: "both children requeued without it", sql: "UPDATE dl SET status = 'pending' WHERE ev = 1", end: "COMMIT",
		want: familyCount(3, 1, 2, 1, 0, 1), left: "1:11pending,12pending 3:31pending"}, false)
	deep := batchOf("the children of heirs' rows are nobody's", outboxTables+outboxRows+"CREATE TABLE att (dl int NOT NULL, n int NOT NULL, PRIMARY KEY (dl, n)); INSERT INTO att SELECT -g, 1 FROM generate_series(1, 100) g;", func() policy.Sweep {
		s := outboxOfEv()
		s.Batch.Limit = 50
		s.Children[0].Children = []policy.Child{{Table: policy.Name{Schema: "public", Table: "att"}, Key: []policy.ChildKey{{Parent: "id", Child: "dl"}}}}
		return s
	}, executed("CREATE TABLE dlh () INHERITS (dl); INSERT INTO dlh SELECT -g, 1, 'r', 'ok' FROM generate_series(1, 100) g"), 50, undisturbedOutbox, nothing)
	key := func(old, new string) func(string) string {
		return func(sql string) string { return strings.ReplaceAll(sql, old, new) }
	}
	return []parentClause{
		{name: "keys: of those that nothing holds", edit: inQuery("keys", re(` FILTER \(WHERE e\."parked" IS NOT TRUE\) AS candidates`, " AS candidates")), victim: heldOwner},
		{name: "result: locked owners", edit: re(`d\.class = 'locked' OR `, ""), victim: lockedOwner},
		{name: "result: unusable", edit: re(`d\.class = 'unusable'`, "false"), victim: ownWindows},
		{name: "result: raised", edit: re(`FILTER \(WHERE d\.raised\)`, "FILTER (WHERE false)"), victim: ownWindows},
		{name: "result: one last key", edit: re(`(ORDER BY l\.n DESC) LIMIT 1`, "$1"), victim: keyed},
		{name: "result: none is passed", edit: key("'prunectl.passed', '{}'", "'prunectl.other', '{}'"), victim: keyed},
		{name: "counted: of those that were got", edit: inQuery("counted", re(`ON j\.tid = m\.tid`, "ON true")), victim: keyed},
		{name: "counted: the grandchildren's key", edit: inQuery("counted", key(`c."dl" = c1."id"`, "true")), victim: nested},
		{name: "counted: the key of their parents", edit: inQuery("counted", key(`c1."ev" = j."id"`, "true")), victim: nested},
		{name: "counted: ONLY, of grandchildren", edit: inQuery("counted", re(`FROM ONLY ("public"\."dl" c1)`, "FROM $1")), victim: deep},
		{name: "fit: each with its count", edit: inQuery("fit", key("ON c.n = j.n", "ON true")), victim: keyed},
		{name: "keys: all children are gone", wire: [2]string{"'prunectl.empty', 'yes', true", "'prunectl.empty', 'no', true"}, victim: keyed},
		{name: "child: ONLY, of grandchildren", step: "child public.att", edit: re(`FROM ONLY ("public"\."dl" c1)`, "FROM $1"), victim: deep},
		{name: "child: probes", step: "child_attempts", edit: re(` OFFSET 0`, ""), victim: plannedWell("parents_nested", "child_attempts")},
		{name: "chunk: the grandchildren's key", step: "chunk", edit: key(`c."dl" = c1."id"`, "true"), victim: nested},
		{name: "chunk: the key of their parents", step: "chunk", edit: key(`c1."ev" = p."id"`, "true"), victim: nested},
		{name: "chunk: in order of their parents", step: "chunk", edit: inQuery("next", re(` ORDER BY c1\."rcv"`, ` ORDER BY md5(c1."rcv")`)), victim: nested},
		{name: "chunk: one last key", step: "chunk", edit: re(`(ORDER BY n\.k0 DESC) LIMIT 1`, "$1"), victim: keyed},
		{name: "parents: the state that is owed", step: "parents", edit: re(` AND o\."status" NOT IN \([^)]*\)`, ""), victim: owedAlone},
		{name: "parents: ONLY, owed", step: "parents", edit: re(`true AS owed FROM ONLY`, "true AS owed FROM"), victim: owedHeirs},
		{name: "after: one that is owed", step: "after", edit: re(` LIMIT 1\) AS owed`, ") AS owed"), victim: twoRequeued},
		{name: "after: what is owed by it", step: "after", edit: key(`o."ev" = p."id" AND `, ""), victim: stuckBesideOwed},
		{name: "after: children of it", step: "after", edit: key(`c."ev" = p."id"`, "true"), victim: stuckBesideOwed},
		{name: "after: ONLY, owed", step: "after", edit: re(`owed FROM ONLY`, "owed FROM"), victim: stuckBesideHeirs},
		{name: "after: ONLY, children", step: "after", edit: re(`FROM ONLY ("public"\."dl" c)`, "FROM $1"), victim: stuckBesideHeirs},
	}
}
