package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

// looked has more than one of each reason to keep a row: owners that are live, missing and unknown, one of them with rows
// that their own state keeps.
const looked = `CREATE TABLE thing (id int PRIMARY KEY, keeper int, state text, at timestamptz); CREATE INDEX ON thing (at, id);
CREATE TABLE keeper (id int PRIMARY KEY, status text NOT NULL); INSERT INTO keeper VALUES (1, 'done'), (2, 'live'), (3, 'live');
INSERT INTO thing SELECT g, CASE WHEN g <= 4 THEN 1 WHEN g <= 9 THEN 2 WHEN g <= 11 THEN 77 WHEN g <= 20 THEN NULL ELSE 3 END,
  CASE WHEN g > 20 THEN 'open' ELSE 'done' END, timestamptz '2020-01-01 00:00+00' + g * interval '1 minute' FROM generate_series(1, 23) g;
INSERT INTO thing VALUES (30, 2, 'done', '2030-01-01'), (31, 2, 'done', '1980-01-01'), (32, 2, 'done', '1981-01-01');`

func lookedAt() policy.Sweep {
	s := keptThings()
	s.Guard.State = &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}
	return s
}

// debtors has rows of another table that refer to things: two of them to one thing, one that owes nothing.
const debtors = things + `CREATE TABLE child (id int PRIMARY KEY, thing int NOT NULL, status text NOT NULL); CREATE INDEX ON child (thing) WHERE status NOT IN ('done', 'dead');
INSERT INTO child VALUES (1, 1, 'pending'), (2, 1, 'failed'), (3, 2, 'done'), (4, 3, 'open'), (5, 4, 'open');`

const debtorsSaid = "10 examined, 7 due, 3 held, 0 orphan, owed open 2/-, owed failed 1/-, 0 undated, due since 2020-01-01 00:00"

func debtorsSweep() policy.Sweep {
	return policy.Sweep{Guard: policy.Guard{Owed: &policy.OwedGuard{Table: policy.Name{Schema: "public", Table: "child"}, Key: []policy.ChildKey{{Parent: "id", Child: "thing"}},
		Column: "status", Terminal: policy.Texts("done", "dead")}}}
}

// lateByState holds how late rows are whose state has a longer window than others.
var lateByState = victim{"a row is late by the window of its state", func(ctx context.Context, b *bench) error {
	s := policy.Sweep{Guard: policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts("done", "lost")}},
		ByState: []policy.StateWindow{{State: policy.Text("done"), Window: policy.MustWindow(24 * time.Hour)}, {State: policy.Text("lost"), Window: policy.MustWindow(48 * time.Hour)}}}
	a, err := b.own(things+"UPDATE thing SET state = 'lost'", s, Options{})
	if err != nil {
		return err
	}
	p, err := a.Plan(ctx, raceCutoff, 100)
	if want := 76 * time.Hour; err == nil && p.Overdue != want {
		err = fmt.Errorf("it is late by %s; want %s", p.Overdue, want)
	}
	return err
}}

// tells holds what the looks say of a table.
func tells(name string, script string, s func() policy.Sweep, change, want string, opts ...func(*pgx.ConnConfig)) victim {
	return victim{name, func(ctx context.Context, b *bench) error {
		a, err := b.own(script, s(), Options{}, opts...)
		if err != nil {
			return err
		}
		if change != "" {
			b.db.Exec(b.t, change)
			defer b.db.Exec(b.t, "DROP TABLE IF EXISTS grandchild")
		}
		p, err := a.Plan(ctx, raceCutoff, 100)
		if err != nil {
			return err
		}
		held, err := a.HeldBy(ctx, raceCutoff, 100)
		if err != nil {
			return err
		}
		undated, err := a.Undated(ctx, 100)
		if err != nil {
			return err
		}
		got := fmt.Sprintf("%d examined, %d due, %d held, %d orphan", p.Examined, p.Due, p.Held, p.Orphan)
		for _, h := range held {
			owners := "-"
			if h.Owners != nil {
				owners = fmt.Sprint(*h.Owners)
			}
			got += fmt.Sprintf(", %s %s %d/%s", h.Reason, h.Value, h.Rows, owners)
		}
		if undated != nil {
			got += fmt.Sprintf(", %d undated", *undated)
		}
		if p.OldestDue != nil {
			got += ", due since " + p.OldestDue.UTC().Format(time.DateOnly+" 15:04")
		}
		if got != want {
			return fmt.Errorf("the looks say %s; want %s", got, want)
		}
		return nil
	}}
}

