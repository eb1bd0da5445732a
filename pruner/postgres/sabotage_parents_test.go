package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// parentClause is a part of a statement of the parent form, the edit that takes it out, and who must notice.
type parentClause struct {
	name   string
	step   string              // the statement, by the beginning of its name; "": the first
	under  func(string) string // what the edit is made on: a form of the statement in which the clause stands alone
	edit   func(string) string
	wire   [2]string // of what is no such statement: see clause
	victim parentVictim
}

// parentVictim is a check that is green while nothing is taken out.
type parentVictim struct {
	name string
	run  func(context.Context, *parentBench) error
}

// parentBench is where a victim runs, with the edit in force.
type parentBench struct {
	t       *testing.T
	db      *pgtest.DB
	admin   *pgx.Conn
	clause  parentClause
	touched bool // the edit changed a text
	seen    seen // what is run, where somebody wants to know
}

// forge has a connection send what the clause says in place of what it should.
func (b *parentBench) forge(c *pgx.ConnConfig) {
	if b.clause.wire[0] == "" {
		return
	}
	forging(c, func(sent string) string {
		forged := replaced(sent, b.clause.wire)
		b.touched = b.touched || forged != sent
		return forged
	})
}

func (b *parentBench) changed(sql string) string {
	if b.clause.edit == nil {
		return sql
	}
	if b.clause.under != nil {
		sql = b.clause.under(sql)
	}
	edited := b.clause.edit(sql)
	b.touched = b.touched || edited != sql
	return edited
}

// open makes tables and rows and the arm over them, with the edit. paused has the first statement wait for an advisory
// lock between its snapshot and its locks.
func (b *parentBench) open(script string, s policy.Sweep, o Options, paused bool) (*Arm, error) {
	mustExec(b.t, b.admin, mixCleared+script)
	arms, err := Open(b.t.Context(), Conn(b.db.Conn(b.t, b.forge)), s, o)
	if err != nil {
		return nil, err
	}
	arms[0].edit = func(sh shape, sql string) string {
		b.seen.saw("parents' batch", sql)
		if b.clause.step == "" {
			sql = b.changed(sql)
		}
		if paused {
			sql = pausedParents(sh, sql)
		}
		return sql
	}
	arms[0].editStep = func(_ shape, name, sql string) string {
		b.seen.saw("parents' "+name, sql)
		if b.clause.step != "" && strings.HasPrefix(name, b.clause.step) {
			sql = b.changed(sql)
		}
		return sql
	}
	return arms[0], nil
}

// mixPass runs a pass over a mix at these limits.
func mixPass(name string, limits ...int) parentVictim {
	return parentVictim{fmt.Sprintf("a pass over the mix %q", name), func(ctx context.Context, b *parentBench) error {
		m := mixes[slices.IndexFunc(mixes, func(m mix) bool { return m.name == name })]
		for _, limit := range limits {
			a, err := b.open(m.script(), m.sweep(), Options{OneSweeper: m.gated}, false)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			err = m.pass(ctx, a, b.admin, limit)
			cancel()
			if err != nil {
				return fmt.Errorf("limit %d: %w", limit, err)
			}
		}
		return nil
	}}
}

// disturbed is one of the races of TestParentRaces, or one that commits between the snapshot and the locks.
func disturbed(d disturbance, paused bool) parentVictim {
	return parentVictim{"a race: " + d.name, func(ctx context.Context, b *parentBench) error {
		s := outboxOfEv()
		s.Timeouts.Lock = 5 * time.Second
		a, err := b.open(outboxTables+outboxRows, s, Options{}, paused)
		if err != nil {
			return err
		}
		other, holder := b.db.Conn(b.t), b.db.Conn(b.t)
		defer func() { _, _ = other.Close(ctx), holder.Close(ctx) }()
		conn := a.db.conn
		if paused {
			mustExec(b.t, holder, "SELECT pg_advisory_lock(7)")
		} else {
			mustExec(b.t, other, begin+d.sql)
		}
		batch := start(func() (pruner.Result, error) { return a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}) })
		for deadline := time.Now().Add(patience); len(batch.c) == 0 && time.Now().Before(deadline); {
			var waits bool
			if err := b.admin.QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", conn.PgConn().PID()).Scan(&waits); err != nil {
				return err
			}
			if waits {
				break
			}
		}
		if paused {
			mustExec(b.t, other, begin+d.sql+"; COMMIT")
			mustExec(b.t, holder, "SELECT pg_advisory_unlock(7)")
		} else {
			mustExec(b.t, other, d.end)
		}
		res, err := batch.end(b.t)
		if err != nil {
			return err
		}
		if got := counts(res); fmt.Sprint(got) != fmt.Sprint(d.want) {
			return fmt.Errorf("the batch counted %+v; want %+v", got, d.want)
		}
		if got := b.db.Text(b.t, strings.TrimSuffix(outboxLeft, ";")); got != d.left {
			return fmt.Errorf("%q is left; want %q", got, d.left)
		}
		return nil
	}}
}

func raceNamed(name string) parentVictim {
	return disturbed(outboxDisturbances[slices.IndexFunc(outboxDisturbances, func(d disturbance) bool { return d.name == name })], false)
}

// afterSnapshot is what another session commits between the snapshot and the locks.
func afterSnapshot(name, sql string, want pruner.Result, left string) parentVictim {
	return disturbed(disturbance{name: name + " since the snapshot", sql: sql, want: want, left: left}, true)
}

