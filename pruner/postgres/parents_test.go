package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// mix is a population of parents of every kind: three of each age, some outside, held, owed once and twice, of live owners
// and of none, with no children or a few, one with more than a batch's limit and one with more than the policy's, one
// without an age and one that is not due. A variant takes a part of it.
type mix struct {
	name           string
	keyed, nested  bool
	only, hold     bool
	owner, owed    bool
	keyset         bool // an index has the children in order
	partial, gated bool // an index of what only matches; one sweeper
}

var mixes = []mix{
	{name: "keyed", keyed: true, keyset: true, owed: true},
	{name: "unkeyed", keyset: true, owed: true},
	{name: "without a keyset", keyed: true, owed: true},
	{name: "nested", keyed: true, keyset: true, nested: true, owed: true},
	{name: "nested, unkeyed", nested: true, owed: true},
	{name: "only and hold", keyed: true, keyset: true, only: true, hold: true, owed: true},
	{name: "through a partial index", keyed: true, keyset: true, only: true, partial: true, owed: true},
	{name: "owner", keyed: true, keyset: true, owner: true, only: true, owed: true},
	{name: "owner and nothing owed", keyed: true, keyset: true, owner: true, nested: true},
	{name: "one sweeper", keyed: true, keyset: true, owner: true, hold: true, owed: true, gated: true},
}

const mixLimit = 20 // of the policy

// mixCleared drops what mix makes.
const mixCleared = "DROP TABLE IF EXISTS att, dl, ev, runs CASCADE;"

// script makes the tables and the rows.
func (m mix) script() string {
	ages, children := "(at)", "(ev)"
	if m.keyed {
		ages = "(at, id)"
	}
	if m.partial {
		ages += " WHERE kind = 'step'"
	}
	if m.keyset {
		children = "(ev, rcv)"
	}
	s := `
CREATE TABLE runs (id text PRIMARY KEY, status text NOT NULL); INSERT INTO runs VALUES ('a', 'done'), ('b', 'live');
CREATE TABLE ev (id int PRIMARY KEY, at timestamptz NOT NULL, kind text, parked bool, run text);
CREATE INDEX ON ev ` + ages + `;
CREATE TABLE dl (id int PRIMARY KEY, ev int NOT NULL REFERENCES ev, rcv text NOT NULL, status text NOT NULL);
CREATE INDEX ON dl (ev) WHERE status NOT IN ('ok', 'dead');
CREATE ` + map[bool]string{true: "UNIQUE "}[m.keyset] + `INDEX ON dl ` + children + `;
CREATE TABLE att (dl int NOT NULL REFERENCES dl, n int NOT NULL, PRIMARY KEY (dl, n));
INSERT INTO ev SELECT g, timestamptz '2020-01-01 00:00+00' + g / 3 * interval '1 hour', CASE WHEN g % 7 = 0 THEN 'keep' ELSE 'step' END,
  CASE WHEN g % 11 = 0 THEN true WHEN g % 2 = 0 THEN false END, CASE WHEN g % 13 = 0 THEN 'b' WHEN g % 17 = 0 THEN NULL ELSE 'a' END FROM generate_series(1, 40) g ORDER BY md5(g::text);
INSERT INTO ev VALUES (101, '1970-01-01', 'step', NULL, 'a'), (102, '2020-03-01', 'step', NULL, 'a');
INSERT INTO dl SELECT e.id * 100 + r, e.id, 'r' || lpad((r * 7 % 100)::text, 3, '0'),
    CASE WHEN e.id % 6 = 1 AND r = 0 OR e.id % 12 = 1 AND r = 1 THEN 'pending' WHEN r % 2 = 0 THEN 'ok' ELSE 'dead' END
  FROM ev e, generate_series(0, CASE e.id WHEN 20 THEN 49 WHEN 30 THEN 11 ELSE e.id % 5 - 1 END) r ORDER BY md5(e.id::text || r);
`
	if m.nested {
		s += "INSERT INTO att SELECT d.id, n FROM dl d, generate_series(1, 2) n WHERE d.id % 3 = 0;\n"
	}
	return s
}