// reads holds what a look reads of a table of many rows.
func reads(name, script string, s policy.Sweep, most int, look func(context.Context, *Arm) error) victim {
	return victim{name, func(ctx context.Context, b *bench) error {
		a, err := b.own(script, s, Options{})
		if err != nil {
			return err
		}
		b.db.Exec(b.t, "ANALYZE thing, keeper")
		conn, bill := billed(b.t, b.db, b.forge)
		a.db = Conn(conn)
		for range 2 { // the first one reads the catalog
			bill.take()
			if err := look(ctx, a); err != nil {
				return err
			}
		}
		if c := bill.take(); c.buffers > most {
			return fmt.Errorf("it read %d buffers", c.buffers)
		}
		return nil
	}}
}

// lookClauses are those of the looks. What a row is counted as is the batch's own text, so it is taken out the same way.
func lookClauses() []clause {
	const heirs = `CREATE TABLE child () INHERITS (thing); INSERT INTO child SELECT 100 + g, 1, 'done', '2020-01-01 00:00+00' FROM generate_series(1, 9) g; INSERT INTO child VALUES (201, 1, 'done', '1980-01-01');
CREATE TABLE grandchild () INHERITS (keeper); INSERT INTO grandchild VALUES (2, 'done'), (77, 'gone')`
	const said = "23 examined, 4 due, 8 held, 11 orphan, ownerless  9/-, owner live 5/1, state open 3/-, orphan  2/-, 2 undated, due since 2020-01-01 00:01"
	all := tells("the looks say what there is", looked, lookedAt, "", said)
	heired := tells("the looks see no rows of heirs", looked, lookedAt, heirs, said)
	byState := owned(ownCase{kind: ownSeconds, index: "state and age", byState: true})
	byPart := owned(ownCase{kind: ownSeconds, index: "age, by part"})
	byAge := owned(ownCase{kind: ownSeconds, index: "age"})
	why := conformance("the survey says why rows are held", descending)
	undated := conformance("the survey counts undated rows")
	many := things + "INSERT INTO keeper SELECT g, 'done' FROM generate_series(10, 30000) g;"
	probes := reads("the looks probe an owner by its key", many, keptThings(), 150, func(ctx context.Context, a *Arm) error {
		if _, err := a.Plan(ctx, raceCutoff, 100); err != nil {
			return err
		}
		_, err := a.HeldBy(ctx, raceCutoff, 100)
		return err
	})
	few := reads("undated rows are read up to the bound", looked+"INSERT INTO thing SELECT g, 1, 'done', '1980-01-01' FROM generate_series(1000, 30000) g ORDER BY md5(g::text);", lookedAt(), 60,
		func(ctx context.Context, a *Arm) error {
			_, err := a.Undated(ctx, 10)
			return err
		})
	oneOwed := tells("the looks say what is owed", debtors, debtorsSweep, "", debtorsSaid)
	heirsOwe := tells("the looks say nothing of what heirs owe", debtors, debtorsSweep, "CREATE TABLE grandchild () INHERITS (child); INSERT INTO grandchild VALUES (90, 5, 'open')", debtorsSaid)
	ownedOwe := tells("the looks say what is owed, and whose it is", debtors, func() policy.Sweep {
		s := debtorsSweep()
		s.Guard.Owner = keptThings().Guard.Owner
		return s
	}, "", "10 examined, 4 due, 6 held, 0 orphan, owner live 3/1, owed open 2/-, owed failed 1/-, 0 undated, due since 2020-01-01 00:00")
	// in restricts an edit to one of the two forms. Comments make room for what is put in.
	in := func(form string, edit func(string) string) func(string) string {
		begin := regexp.MustCompile(`^(?:` + looksBegin[form].String() + `)`)
		return func(sql string) string {
			if !begin.MatchString(sql) {
				return sql
			}
			edited := edit(sql)
			if edited != sql {
				edited = sqlComment.ReplaceAllString(edited, "")
			}
			return edited
		}
	}
	look := func(pattern, instead string) func(string) string { return in("look", re(pattern, instead)) }
	old := func(pattern, instead string) func(string) string { return in("undated", re(pattern, instead)) }
	cs := []clause{
		{name: "look: cutoff", look: look(`WHERE (e\."\w+") < (\$1::timestamptz) AND`, "WHERE $2 IS NOT NULL AND"), victim: all},
		{name: "look: cursor", look: look(`AND (e\."\w+") >= (\$2::timestamptz)\n`, "AND $2 IS NOT NULL\n"), victim: all},
		{name: "look: the state that leads the index", look: look(`(?m)^     AND e\."state" = .*\n`, ""), victim: byState},
		{name: "look: what a partial index settles", look: look(`(?m)^     AND e\."own" IS NULL\n`, ""), victim: byPart},
		{name: "look: what an index of own windows settles", look: look(`(?m)^     AND e\."own" IS NOT NULL\n`, ""), victim: byPart},
		{name: "look: oldest first", look: look(`(?m)^   ORDER BY e\."\w+" LIMIT`, "   LIMIT"), victim: why},
		{name: "look: limit", look: look(` LIMIT (\$3::int)\n`, " LIMIT 9 * $1\n"), victim: why},
		{name: "look: ONLY", look: look(`FROM ONLY ("public"\."thing")`, "FROM $1"), victim: heired},
		{name: "look: ONLY, owners", look: look(`(got|ok) FROM ONLY`, "$1 FROM"), victim: heired},
		{name: "look: ONLY, states of owners", look: look(`state FROM ONLY`, "state FROM"), victim: heired},
		{name: "look: the owner's key", look: look(`WHERE r\."id" = k\.k0\n`, "WHERE true\n"), victim: all},
		{name: "look: the owner's key, asked", look: look(`l\.got IS NULL AND r\."id" = k\.k0`, "l.got IS NULL"), victim: all},
		{name: "look: guard", look: in("look", re(`(?m)^.*-- guard\n`, "")), victim: all},
		{name: "look: one probe an owner", look: look(`OFFSET 0\) ([ls]) ON`, ") $1 ON"), victim: probes},
		{name: "look: one probe of a state", look: look(`OFFSET 0\) x ON`, ") x ON"), victim: probes},
		{name: "look: held", look: look(`o\.got IS NULL AND NOT o\.ok\), 0`, "o.got IS NULL), 0"), victim: all},
		{name: "look: held, of those not got", look: look(`o\.got IS NULL AND o\.ok IS NULL`, "o.ok IS NULL"), victim: all},
		{name: "look: orphans", look: look(`o\.got IS NULL AND o\.ok IS NULL`, "o.got IS NULL"), victim: all},
		{name: "look: due", look: look(`\(sum\(o\.candidates\) FILTER \(WHERE o\.got\), 0\)`, "(sum(o.candidates), 0)"), victim: all},
		{name: "look: the state of the owner", look: look(`WHERE r\."id" = o\.k0`, "WHERE true"), victim: all},
		{name: "look: of owners with candidates", look: look(` AND o\.candidates > 0 GROUP`, " GROUP"), victim: all},
		{name: "look: of owners that keep", look: look(`(?m)^ WHERE o\.got IS NULL AND`, " WHERE"), victim: all},
		{name: "look: ownerless", look: look(`WHEN o\.k0 IS NULL THEN`, "WHEN false THEN"), victim: all},
		{name: "look: of an owner", look: look(`WHEN o\.ok IS NOT NULL THEN`, "WHEN false THEN"), victim: all},
		{name: "look: how many owners", look: look(`CASE WHEN bool_and\(o\.ok IS NOT NULL\) THEN count\(\*\) END`, "count(*)"), victim: all},
		{name: "look: the most first", look: look(`(?m)^ORDER BY 3 DESC, 1, 2\n?`, ""), victim: all},
		{name: "look: late by the window of the state", look: look(` - CASE WHEN e\."state" .*? END`, ""), victim: lateByState},

		{name: "look: owed, the key", look: look(`o\."thing" = e\."id" AND `, ""), victim: oneOwed},
		{name: "look: owed, the state", look: look(` AND o\."status" NOT IN \([^)]*\)`, ""), victim: oneOwed},
		{name: "look: owed, once", look: look(` LIMIT 1\) w`, ") w"), victim: oneOwed},
		{name: "look: owed, where anything is", look: look(` HAVING count\(\*\) > 0\)`, ")"), victim: oneOwed},
		{name: "look: owed, ONLY", look: look(`FROM ONLY ("public"\."child")`, "FROM $1"), victim: heirsOwe},
		{name: "look: owed, said", look: look(`WHERE e\.owed GROUP`, "WHERE true GROUP"), victim: oneOwed},
		{name: "look: owed is held", look: look(`e\.owed IS NOT NULL`, "false"), victim: oneOwed},
		{name: "look: owed is not due", look: look(`e\.owed IS NULL`, "true"), victim: oneOwed},
		{name: "look: owed is held, by owner", look: look(`e\.owed IS NOT NULL`, "false"), victim: ownedOwe},
		{name: "look: owed is not due, by owner", look: look(`e\.owed IS NULL`, "true"), victim: ownedOwe},

		{name: "undated: null", look: old(`WHERE (e\."\w+") IS NULL\n`, "WHERE true\n"), victim: undated},
		{name: "undated: before since", look: old(`WHERE (e\."\w+") < '[^']*'::timestamptz\n`, "WHERE true\n"), victim: undated},
		{name: "undated: of a terminal state", look: old(` AND e\."state" IN \([^)]*\)`, ""), victim: undated},
		{name: "undated: the state that leads the index", look: old(`(?m)^     AND e\."state" = .*\n`, ""), victim: undated},
		{name: "undated: only", look: old(`\(NOT coalesce\(e\."kind" = .*?, false\)\)`, "true"), victim: byAge},
		{name: "undated: of this part", look: old(`FILTER \(WHERE e\."own" IS (NOT )?NULL`, "FILTER (WHERE true"), victim: byAge},
		{name: "undated: limit", look: old(` LIMIT \d+`, ""), victim: few},
		{name: "undated: ONLY", look: old(`FROM ONLY`, "FROM"), victim: heired},
	}
	for _, c := range rowClauses() {
		if strings.HasPrefix(c.name, "hold: keeps") || strings.HasPrefix(c.name, "own: ") && c.under == nil && c.name != "own: in UTC" || c.name == "part: without a window" || c.name == "hold: once past the window of the state" {
			cs = append(cs, clause{name: "look, " + c.name, look: in("look", c.edit), victim: c.victim})
		}
	}
	return append(cs,
		clause{name: "look, hold: is counted", look: look(`NOT (coalesce\(e\."state" IN \([^)]*\), false\)) OR coalesce\(.*?false\) AND e\."hold" IS TRUE`, "NOT $1"), victim: byAge},
		clause{name: "look, part: with a window", look: look(`e\."own" IS NOT NULL AND (NOT|CASE)`, "$1"), victim: byAge},
		clause{name: "look, state: terminal states", look: look(`coalesce\(e\."state" IN \([^)]*\), false\) AND e\."hold"`, `e."hold"`), victim: byAge},
	)
}