// heirs makes the tables inheritance parents after they were inspected. The heirs' rows have the addresses of others.
var heirs = parentVictim{"the rows of heirs are nobody's", func(ctx context.Context, b *parentBench) error {
	m := mixes[slices.IndexFunc(mixes, func(m mix) bool { return m.name == "nested, unkeyed" })]
	a, err := b.open(m.script(), m.sweep(), Options{}, false)
	if err != nil {
		return err
	}
	mustExec(b.t, b.admin, `CREATE TABLE evh () INHERITS (ev); INSERT INTO evh SELECT 61 - g, '2020-01-01 01:00+00', 'step', false, 'a' FROM generate_series(1, 60) g;
CREATE TABLE dlh () INHERITS (dl); INSERT INTO dlh SELECT -g, g, 'r', CASE WHEN g % 2 = 0 THEN 'ok' ELSE 'pending' END FROM generate_series(1, 40) g; INSERT INTO dlh SELECT -g, g, 's', 'ok' FROM generate_series(41, 80) g;
CREATE TABLE atth () INHERITS (att); INSERT INTO atth SELECT d.id, -1 FROM ONLY dl d WHERE d.id % 3 = 0`)
	had := b.db.Text(b.t, heirRows)
	if err := m.pass(ctx, a, b.admin, 7); err != nil {
		return err
	}
	if left := b.db.Text(b.t, heirRows); left != had {
		return fmt.Errorf("%s rows of the heirs are left of %s", left, had)
	}
	return nil
}}

const heirRows = "SELECT (SELECT count(*) FROM evh) || ' ' || (SELECT count(*) FROM dlh) || ' ' || (SELECT count(*) FROM atth)"

// chunkHeirs is the same for a parent that is emptied in chunks.
var chunkHeirs = parentVictim{"the rows of heirs are nobody's, in chunks", func(ctx context.Context, b *parentBench) error {
	m := mixes[slices.IndexFunc(mixes, func(m mix) bool { return m.name == "nested" })]
	a, err := b.open(m.script()+"DELETE FROM att WHERE dl / 100 NOT IN (20, 102); DELETE FROM dl WHERE ev NOT IN (20, 102); DELETE FROM ev WHERE id NOT IN (20, 102); UPDATE dl SET rcv = 'z' || rcv WHERE ev = 102;", m.sweep(), Options{}, false)
	if err != nil {
		return err
	}
	mustExec(b.t, b.admin, `CREATE TABLE evh () INHERITS (ev); INSERT INTO evh SELECT 102, '2020-01-01 01:00+00', 'step', false, 'a' FROM generate_series(1, 100) g;
CREATE TABLE dlh () INHERITS (dl); INSERT INTO dlh SELECT -g, 20, 'r000' || lpad(g::text, 3, '0'), 'ok' FROM generate_series(1, 300) g;
CREATE TABLE atth () INHERITS (att); INSERT INTO atth SELECT d.id, -1 FROM ONLY dl d WHERE d.id % 3 = 0`)
	had := b.db.Text(b.t, heirRows)
	if err := m.pass(ctx, a, b.admin, 7); err != nil {
		return err
	}
	if left := b.db.Text(b.t, heirRows); left != had {
		return fmt.Errorf("%s rows of the heirs are left of %s", left, had)
	}
	return nil
}}

// stuckAt holds what a batch says of rows that a trigger keeps, and of what comes after them.
func stuckAt(name, table, cond string, want pruner.Result) parentVictim {
	return parentVictim{name, func(ctx context.Context, b *parentBench) error {
		tables := strings.Replace(outboxTables, "ev (at, id)", "ev (at)", 1)
		a, err := b.open(tables+family12+fmt.Sprintf(`CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.%s THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION keep()`, cond, table), outboxOfEv(), Options{}, false)
		if err != nil {
			return err
		}
		var sum pruner.Result
		var at pruner.Cursor
		for n := 0; n < 60; n++ {
			res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 9, After: at})
			if err != nil {
				return err
			}
			sum, at = plus(sum, res), res.Next
			for _, by := range res.Blocked {
				if by.Constraint != "veto" || by.Table != "public."+table {
					return fmt.Errorf("it is blocked by %+v", by)
				}
			}
			if res.End {
				if fmt.Sprint(sum) != fmt.Sprint(want) {
					return fmt.Errorf("the pass counted %+v; want %+v", sum, want)
				}
				return nil
			}
		}
		return fmt.Errorf("no end: %+v", sum)
	}}
}

// parentLoser holds that a batch that does not get the sweep to itself says so.
var parentLoser = parentVictim{"a loser is busy", func(ctx context.Context, b *parentBench) error {
	m := mixes[slices.IndexFunc(mixes, func(m mix) bool { return m.gated })]
	a, err := b.open(m.script(), m.sweep(), Options{OneSweeper: true}, false)
	if err != nil {
		return err
	}
	mustExec(b.t, b.admin, fmt.Sprintf("SELECT pg_advisory_lock(%d)", a.lockKey()))
	defer mustExec(b.t, b.admin, fmt.Sprintf("SELECT pg_advisory_unlock(%d)", a.lockKey()))
	res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 7})
	if err == nil && !res.Busy {
		err = fmt.Errorf("it answered %+v", res)
	}
	return err
}}