func (m mix) sweep() policy.Sweep {
	s := outboxOfEv()
	s.Guard.Hold = map[bool]string{true: "parked"}[m.hold]
	if m.only {
		s.Only = []policy.Match{{Column: "kind", Values: policy.Texts("step")}}
	}
	if m.owner {
		s.Guard.Owner = guardedEvents().Guard.Owner
	}
	if !m.owed {
		s.Guard.Owed = nil
	}
	if m.nested {
		s.Children[0].Children = []policy.Child{{Table: policy.Name{Schema: "public", Table: "att"}, Key: []policy.ChildKey{{Parent: "id", Child: "dl"}}}}
	}
	s.Batch.Limit = mixLimit
	s.Timeouts.Lock = 5 * time.Second
	return s
}

// oracle are the conditions of an event of the sweep, in the order in which one goes before the other.
func (m mix) oracle() (in, outside, held, orphan, due string) {
	in, outside, held, orphan = "e.at >= '1990-01-01' AND e.at < '2020-01-05 04:00+00'", "false", "false", "false"
	if m.partial {
		in += " AND e.kind = 'step'"
	} else if m.only {
		outside = "e.kind <> 'step'"
	}
	if m.hold {
		held += " OR e.parked IS TRUE"
	}
	if m.owed {
		held += " OR EXISTS (SELECT FROM ONLY dl d WHERE d.ev = e.id AND d.status = 'pending')"
	}
	if m.owner {
		orphan = "e.run IS NULL AND NOT (" + held + ")"
		held += " OR e.run = 'b'"
	}
	return in, outside, "(" + held + ") AND NOT " + outside, "(" + orphan + ") AND NOT " + outside, "NOT (" + outside + " OR " + held + ") AND NOT (" + orphan + ")"
}

// mixed is what is to come of a population, read before.
type mixed struct {
	want  pruner.Result
	stays string
}

const mixLeft = `SELECT coalesce(string_agg(e.id || ':' || (SELECT count(*) FROM ONLY dl d WHERE d.ev = e.id) || ':' || (SELECT count(*) FROM ONLY att a JOIN ONLY dl d ON d.id = a.dl WHERE d.ev = e.id), ' ' ORDER BY e.id), '-') FROM ONLY ev e`

func (m mix) expect(ctx context.Context, c *pgx.Conn) (w mixed, err error) {
	in, outside, held, orphan, due := m.oracle()
	sql := fmt.Sprintf(`SELECT count(*), count(*) FILTER (WHERE %s), count(*) FILTER (WHERE %s), count(*) FILTER (WHERE %s), count(*) FILTER (WHERE %s),
  coalesce(sum((SELECT count(*) FROM ONLY dl d WHERE d.ev = e.id) + (SELECT count(*) FROM ONLY att a JOIN ONLY dl d ON d.id = a.dl WHERE d.ev = e.id)) FILTER (WHERE %[4]s), 0) FROM ONLY ev e WHERE %[5]s`, outside, held, orphan, due, in)
	r := &w.want
	if err = c.QueryRow(ctx, sql).Scan(&r.Examined, &r.Outside, &r.Held, &r.Orphan, &r.Removed, &r.Children); err != nil {
		return w, err
	}
	err = c.QueryRow(ctx, mixLeft+fmt.Sprintf(" WHERE NOT (%s AND %s)", in, due)).Scan(&w.stays)
	return w, err
}