// plannedWell holds the plans of a specimen's statements.
func plannedWell(specimenName, statement string) parentVictim {
	return parentVictim{"the plan of " + specimenName + " " + statement, func(ctx context.Context, b *parentBench) error {
		conn := parentPlansDB.New(b.t).Conn(b.t)
		i := slices.IndexFunc(parentSpecimens(), func(s specimen) bool { return s.name == specimenName })
		arm := parentSpecimens()[i].open(b.t, Conn(conn))
		p := planner{conn, arm}
		p.begin(b.t)
		defer p.end(b.t)
		keys := nearKeysSQL
		if b.clause.step == "keys" {
			keys = b.changed(keys)
		}
		if _, first := parentShapes(arm)[statement]; !first {
			mustExec(b.t, conn, keys)
		}
		mustExec(b.t, conn, fmt.Sprintf(`SELECT set_config('%s', '{"(0,1)"}', true), set_config('%s', '{}', true)`, setPicked, setPassed))
		st := parentStatementsOf(arm)[statement]
		_, first := parentShapes(arm)[statement]
		b.seen.saw("parents' "+formOf(statement, first), st.sql)
		if b.clause.step != "keys" {
			st.sql = b.changed(st.sql)
		}
		if err := p.prepare(ctx, "planned", st); err != nil {
			return err
		}
		for _, generic := range []bool{true, false} {
			e, err := p.explain(ctx, "FORMAT JSON", "planned", st, parentPlanValues(arm, 5000), generic)
			if err != nil {
				return err
			}
			if faults := parentPlanFaults(arm, statement, e); len(faults) > 0 {
				return errors.New(faults[0])
			}
		}
		return nil
	}}
}

var parentPlansDB = pgtest.NewTemplate("parent plans", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.PgConn().Exec(ctx, parentSchema+parentRows(300)).Close(); err != nil {
		return err
	}
	return c.PgConn().Exec(ctx, "VACUUM ANALYZE").Close()
})

// followedChildren has the delete of children follow a row to its new version, as one that names rows by key does. By
// address a new version is another row, so that what asks its state again is the second of two locks.
func followedChildren(sql string) string {
	if !strings.Contains(sql, ` WHERE d.ctid = ANY (ARRAY(`) {
		return sql
	}
	sql = strings.Replace(sql, ` WHERE d.ctid = ANY (ARRAY(`, ` USING (SELECT x.* FROM ONLY "public"."dl" x WHERE x.ctid = ANY (ARRAY(`, 1)
	return strings.Replace(sql, ")))  -- by address", `)))) f WHERE f."id" = d."id"  -- by address`, 1)
}

// billedArm is as open is, on a connection whose statements are added up.
func (b *parentBench) billedArm(script string, s policy.Sweep, o Options) (*Arm, *bill, error) {
	a, err := b.open(script, s, o, false)
	if err != nil {
		return nil, nil, err
	}
	conn, bill := billed(b.t, b.db)
	a.db = Conn(conn)
	bill.take()
	return a, bill, nil
}