// pass runs a pass of batches and holds it against what the oracle said before.
func (m mix) pass(ctx context.Context, a *Arm, c *pgx.Conn, limit int) error {
	w, err := m.expect(ctx, c)
	if err != nil {
		return err
	}
	in, _, _, _, due := m.oracle()
	oldest := fmt.Sprintf("SELECT coalesce(min(e.at)::text, 'infinity') FROM ONLY ev e WHERE %s AND %s", in, due)
	var first string
	if err := c.QueryRow(ctx, oldest).Scan(&first); err != nil {
		return err
	}
	var wide, chunked int // children of parents that do not go whole, and those that went in chunks
	if err := c.QueryRow(ctx, fmt.Sprintf(`SELECT coalesce(sum(x.n), 0) FROM (SELECT (SELECT count(*) FROM ONLY dl d WHERE d.ev = e.id) + (SELECT count(*) FROM ONLY att a JOIN ONLY dl d ON d.id = a.dl WHERE d.ev = e.id) AS n
  FROM ONLY ev e WHERE %s AND %s) x WHERE 1 + x.n > %d`, in, due, mixLimit)).Scan(&wide); err != nil {
		return err
	}
	var sum pruner.Result
	var at pruner.Cursor
	seen := map[pruner.Cursor]bool{}
	for n := 1; ; n++ {
		if n > 200 {
			return fmt.Errorf("no end after %d batches", n)
		}
		if _, err := c.Exec(ctx, "DROP TABLE IF EXISTS pg_temp.was; CREATE TEMPORARY TABLE was AS SELECT e.id, e.at FROM ONLY ev e", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: limit, After: at})
		if err != nil {
			return err
		}
		if gone := res.Removed + res.Children; res.Examined > limit || gone > max(limit, mixLimit) || gone > limit && res.Removed != 1 {
			return fmt.Errorf("batch %d with the limit %d counted %+v", n, limit, res)
		}
		var inOrder bool
		if err := c.QueryRow(ctx, fmt.Sprintf("SELECT coalesce((SELECT max(w.at) FROM pg_temp.was w WHERE NOT EXISTS (SELECT FROM ONLY ev e WHERE e.id = w.id)) <= (%s)::timestamptz, true)", oldest)).Scan(&inOrder); err != nil {
			return err
		}
		if !inOrder {
			return fmt.Errorf("batch %d left an older row than it removed", n)
		}
		sum = plus(sum, res)
		if res.Examined == 0 {
			chunked += res.Children
		}
		if res.End {
			break
		}
		if seen[res.Next] && res.Removed+res.Children == 0 {
			return fmt.Errorf("batch %d comes back to %q", n, res.Next)
		}
		seen[res.Next] = true
		at = res.Next
	}
	var left string
	if err := c.QueryRow(ctx, mixLeft).Scan(&left); err != nil {
		return err
	}
	switch {
	case chunked > wide:
		return fmt.Errorf("%d children went in chunks; want %d at most", chunked, wide)
	case left != w.stays:
		return fmt.Errorf("%q is left, not %q", left, w.stays)
	case fmt.Sprint(sum) != fmt.Sprint(w.want):
		return fmt.Errorf("the pass counted %+v, not %+v", sum, w.want)
	}
	return nil
}

// TestParents sweeps every mix, at limits below, at and above what parents bring along.
func TestParents(t *testing.T) {
	db := pgtest.New(t)
	c := db.Conn(t)
	for _, m := range mixes {
		for _, limit := range []int{1, 2, 7, 20, 100} {
			if limit == 1 && m.owner {
				continue // many batches, as those of the others
			}
			t.Run(fmt.Sprintf("%s, limit %d", m.name, limit), func(t *testing.T) {
				mustExec(t, c, mixCleared+m.script())
				arms, err := Open(t.Context(), Conn(db.Conn(t)), m.sweep(), Options{OneSweeper: m.gated})
				if err != nil {
					t.Fatal(err)
				}
				for _, pass := range []string{"first", "second"} { // a second finds what the first left, and removes nothing
					if err := m.pass(t.Context(), arms[0], c, limit); err != nil {
						t.Fatalf("%s pass: %v", pass, err)
					}
				}
			})
		}
	}
}

// TestParentsInEveryMode sweeps mixes in every exec mode of pgx: the simple protocol too says how many rows a DELETE removed.
func TestParentsInEveryMode(t *testing.T) {
	db := pgtest.New(t)
	c := db.Conn(t)
	for _, m := range mixes {
		if m.owner != m.gated {
			continue // the last one has an owner
		}
		mustExec(t, c, mixCleared+m.script())
		mustExec(t, c, "DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept; CREATE TABLE kept.ev AS TABLE ev; CREATE TABLE kept.dl AS TABLE dl; CREATE TABLE kept.att AS TABLE att")
		for _, em := range execModes {
			t.Run(m.name+", "+em.String(), func(t *testing.T) {
				mustExec(t, c, "TRUNCATE ev, dl, att; INSERT INTO ev TABLE kept.ev; INSERT INTO dl TABLE kept.dl; INSERT INTO att TABLE kept.att")
				conn := db.Conn(t, mode(em))
				arms, err := Open(t.Context(), Conn(conn), m.sweep(), Options{OneSweeper: m.gated})
				if err != nil {
					t.Fatal(err)
				}
				if err := m.pass(t.Context(), arms[0], c, 7); err != nil {
					t.Fatal(err)
				}
				var left string
				if err := conn.QueryRow(t.Context(), "SELECT current_setting('prunectl.picked', true) || current_setting('enable_nestloop')", pgx.QueryExecModeSimpleProtocol).Scan(&left); err != nil || strings.TrimPrefix(left, "{}") != "on" {
					t.Errorf("the session keeps %q (%v)", left, err)
				}
			})
		}
	}
}

// TestParentsWithOddNames has columns of a target with every name that the statements use themselves.
func TestParentsWithOddNames(t *testing.T) {
	db := pgtest.New(t)
	c := db.Conn(t)
	for name, age := range map[string]string{"tid": "at", "n": "class", "owed": "raised", "got": "kids", "over": "owed", "class": "n", "at": "over", "raised": "got", "kids": "tid", "k0": "ok", "owes": "reason"} {
		t.Run(name+" and "+age, func(t *testing.T) {
			mustExec(t, c, fmt.Sprintf(`DROP TABLE IF EXISTS dl, ev; CREATE TABLE ev (%[1]q int NOT NULL, %[2]q timestamptz NOT NULL, PRIMARY KEY (%[1]q)); CREATE INDEX ON ev (%[2]q, %[1]q);
CREATE TABLE dl (id int PRIMARY KEY, %[1]q int NOT NULL REFERENCES ev, status text); CREATE INDEX ON dl (%[1]q);
INSERT INTO ev SELECT g, '2020-01-01' FROM generate_series(1, 9) g; INSERT INTO dl SELECT g, g, CASE g WHEN 3 THEN 'pending' ELSE 'ok' END FROM generate_series(1, 9) g`, name, age))
			s := outboxOfEv()
			s.Age, s.Guard.Hold = age, ""
			s.Guard.Owed.Key = []policy.ChildKey{{Parent: name, Child: name}}
			s.Children[0].Key = s.Guard.Owed.Key
			arms, err := Open(t.Context(), Conn(db.Conn(t)), s, Options{})
			if err != nil {
				t.Fatal(err)
			}
			cutoff := policy.CutoffAt(time.Now().Add(-24 * time.Hour))
			if p, err := arms[0].Plan(t.Context(), cutoff, 100); err != nil || p.Due != 8 || p.Held != 1 {
				t.Errorf("the plan is %+v, %v", p, err)
			}
			if held, err := arms[0].HeldBy(t.Context(), cutoff, 100); err != nil || len(held) != 1 || held[0].Value != "pending" {
				t.Errorf("held by %+v, %v", held, err)
			}
			same(t, "the pass", sweeper{Arm: arms[0]}.pass(t, 4, pruner.Cursor{}, nil), familyCount(9, 8, 8, 1, 0, 0))
		})
	}
}

// TestGroupWithOddNames holds the same of rows of one age that no index orders.
func TestGroupWithOddNames(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE jobs (tid text, at timestamptz NOT NULL); CREATE INDEX ON jobs (at); INSERT INTO jobs SELECT CASE g WHEN 3 THEN 'live' ELSE 'done' END, '2020-01-01' FROM generate_series(1, 9) g`)
	s := policy.Sweep{Name: "jobs", Table: policy.Name{Schema: "public", Table: "jobs"}, Age: "at", Window: policy.MustWindow(24 * time.Hour),
		Guard: policy.Guard{State: &policy.StateGuard{Column: "tid", Terminal: policy.Texts("done")}}}
	arms, err := Open(t.Context(), Conn(db.Conn(t)), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	removed, held := 0, 0
	for at, end := (pruner.Cursor{}), false; !end; {
		res, err := arms[0].Prune(t.Context(), pruner.Batch{Cutoff: policy.CutoffAt(time.Now().Add(-24 * time.Hour)), Limit: 4, After: at})
		if err != nil {
			t.Fatal(err)
		}
		removed, held, at, end = removed+res.Removed, held+res.Held, res.Next, res.End
	}
	if removed != 8 || held != 1 {
		t.Errorf("%d rows were removed and %d held; want 8 and 1", removed, held)
	}
}