var (
	lookCost = parentVictim{"a batch reads what it looks at, and one more", func(ctx context.Context, b *parentBench) error {
		a, bill, err := b.billedArm(outboxTables+"INSERT INTO ev SELECT g, timestamptz '2020-01-01 00:00+00' + g * interval '1 second' FROM generate_series(1, 3000) g ORDER BY md5(g::text);", outboxOfEv(), Options{})
		if err != nil {
			return err
		}
		mustExec(b.t, b.admin, "VACUUM ANALYZE ev")
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 8})
		if c := bill.take(); err == nil && (res.Examined != 2 || c.buffers > 60) {
			err = fmt.Errorf("it read %d buffers for %+v", c.buffers, res)
		}
		return err
	}}
	loserReads = parentVictim{"a loser reads nothing of the parents", func(ctx context.Context, b *parentBench) error {
		m := mixes[slices.IndexFunc(mixes, func(m mix) bool { return m.gated })]
		a, bill, err := b.billedArm(m.script(), m.sweep(), Options{OneSweeper: true})
		if err != nil {
			return err
		}
		mustExec(b.t, b.admin, fmt.Sprintf("SELECT pg_advisory_lock(%d)", a.lockKey()))
		defer mustExec(b.t, b.admin, fmt.Sprintf("SELECT pg_advisory_unlock(%d)", a.lockKey()))
		for range 2 { // the first one reads the catalog
			bill.take()
			if _, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 7}); err != nil {
				return err
			}
		}
		if c := bill.take(); c.buffers > 0 {
			return fmt.Errorf("it read %d buffers", c.buffers)
		}
		return nil
	}}
	chunkCost = parentVictim{"chunks cost the same beside an old snapshot", func(ctx context.Context, b *parentBench) error {
		s := outboxOfEv()
		s.Batch.Limit = 100
		a, bill, err := b.billedArm(outboxTables+"INSERT INTO ev VALUES (1, '2020-01-01 01:00+00'); INSERT INTO dl SELECT g, 1, 'r' || lpad(g::text, 5, '0'), 'ok' FROM generate_series(1, 3000) g ORDER BY md5(g::text);", s, Options{})
		if err != nil {
			return err
		}
		mustExec(b.t, b.admin, "VACUUM ANALYZE")
		old := b.db.Conn(b.t)
		defer func() { _ = old.Close(ctx) }()
		mustExec(b.t, old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ev")
		var all []int
		var at pruner.Cursor
		for {
			res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 100, After: at})
			if err != nil {
				return err
			}
			if c := bill.take(); res.Children == 100 {
				all = append(all, c.buffers)
			}
			if at = res.Next; res.End {
				break
			}
		}
		if len(all) != 30 || float64(slices.Max(all)) > 1.3*float64(all[0]) {
			return fmt.Errorf("the chunks cost %v buffers", all)
		}
		return nil
	}}
	ownersOfOwed = parentVictim{"no owner is locked but of parents that may go", func(ctx context.Context, b *parentBench) error {
		s := outboxOfEv()
		s.Guard.Owner = guardedEvents().Guard.Owner
		a, err := b.open("CREATE TABLE runs (id text PRIMARY KEY, status text NOT NULL); INSERT INTO runs VALUES ('a', 'done'), ('b', 'done'), ('c', 'done');"+strings.Replace(outboxTables, "parked bool", "parked bool, run text", 1)+
			outboxRows+"UPDATE dl SET status = 'pending' WHERE id = 21; UPDATE ev SET run = CASE id WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END;", s, Options{}, false)
		if err != nil {
			return err
		}
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 8}) // looks at two
		if err == nil && (res.Examined != 2 || res.Removed != 1) {
			err = fmt.Errorf("it counted %+v", res)
		}
		if got := b.db.Text(b.t, "SELECT coalesce(string_agg(id, ' ' ORDER BY id), '') FROM runs WHERE xmax::text <> '0'"); err == nil && got != "a" {
			err = fmt.Errorf("the owners %q were locked; want a", got)
		}
		return err
	}}
	heirCounts = parentVictim{"the rows of heirs are not counted", func(ctx context.Context, b *parentBench) error {
		s := outboxOfEv()
		s.Batch.Limit = 50
		a, err := b.open(outboxTables+outboxRows, s, Options{}, false)
		if err != nil {
			return err
		}
		mustExec(b.t, b.admin, "CREATE TABLE dlh () INHERITS (dl); INSERT INTO dlh SELECT -g, 1, 'r', 'ok' FROM generate_series(1, 100) g")
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50})
		if err == nil && fmt.Sprint(counts(res)) != fmt.Sprint(undisturbedOutbox) {
			err = fmt.Errorf("it counted %+v", res)
		}
		return err
	}}
	vetoedGrandchild = parentVictim{"a child stays whose own child a trigger keeps", func(ctx context.Context, b *parentBench) error {
		m := mixes[slices.IndexFunc(mixes, func(m mix) bool { return m.name == "nested" })]
		a, err := b.open(m.script()+`TRUNCATE ev, dl, att; INSERT INTO ev SELECT g, '2020-01-01 01:00+00' FROM generate_series(1, 3) g;
INSERT INTO dl SELECT g, CASE WHEN g < 3 THEN 1 ELSE 2 END, 'r' || lpad(g::text, 3, '0'), 'ok' FROM generate_series(1, 60) g; INSERT INTO att SELECT d.id, 1 FROM dl d;
CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.dl IN (2, 30) THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON att FOR EACH ROW EXECUTE FUNCTION keep()`, m.sweep(), Options{}, false)
		if err != nil {
			return err
		}
		var sum pruner.Result
		var at pruner.Cursor
		for n := 0; n < 60; n++ {
			res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 20, After: at})
			if err != nil {
				return err
			}
			if sum, at = plus(sum, res), res.Next; res.End {
				want := pruner.Result{Examined: 3, Removed: 1, Children: 116, Stuck: 2}
				if fmt.Sprint(sum) != fmt.Sprint(want) {
					return fmt.Errorf("the pass counted %+v; want %+v", sum, want)
				}
				return nil
			}
		}
		return fmt.Errorf("no end: %+v", sum)
	}}
	chunkVetoed = parentVictim{"chunks get past children that a trigger keeps", func(ctx context.Context, b *parentBench) error {
		s := outboxOfEv()
		s.Batch.Limit = 10
		a, err := b.open(outboxTables+`INSERT INTO ev VALUES (1, '2020-01-01 01:00+00'); INSERT INTO dl SELECT g, 1, 'r' || lpad(g::text, 3, '0'), 'ok' FROM generate_series(1, 100) g;
CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id < 10 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON dl FOR EACH ROW EXECUTE FUNCTION keep()`, s, Options{}, false)
		if err != nil {
			return err
		}
		var sum pruner.Result
		var at pruner.Cursor
		for n := 0; n < 15; n++ {
			res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 10, After: at})
			if err != nil {
				return err
			}
			if sum, at = plus(sum, res), res.Next; res.End {
				want := pruner.Result{Examined: 1, Children: 91, Stuck: 1}
				if fmt.Sprint(sum) != fmt.Sprint(want) {
					return fmt.Errorf("the pass counted %+v; want %+v", sum, want)
				}
				return nil
			}
		}
		return fmt.Errorf("no end: %+v", sum)
	}}
	twoWide = parentVictim{"one wide parent behind another", func(ctx context.Context, b *parentBench) error {
		m := mixes[0]
		a, err := b.open(m.script()+`TRUNCATE ev, dl, att; INSERT INTO ev SELECT g, '2020-01-01 01:00+00' FROM generate_series(1, 3) g;
INSERT INTO dl SELECT g, 1 + g % 3, 'r' || lpad(g::text, 3, '0'), 'ok' FROM generate_series(1, 99) g;`, m.sweep(), Options{}, false)
		if err != nil {
			return err
		}
		return m.pass(ctx, a, b.admin, 20)
	}}
	// owedElsewhere has a row come that protects a parent, while the batch waits for a child in another table.
	owedElsewhere = parentVictim{"a row that protects, and comes while the batch waits, keeps the parent", func(ctx context.Context, b *parentBench) error {
		s := outboxOfEv()
		s.Guard.Hold, s.Timeouts.Lock = "", 5*time.Second
		s.Guard.Owed = &policy.OwedGuard{Table: policy.Name{Schema: "public", Table: "att"}, Key: []policy.ChildKey{{Parent: "id", Child: "ev"}}}
		a, err := b.open(outboxTables+outboxRows+"CREATE TABLE att (ev int NOT NULL); CREATE INDEX ON att (ev);", s, Options{}, false)
		if err != nil {
			return err
		}
		other := b.db.Conn(b.t)
		defer func() { _ = other.Close(ctx) }()
		conn := a.db.conn
		mustExec(b.t, other, begin+"SELECT FROM dl WHERE id = 22 FOR UPDATE; INSERT INTO att VALUES (1)")
		batch := start(func() (pruner.Result, error) { return a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}) })
		eventually(b.t, "the batch waits", func() bool {
			var waits bool
			err := b.admin.QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", conn.PgConn().PID()).Scan(&waits)
			return err != nil || waits || len(batch.c) > 0
		})
		mustExec(b.t, other, "COMMIT")
		res, err := batch.end(b.t)
		if want := familyCount(3, 2, 5, 0, 0, 1); err == nil && fmt.Sprint(counts(res)) != fmt.Sprint(want) {
			err = fmt.Errorf("it counted %+v; want %+v", res, want)
		}
		return err
	}}
)

func parentClauses() []parentClause {
	keyed, unkeyed := mixPass("keyed", 7, 2), mixPass("unkeyed", 7, 2)
	nested, only, owner := mixPass("nested", 7, 100), mixPass("only and hold", 7), mixPass("owner", 7)
	vetoed := stuckAt("a parent that a trigger keeps is stuck, and the others of its age go", "ev", "id = 7", pruner.Result{Examined: 12, Removed: 11, Children: 24, Stuck: 1})
	vetoedChild := stuckAt("a parent whose child a trigger keeps is stuck", "dl", "id = 72", pruner.Result{Examined: 12, Removed: 11, Children: 23, Stuck: 1})
	key := func(old, new string) func(string) string {
		return func(sql string) string { return strings.ReplaceAll(sql, old, new) }
	}
	line := func(with string) func(string) string { return re(`(?m)^.*`+with+`.*\n`, "") }
	cs := []parentClause{
		// the first statement
		{name: "seen: cutoff", edit: inQuery("seen", re(`WHERE e\."at" < (\S+)`, "WHERE $1 IS NOT NULL")), victim: keyed},
		{name: "seen: cursor", edit: inQuery("seen", re(`e\."at" >= (\S+)`, "$1 IS NOT NULL")), victim: keyed},
		{name: "seen: cursor among those of one age", edit: inQuery("seen", re(`AND \(e\."at", e\."id"\) > \((\S+), (\S+)\)`, `AND e."at" >= $1 AND $2 IS NOT NULL`)), victim: keyed},
		{name: "seen: cursor is exclusive", edit: inQuery("seen", key(`e."id") > (`, `e."id") >= (`)), victim: keyed},
		{name: "seen: those that were passed", edit: inQuery("seen", re(`AND NOT \(e\.ctid = ANY \((\S+)\)\)`, "AND $1 IS NOT NULL")), victim: unkeyed},
		{name: "seen: equalities", edit: inQuery("seen", line(`AND e\."kind" = `)), victim: mixPass("through a partial index", 7)},
		{name: "seen: oldest first", edit: chain(inQuery("seen", re(`ORDER BY e\."at", e\."id" LIMIT`, `ORDER BY md5(e."id"::text) LIMIT`)), inQuery("seen", re(`OVER \(ORDER BY [^)]*\)`, `OVER (ORDER BY md5(e."id"::text))`))), victim: keyed},
		{name: "seen: numbered in order", edit: inQuery("seen", re(`OVER \(ORDER BY [^)]*\)`, `OVER (ORDER BY e."at" DESC, e."id" DESC)`)), victim: keyed},
		{name: "seen: as many as are looked at", edit: inQuery("seen", re(`LIMIT (\S+) \+ 1\) e`, "LIMIT $1 + 100) e")), victim: lookCost},
		{name: "seen: and one more", edit: inQuery("seen", key(" + 1) e", ") e")), victim: keyed},
		{name: "seen: gate", edit: line(`AND \(SELECT g\.ok FROM gate g\)`), victim: loserReads},
		{name: "seen: ONLY", edit: inQuery("seen", re(`(n|AS n_?) FROM ONLY`, "$1 FROM")), victim: heirs},
		{name: "chunk: the parent", edit: inQuery("seen", re(`WHERE e\.ctid = (\S+)`, "WHERE e.ctid IS NOT NULL AND $1 IS NOT NULL")), victim: keyed},
		{name: "owed: the key", edit: inQuery("seen", key(`o."ev" = e."id" AND `, "")), victim: keyed},
		{name: "owed: the state", edit: inQuery("seen", re(` AND o\."status" NOT IN \([^)]*\)`, "")), victim: keyed},
		{name: "owed: once", edit: inQuery("seen", key(" LIMIT 1) w", ") w")), victim: keyed},
		{name: "owed: ONLY", edit: inQuery("seen", key(`owed FROM ONLY`, "owed FROM")), victim: heirs},
		{name: "owed: by the partial index", edit: inQuery("seen", re(`o\."status" NOT IN \(([^)]*)\)`, `NOT coalesce(o."status" IN ($1), false)`)), victim: plannedWell("parents_outbox", "remove")},
		{name: "judged: outside", edit: inQuery("judged", re(`CASE WHEN .* THEN 'outside'`, "CASE WHEN false THEN 'outside'")), victim: only},
		{name: "judged: held", edit: inQuery("judged", re(`WHEN .* THEN 'held'`, "WHEN false THEN 'held'")), victim: only},
		{name: "judged: owed", edit: inQuery("judged", line(`THEN 'owed'`)), victim: keyed},
		{name: "judged: as many as are looked at", edit: inQuery("judged", re(`WHERE e\.n <= \S+`, "WHERE true")), victim: keyed},
		{name: "judged: of owners that were got", edit: inQuery("judged", key("WHEN o.got THEN 'due'", "WHEN o.ok THEN 'due'")), victim: owner},
		{name: "judged: orphans", edit: inQuery("judged", line(`THEN 'orphan'`)), victim: owner},
		{name: "judged: live owners", edit: inQuery("judged", line(`WHEN NOT o\.ok THEN`)), victim: owner},
		{name: "judged: the owner's key", edit: inQuery("judged", re(`ON o\.k0 = .*`, "ON true")), victim: owner},
		{name: "keys: of those that are not owed", edit: inQuery("keys", key(" AND e.owed IS NULL", "")), victim: ownersOfOwed},
		{name: "keys: of those that are looked at", edit: inQuery("keys", re(`e\.n <= \S+ AND`, "true AND")), victim: ownersOfOwed},
		{name: "mine: what is due", edit: inQuery("mine", re(` WHERE j\.class = 'due'`, "")), victim: keyed},
		{name: "mine: by address", edit: inQuery("mine", re(`d\.ctid = ANY \(ARRAY\(SELECT j\.tid FROM judged j WHERE j\.class = 'due'\)\)`, "true")), victim: plannedWell("parents_outbox", "remove")},
		{name: "mine: a filter, no range", edit: chain(inQuery("mine", key(") IS TRUE", ")")), inQuery("mine", key("WHERE d.ctid = ANY (ARRAY(SELECT j.tid FROM judged j WHERE j.class = 'due'))", "WHERE (d.ctid = ANY (ARRAY(SELECT j.tid FROM judged j WHERE j.class = 'due'))) IS TRUE"))), victim: plannedWell("parents_outbox", "remove")},
		{name: "mine: lock", edit: inQuery("mine", key("     FOR UPDATE SKIP LOCKED\n", "")), victim: raceNamed("requeued under the parent's lock")},
		{name: "mine: a lock that new children heed", edit: inQuery("mine", key("FOR UPDATE SKIP LOCKED", "FOR NO KEY UPDATE SKIP LOCKED")), victim: raceNamed("a child added")},
		{name: "mine: not waited for", edit: inQuery("mine", key("FOR UPDATE SKIP LOCKED", "FOR UPDATE")), victim: raceNamed("requeued under the parent's lock")},
		{name: "mine: ONLY", edit: inQuery("mine", key("FROM ONLY", "FROM")), victim: heirs},
		{name: "counted: children", edit: inQuery("counted", re(`\(SELECT count\(\*\) FROM \(SELECT FROM .* AS kids`, "0::bigint AS kids")), victim: keyed},
		{name: "counted: the children's key", edit: inQuery("counted", re(`c\."ev" = j\."id"`, "true")), victim: keyed},
		{name: "counted: of every table", edit: inQuery("counted", re(` \+ \(SELECT count`, " + 0 * (SELECT count")), victim: nested},
		{name: "counted: ONLY", edit: inQuery("counted", re(`FROM ONLY`, "FROM")), victim: heirCounts},
		{name: "fit: room", edit: inQuery("fit", re(`(OVER \(ORDER BY j\.n\)) > (\S+)`, "$1 > 10 * $2")), victim: keyed},
		{name: "fit: in order", edit: inQuery("fit", key("OVER (ORDER BY j.n)", "OVER (ORDER BY j.n DESC)")), victim: keyed},
		{name: "fit: the first goes whole", edit: inQuery("fit", re(`AND NOT coalesce\(c\.n = .*, false\) AS over`, "AS over")), victim: keyed},
		{name: "fit: no other goes whole", edit: inQuery("fit", re(`c\.n = \(SELECT min\(o\.n\) FROM counted o\) AND `, "")), victim: keyed},
		{name: "fit: whole where it fits", edit: inQuery("fit", re(` AND 1 \+ c\.kids <= \S+, false`, ", false")), victim: keyed},
		{name: "fit: those that were got", edit: inQuery("fit", re(`c\.n IS NOT NULL AS got`, "true AS got")), victim: raceNamed("requeued under the parent's lock")},
		{name: "cut: where there is no room", edit: inQuery("cut", key(" WHERE f.over", "")), victim: keyed},
		{name: "cut: none", edit: inQuery("cut", re(`coalesce\(min\(f\.n\), .*?\+ 1\)`, "min(f.n)")), victim: keyed},
		{name: "done: what has room", edit: inQuery("done", key("f.n < cut.n", "true")), victim: keyed},
		{name: "result: what was got", edit: re(`(array_agg\(d\.tid\)) FILTER \(WHERE d\.got\)`, "$1"), victim: only},
		{name: "result: where the next begins", edit: re(`WHERE s\.n = cut\.n\) AS next`, "WHERE false) AS next"), victim: keyed},
		{name: "result: a wide one", edit: re(`AND 1 \+ f\.kids > (\S+)\) AS wide`, "AND $1 IS NULL) AS wide"), victim: keyed},
		{name: "result: wide at the cut", edit: re(`f\.n = cut\.n AND f\.got AND f\.over`, "f.got AND f.over"), victim: twoWide},
		{name: "result: more than may go whole", edit: re(`1 \+ f\.kids > (\S+)\) AS wide`, "f.kids > 0 AND $1 > 0) AS wide"), victim: keyed},
		{name: "result: the last age", edit: re(`max\(l\.at_?\)`, "min(l.at_)"), victim: keyed},
		{name: "result: the last key", edit: re(`ORDER BY l\.n DESC LIMIT 1`, "ORDER BY l.n LIMIT 1"), victim: keyed},
		{name: "result: passed", edit: re(`coalesce\(\(SELECT array_agg\(l\.tid\).*?\), '\{\}'\)::text`, "'{}'"), victim: unkeyed},
		{name: "result: outside", edit: re(`d\.class = 'outside'`, "false"), victim: only},
		{name: "result: held", edit: re(`d\.class = 'held'`, "false"), victim: only},
		{name: "result: owed", edit: re(`d\.class = 'owed'`, "false"), victim: keyed},
		{name: "result: orphan", edit: re(`d\.class = 'orphan'`, "false"), victim: owner},
		{name: "result: locked", edit: re(` OR d\.class = 'due' AND NOT d\.got`, ""), victim: raceNamed("requeued under the parent's lock")},
		{name: "result: busy", edit: re(`\(SELECT g\.ok FROM gate g\) AS ok`, "true AS ok"), victim: parentLoser},

		// what is asked again
		{name: "recheck: owed", step: "recheck", edit: line(`-- not owed`), victim: afterSnapshot("requeued", "UPDATE dl SET status = 'pending' WHERE id = 12", familyCount(3, 1, 2, 1, 0, 1), "1:11ok,12pending 3:31pending")},
		{name: "recheck: the key", step: "recheck", edit: key(`o."ev" = p."id" AND `, ""), victim: keyed},
		{name: "recheck: the state", step: "recheck", edit: re(` AND o\."status" NOT IN \([^)]*\)`, ""), victim: keyed},
		{name: "recheck: what was picked", step: "recheck", edit: re(`p\.ctid = ANY \(\S+`, "true"), victim: keyed},
		{name: "recheck: handed on", step: "recheck", edit: key("'prunectl.picked', coalesce", "'prunectl.other', coalesce"), victim: afterSnapshot("requeued", "UPDATE dl SET status = 'pending' WHERE id = 12", familyCount(3, 1, 2, 1, 0, 1), "1:11ok,12pending 3:31pending")},
		{name: "recheck: ONLY", step: "recheck", edit: re(`FROM ONLY ("public"\."ev")`, "FROM $1"), victim: heirs},
		{name: "recheck: ONLY, owed", step: "recheck", edit: re(`FROM ONLY ("public"\."dl")`, "FROM $1"), victim: heirs},
		{name: "recheck: none", step: "recheck", edit: re(`coalesce\((array_agg\(p\.ctid\)), '\{\}'\)`, "$1"), victim: keyed},

		// the children
		{name: "child: of what was picked", step: "child public.dl", edit: re(`p\.ctid = ANY \(current_setting\('prunectl\.picked'\)::tid\[\]\)`, "true"), victim: keyed},
		{name: "child: the key", step: "child public.dl", edit: key(`c."ev" = p."id"`, "true"), victim: keyed},
		{name: "child: by address", step: "child public.dl", edit: re(`d\.ctid = ANY \(ARRAY\(`, "0 <= cardinality(ARRAY("), victim: keyed},
		{name: "child: state, again", step: "child public.dl", under: followedChildren, edit: re(`(?m)^   AND \(d\."status".*-- state, again\n`, ""), victim: raceNamed("requeued without it")},
		{name: "child: without children of its own", step: "child public.dl", edit: re(` AND \(SELECT true FROM ONLY "public"\."att".*? IS NULL`, ""), victim: vetoedGrandchild},
		{name: "child: ONLY", step: "child", edit: re(`DELETE FROM ONLY`, "DELETE FROM"), victim: heirs},
		{name: "child: ONLY, found", step: "child", edit: re(`c FROM ONLY|(c\.ctid) FROM ONLY`, "$1 FROM"), victim: heirs},
		{name: "child: ONLY, of parents", step: "child", edit: re(`FROM ONLY ("public"\."ev")`, "FROM $1"), victim: heirs},
		{name: "grandchild: the key", step: "child public.att", edit: key(`c."dl" = c1."id"`, "true"), victim: nested},
		{name: "grandchild: the child's key", step: "child public.att", edit: key(`c1."ev" = p."id"`, "true"), victim: nested},

		// chunks
		{name: "chunk: of the parent", step: "chunk", edit: re(`p\.ctid = ANY \(current_setting\('prunectl\.picked'\)::tid\[\]\)`, "true"), victim: keyed},
		{name: "chunk: the key", step: "chunk", edit: key(`c."ev" = p."id"`, "true"), victim: keyed},
		{name: "chunk: after the last one", step: "chunk", edit: re(`\(c\."rcv"\) > \((\S+)\)`, "$1 IS NOT NULL"), victim: chunkVetoed},
		{name: "chunk: in order", step: "chunk", edit: inQuery("next", re(` ORDER BY c\."rcv"`, ` ORDER BY md5(c."rcv")`)), victim: keyed},
		{name: "chunk: limit", step: "chunk", edit: inQuery("next", re(`LIMIT (\S+)`, "LIMIT 2 * $1")), victim: keyed},
		{name: "chunk: by address", step: "chunk", edit: inQuery("gone", re(`d\.ctid = ANY \(ARRAY\(SELECT n\.tid FROM next n\)\)`, "true")), victim: keyed},
		{name: "chunk: the last key", step: "chunk", edit: re(`ORDER BY n\.k0 DESC LIMIT 1`, "ORDER BY n.k0 LIMIT 1"), victim: chunkVetoed},
		{name: "chunk: more are left", step: "chunk", edit: re(`CASE WHEN \(SELECT count\(\*\) FROM next\) < \S+ THEN 'yes' ELSE 'no' END`, "'yes'"), victim: chunkCost},
		{name: "chunk: none is left", step: "chunk", edit: re(`CASE WHEN \(SELECT count\(\*\) FROM next\) < \S+ THEN 'yes' ELSE 'no' END`, "'no'"), victim: keyed},
		{name: "chunk: what was removed", step: "chunk", edit: re(`\(SELECT count\(\*\) FROM gone\) AS removed`, "0 AS removed"), victim: keyed},
		{name: "chunk: what was seen", step: "chunk", edit: re(`\(SELECT count\(\*\) FROM next\) AS seen`, "0 AS seen"), victim: keyed},
		{name: "chunk: without children of its own", step: "chunk", edit: re(` AND \(SELECT true FROM ONLY "public"\."att".*? IS NULL`, ""), victim: vetoedGrandchild},
		{name: "chunk: ONLY", step: "chunk", edit: re(`DELETE FROM ONLY`, "DELETE FROM"), victim: chunkHeirs},
		{name: "chunk: ONLY, found", step: "chunk", edit: inQuery("next", re(`FROM ONLY ("public"\."(dl|att)")`, "FROM $1")), victim: chunkHeirs},
		{name: "chunk: ONLY, of the parent", step: "chunk", edit: inQuery("next", re(`FROM ONLY ("public"\."ev")`, "FROM $1")), victim: chunkHeirs},

		// the parents
		{name: "parents: empty", step: "parents", edit: re(`WHERE current_setting\('prunectl\.empty'\) = 'yes'`, "WHERE true"), victim: chunkCost},
		{name: "parents: what was picked", step: "parents", edit: re(`d\.ctid = ANY \(\S+  --`, "true --"), victim: keyed},
		{name: "parents: no child is left", step: "parents", edit: line(`-- no child is left`), victim: raceNamed("requeued without it")},
		{name: "parents: the child's key", step: "parents", edit: re(`c\."ev" = d\."id"`, "true"), victim: keyed},
		{name: "parents: nothing is owed", step: "parents", edit: line(`-- nothing is owed`), victim: owedElsewhere},
		{name: "parents: ONLY", step: "parents", edit: re(`DELETE FROM ONLY`, "DELETE FROM"), victim: heirs},
		{name: "parents: ONLY, children", step: "parents", edit: re(`true FROM ONLY`, "true FROM"), victim: heirs},

		// the look at what is left
		{name: "after: what was picked", step: "after", edit: re(`WHERE p\.ctid = ANY \(\S+`, "WHERE true"), victim: keyed},
		{name: "after: owed", step: "after", edit: re(`count\(\*\) FILTER \(WHERE x\.owed\)`, "0"), victim: raceNamed("requeued without it")},
		{name: "after: with children", step: "after", edit: re(`count\(\*\) FILTER \(WHERE x\.owed IS NULL AND x\.kids\)`, "0"), victim: raceNamed("a child touched")},
		{name: "after: with children, not owed", step: "after", edit: re(`x\.owed IS NULL AND x\.kids`, "x.kids"), victim: raceNamed("requeued without it")},
		{name: "after: between chunks", step: "after", edit: re(`CASE WHEN current_setting\('prunectl\.empty'\) = 'yes' THEN (.*) ELSE true END AS kids`, "$1 AS kids"), victim: chunkCost},
		{name: "after: passed", step: "after", edit: re(`coalesce\(array_agg\(d\.ctid\)::text, '\{\}'\)`, "'{}'"), victim: vetoed},
		{name: "after: passed, what is there", step: "after", edit: re(`d\.ctid = ANY \(current_setting\('prunectl\.passed'\)::tid\[\]\)`, "true"), victim: unkeyed},
		{name: "after: a vetoed child", step: "after", edit: re(`IS NOT NULL ELSE`, "IS NULL ELSE"), victim: vetoedChild},
		{name: "after: ONLY", step: "after", edit: re(`FROM ONLY ("public"\."ev") p`, "FROM $1 p"), victim: heirs},
	}
	return append(cs, moreParentClauses()...)
}

// TestSabotageParents takes each clause of the parent form out in turn, and has a named check notice. Without a victim are:
//   - what is asked again of a parent as it is locked: a parent that changed has another address, at which nothing is due
//     (on servers whose minor release does not know that, it is what keeps such a parent);
//   - that the owed probe passes over what is kept anyway: a probe less;
//   - the bound of the count of children: a reading less, and what is counted is more than may go in either case;
//   - the state of the children that are looked for: it is asked again on the row, and this spares waiting for one;
//   - that a chunk of one table says that others are left: the probe for children keeps the parent all the same;
//   - that no more is passed than what has the next age, and is there: a longer list of addresses finds the same;
//   - nested loops on and hash joins off: each join is a LATERAL with OFFSET 0, which is nothing else;
//   - the id of the transaction: the tests of lost commits have it.
func TestSabotageParents(t *testing.T) {
	if testing.Short() {
		t.Skip("what a clause is there for does not depend on the server")
	}
	db := pgtest.New(t)
	admin := db.Conn(t)
	sound := map[string]seen{}
	for _, c := range parentClauses() {
		t.Run(c.name, func(t *testing.T) {
			if sound[c.victim.name] == nil {
				saw := seen{}
				if err := c.victim.run(t.Context(), &parentBench{t: t, db: db, admin: admin, seen: saw}); err != nil {
					t.Fatalf("%q is red with nothing taken out: %v", c.victim.name, err)
				}
				sound[c.victim.name] = saw
			}
			b := &parentBench{t: t, db: db, admin: admin, clause: c}
			err := c.victim.run(t.Context(), b)
			switch {
			case !b.touched:
				t.Errorf("the edit changes no text (%v)", err)
			case err == nil:
				t.Errorf("%q stays green", c.victim.name)
			default:
				t.Logf("%q: %s", c.victim.name, strings.SplitN(err.Error(), "\n", 2)[0])
			}
		})
	}
	sabotaged.parents = sound
}
