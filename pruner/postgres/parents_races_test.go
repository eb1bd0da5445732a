package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

func outboxRace(t *testing.T) *race {
	return newRace(t, outboxTables, outboxRows, outboxOfEv(), outboxSteps)
}

// unkeyedOutbox has no index that orders events of one age.
func unkeyedOutbox(t *testing.T) *race {
	return newRace(t, strings.Replace(outboxTables, "ev (at, id)", "ev (at)", 1), outboxRows, outboxOfEv(), outboxSteps)
}

var outboxDisturbances = []disturbance{
	{"requeued under the parent's lock", "SELECT FROM ev WHERE id = 1 FOR UPDATE; UPDATE dl SET status = 'pending' WHERE id = 12", false, "COMMIT",
		familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12pending 3:31pending", familyCount(2, 0, 0, 2, 0, 0), ""},
	{"requeued under the parent's lock and rolled back", "SELECT FROM ev WHERE id = 1 FOR UPDATE; UPDATE dl SET status = 'pending' WHERE id = 12", false, "ROLLBACK",
		familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12dead 3:31pending", familyCount(2, 1, 2, 1, 0, 0), "3:31pending"},
	{"requeued without it", "UPDATE dl SET status = 'pending' WHERE id = 12", true, "COMMIT",
		familyCount(3, 1, 3, 1, 0, 1), "1:12pending 3:31pending", familyCount(2, 0, 0, 2, 0, 0), ""},
	{"requeued without it and rolled back", "UPDATE dl SET status = 'pending' WHERE id = 12", true, "ROLLBACK",
		undisturbedOutbox, "3:31pending", familyCount(1, 0, 0, 1, 0, 0), ""},
	{"a child touched", "UPDATE dl SET status = status WHERE id = 12", true, "COMMIT",
		familyCount(3, 1, 3, 1, 0, 1), "1:12dead 3:31pending", familyCount(2, 1, 1, 1, 0, 0), "3:31pending"},
	{"a child given to another parent", "UPDATE dl SET ev = 3 WHERE id = 12", true, "COMMIT",
		familyCount(3, 2, 3, 1, 0, 0), "3:12dead,31pending", familyCount(1, 0, 0, 1, 0, 0), ""},
	{"a child deleted", "DELETE FROM dl WHERE id = 12", true, "COMMIT", familyCount(3, 2, 3, 1, 0, 0), "3:31pending", familyCount(1, 0, 0, 1, 0, 0), ""},
	{"a child added", "INSERT INTO dl VALUES (13, 1, 'r9', 'ok')", false, "COMMIT", familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12dead,13ok 3:31pending", familyCount(2, 1, 3, 1, 0, 0), "3:31pending"},
	{"settled", "UPDATE dl SET status = 'ok' WHERE id = 31", false, "COMMIT", undisturbedOutbox, "3:31ok", familyCount(1, 1, 1, 0, 0, 0), "-"},
	{"the parent's age forward", "UPDATE ev SET at = at + interval '500 hours' WHERE id = 1", false, "COMMIT", familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12dead 3:31pending", familyCount(1, 0, 0, 1, 0, 0), ""},
	{"the parent held", "UPDATE ev SET parked = true WHERE id = 1", false, "COMMIT", familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12dead 3:31pending", familyCount(2, 0, 0, 2, 0, 0), ""},
	{"the parent touched", "UPDATE ev SET at = at WHERE id = 1", false, "COMMIT", familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12dead 3:31pending", familyCount(2, 1, 2, 1, 0, 0), "3:31pending"},
	{"the parent deleted", "DELETE FROM dl WHERE ev = 1; DELETE FROM ev WHERE id = 1", false, "COMMIT", familyCount(3, 1, 2, 1, 1, 0), "3:31pending", familyCount(1, 0, 0, 1, 0, 0), ""},
	{"the parent deleted, and back", "DELETE FROM dl WHERE ev = 1; DELETE FROM ev WHERE id = 1", false, "ROLLBACK", familyCount(3, 1, 2, 1, 1, 0), "1:11ok,12dead 3:31pending", familyCount(2, 1, 2, 1, 0, 0), "3:31pending"},
}

// TestParentRaces lets another session act before and while a batch of parents runs, under every isolation level that a
// database may have as its default, with and without an index that orders events of one age.
func TestParentRaces(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name string
		race func(*testing.T) *race
	}{{"keyed", outboxRace}, {"unkeyed", unkeyedOutbox}} {
		for _, level := range isolationLevels {
			t.Run(kind.name+" under "+level, func(t *testing.T) {
				t.Parallel()
				r := kind.race(t)
				r.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", ident(r.Name), level))
				other := r.Conn(t)
				plain, gated := r.sweeper(t, Options{}), r.sweeper(t, Options{OneSweeper: true})
				for i, d := range outboxDisturbances {
					s := plain
					if i%2 == 1 {
						s = gated
					}
					t.Run(d.name, func(t *testing.T) { r.disturb(t, other, s, d) })
				}
			})
		}
	}
}

// TestParentsWhileWaiting changes a parent, or adds to one, while a batch that has locked it waits for a child of another:
// the change waits for the commit, as if the sweep had come first.
func TestParentsWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, fails string }{
		{"age forward", "UPDATE ev SET at = at + interval '500 hours' WHERE id = 1", ""},
		{"held", "UPDATE ev SET parked = true WHERE id = 1", ""},
		{"requeued under its lock", "WITH l AS MATERIALIZED (SELECT id FROM ev WHERE id = 1 FOR UPDATE) UPDATE dl SET status = 'pending' WHERE ev = (SELECT l.id FROM l)", ""},
		{"a child added", "INSERT INTO dl VALUES (13, 1, 'r9', 'pending')", "dl_ev_fkey"},
		{"a child of another given to it", "UPDATE dl SET ev = 1, rcv = 'r9' WHERE id = 31", "dl_ev_fkey"},
		{"deleted", "DELETE FROM ev WHERE id = 1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := outboxRace(t)
			s, holder, other := r.sweeper(t, Options{}), r.Conn(t), r.Conn(t)
			mustExec(t, holder, begin+"SELECT FROM dl WHERE id = 22 FOR UPDATE")
			batch := s.prune(t.Context())
			r.untilWaiting(t, s.pid())
			change := start(func() (struct{}, error) {
				return struct{}{}, other.PgConn().Exec(t.Context(), c.sql).Close()
			})
			r.untilWaiting(t, other.PgConn().PID())
			mustExec(t, holder, "COMMIT")
			same(t, "the batch", counts(batch.must(t)), undisturbedOutbox)
			if _, err := change.end(t); (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("the change ended with %v; want %q", err, c.fails)
			}
			same(t, "left", r.leftNow(t), "3:31pending")
		})
	}
}

// wide has one event with 100 deliveries between two with one each, and batches of at most 20 rows.
func wide(t *testing.T, keyed bool) *race {
	r := outboxRace(t)
	if !keyed {
		r = unkeyedOutbox(t)
	}
	r.sweep.Batch.Limit = 20
	r.rows = `TRUNCATE ev, dl CASCADE;
INSERT INTO ev SELECT g, timestamptz '2020-01-01 00:00+00' + g * interval '1 hour' FROM generate_series(1,3) g;
INSERT INTO dl SELECT g, 2, 'r' || lpad(g::text, 3, '0'), 'ok' FROM generate_series(1, 100) g;
INSERT INTO dl VALUES (1001, 1, 'r', 'ok'), (1003, 3, 'r', 'ok');`
	r.Exec(t, r.rows)
	r.left = "SELECT coalesce(string_agg(e.id || ':' || (SELECT count(*) FROM dl WHERE ev = e.id), ' ' ORDER BY e.id), '-') FROM ev e"
	return r
}

// pass runs batches from a cursor on, until one ends the pass, and returns their sum and where each ended.
func (s sweeper) pass(t *testing.T, limit int, at pruner.Cursor, between func(n int, r pruner.Result)) (sum pruner.Result) {
	t.Helper()
	seen := map[pruner.Cursor]bool{}
	for n := 1; ; n++ {
		res, err := s.Prune(t.Context(), pruner.Batch{Cutoff: raceCutoff, Limit: limit, After: at})
		if err != nil {
			t.Fatal(err)
		}
		if res.Removed+res.Children > max(limit, s.Arm.sweep.Batch.Limit) || res.Examined > limit {
			t.Fatalf("a batch with the limit %d counted %+v", limit, res)
		}
		sum = plus(sum, res)
		if between != nil {
			between(n, res)
		}
		if res.End {
			return sum
		}
		if seen[res.Next] && res.Removed+res.Children == 0 || n > 1000 {
			t.Fatalf("batch %d comes back to %q: %+v", n, res.Next, res)
		}
		seen[res.Next] = true
		at = res.Next
	}
}

// plus adds up counts.
func plus(a, b pruner.Result) pruner.Result {
	return pruner.Result{
		Examined: a.Examined + b.Examined, Removed: a.Removed + b.Removed, Children: a.Children + b.Children, Held: a.Held + b.Held, Locked: a.Locked + b.Locked, Moved: a.Moved + b.Moved,
		Orphan: a.Orphan + b.Orphan, Stuck: a.Stuck + b.Stuck, Unusable: a.Unusable + b.Unusable, Outside: a.Outside + b.Outside, Raised: a.Raised + b.Raised,
	}
}

// TestChunks has another session act between the chunks of a parent that has more children than fit in a batch.
func TestChunks(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, sql string
		want      pruner.Result
		left      string
		leaves    string // after one more pass; "": the same
	}{
		{"nobody in the way", "SELECT", familyCount(3, 3, 102, 0, 0, 0), "-", ""},
		{"a child requeued", "UPDATE dl SET status = 'pending' WHERE id = 77", familyCount(3, 2, 42, 1, 0, 0), "2:60", ""},
		{"a child requeued that is gone", "UPDATE dl SET status = 'pending' WHERE id = 3", familyCount(3, 3, 102, 0, 0, 0), "-", ""},
		{"a child added that is owed, behind", "INSERT INTO dl VALUES (999, 2, 'a', 'pending')", familyCount(3, 2, 42, 1, 0, 0), "2:61", ""},
		{"a child added, behind", "INSERT INTO dl VALUES (999, 2, 'a', 'ok')", familyCount(3, 2, 102, 0, 0, 1), "2:1", "-"},
		{"a child added, ahead", "INSERT INTO dl VALUES (999, 2, 'z', 'ok')", familyCount(3, 3, 103, 0, 0, 0), "-", ""},
		{"the parent touched", "UPDATE ev SET at = at WHERE id = 2", familyCount(3, 3, 102, 0, 0, 0), "-", ""},
		{"the parent's age back", "UPDATE ev SET at = at - interval '90 minutes' WHERE id = 2", familyCount(2, 2, 42, 0, 0, 0), "2:60", "-"},
		{"the parent's age forward", "UPDATE ev SET at = at + interval '500 hours' WHERE id = 2", familyCount(2, 2, 42, 0, 0, 0), "2:60", ""},
		{"the parent held", "UPDATE ev SET parked = true WHERE id = 2", familyCount(3, 2, 42, 1, 0, 0), "2:60", ""},
		{"the parent deleted", "DELETE FROM dl WHERE ev = 2; DELETE FROM ev WHERE id = 2", familyCount(2, 2, 42, 0, 0, 0), "-", ""},
		{"a parent before it", "INSERT INTO ev VALUES (0, '2020-01-01 00:30+00')", familyCount(3, 3, 102, 0, 0, 0), "0:0", "-"},
	}
	for _, keyed := range []bool{true, false} {
		t.Run(fmt.Sprintf("keyed %t", keyed), func(t *testing.T) {
			t.Parallel()
			r := wide(t, keyed)
			s, other := r.sweeper(t, Options{}), r.Conn(t)
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					r.Exec(t, r.rows)
					chunks := 0
					sum := s.pass(t, 20, pruner.Cursor{}, func(_ int, res pruner.Result) {
						if res.Examined == 0 && res.Children == 20 {
							if chunks++; chunks == 2 {
								mustExec(t, other, c.sql)
							}
						}
					})
					same(t, "the pass", sum, c.want)
					same(t, "left", r.leftNow(t), c.left)
					again := s.pass(t, 20, pruner.Cursor{}, nil)
					if c.leaves == "" {
						c.leaves = c.left
						same(t, "removed by the next pass", again.Removed+again.Children, 0)
					}
					same(t, "left then", r.leftNow(t), c.leaves)
				})
			}
		})
	}
}

// TestChunkWaits has a chunk wait for a child that somebody else changes, and the parent be locked by somebody else.
func TestChunkWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql string
		want      pruner.Result
		left      string
	}{
		{"requeued without the parent's lock", "UPDATE dl SET status = 'pending' WHERE id = 50", familyCount(0, 0, 19, 0, 0, 0), "2:41 3:1"},
		{"deleted", "DELETE FROM dl WHERE id = 50", familyCount(0, 0, 19, 0, 0, 0), "2:40 3:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := wide(t, true)
			s, other := r.sweeper(t, Options{}), r.Conn(t)
			first := s.prune50(t, 20, pruner.Cursor{}).must(t) // event 1, and then the wide one
			one := s.prune50(t, 20, first.Next).must(t)
			two := s.prune50(t, 20, one.Next).must(t)
			same(t, "two chunks", []int{one.Children, two.Children}, []int{20, 20})
			mustExec(t, other, begin+c.sql)
			batch := s.prune50(t, 20, two.Next)
			r.untilWaiting(t, s.pid())
			mustExec(t, other, "COMMIT")
			same(t, "the chunk", counts(batch.must(t)), c.want)
			same(t, "left", r.leftNow(t), c.left)
		})
	}
	t.Run("the parent locked", func(t *testing.T) {
		t.Parallel()
		r := wide(t, true)
		s, other := r.sweeper(t, Options{}), r.Conn(t)
		first := s.prune50(t, 20, pruner.Cursor{}).must(t)
		one := s.prune50(t, 20, first.Next).must(t)
		mustExec(t, other, begin+"SELECT FROM ev WHERE id = 2 FOR UPDATE")
		same(t, "the rest of the pass", s.pass(t, 20, one.Next, nil), familyCount(2, 1, 1, 0, 1, 0))
		mustExec(t, other, "COMMIT")
		same(t, "left", r.leftNow(t), "2:80")
		same(t, "the next pass", s.pass(t, 20, pruner.Cursor{}, nil), familyCount(1, 1, 80, 0, 0, 0))
	})
}

func (s sweeper) prune50(t *testing.T, limit int, at pruner.Cursor) underway[pruner.Result] {
	return start(func() (pruner.Result, error) {
		return s.Prune(t.Context(), pruner.Batch{Cutoff: raceCutoff, Limit: limit, After: at})
	})
}

// TestParentsOfOwners has the owner of parents reopened: they stay whole, with their children.
func TestParentsOfOwners(t *testing.T) {
	t.Parallel()
	tables := "CREATE TABLE runs (id text PRIMARY KEY, status text NOT NULL);\n" + strings.Replace(outboxTables, "parked bool", "parked bool, run text", 1)
	rows := "TRUNCATE runs; INSERT INTO runs VALUES ('a', 'done'), ('b', 'live');" + outboxRows + "UPDATE ev SET run = CASE id WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'a' END;"
	sweep := outboxOfEv()
	sweep.Guard.Owner = guardedEvents().Guard.Owner
	sweep.Guard.Owner.Key = []policy.KeyPair{{Target: "run", Owner: "id"}}
	closed := "UPDATE runs SET status = 'done' WHERE id = 'b'"
	orphan := familyCount(3, 0, 0, 2, 0, 0)
	orphan.Orphan = 1
	for _, d := range []disturbance{
		{"nobody in the way", "SELECT", false, "COMMIT", familyCount(3, 1, 2, 2, 0, 0), "2:21ok,22ok 3:31pending", familyCount(2, 0, 0, 2, 0, 0), ""},
		{"reopened", "UPDATE runs SET status = 'live' WHERE id = 'a'", false, "COMMIT", familyCount(3, 0, 0, 2, 1, 0), allOfOutbox, familyCount(3, 0, 0, 3, 0, 0), ""},
		{"reopened and rolled back", "UPDATE runs SET status = 'live' WHERE id = 'a'", false, "ROLLBACK", familyCount(3, 0, 0, 2, 1, 0), allOfOutbox, familyCount(3, 1, 2, 2, 0, 0), "2:21ok,22ok 3:31pending"},
		{"closed", closed, false, "COMMIT", familyCount(3, 1, 2, 2, 0, 0), "2:21ok,22ok 3:31pending", familyCount(2, 1, 2, 1, 0, 0), "3:31pending"},
		{"deleted", "DELETE FROM runs WHERE id = 'a'", false, "COMMIT", familyCount(3, 0, 0, 2, 1, 0), allOfOutbox, orphan, ""},
		{"requeued without the parent's lock", "UPDATE dl SET status = 'pending' WHERE id = 12", true, "COMMIT", familyCount(3, 0, 1, 2, 0, 1), "1:12pending 2:21ok,22ok 3:31pending", familyCount(3, 0, 0, 3, 0, 0), ""},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			r := newRace(t, tables, rows, sweep, outboxSteps)
			r.disturb(t, r.Conn(t), r.sweeper(t, Options{}), d)
		})
	}
	t.Run("reopened while the batch waits", func(t *testing.T) {
		t.Parallel()
		r := newRace(t, tables, rows, sweep, outboxSteps)
		s, holder, other := r.sweeper(t, Options{}), r.Conn(t), r.Conn(t)
		mustExec(t, holder, begin+"SELECT FROM dl WHERE id = 12 FOR UPDATE")
		batch := s.prune(t.Context())
		r.untilWaiting(t, s.pid())
		reopen := start(func() (struct{}, error) {
			return struct{}{}, other.PgConn().Exec(t.Context(), "UPDATE runs SET status = 'live' WHERE id = 'a'").Close()
		})
		r.untilWaiting(t, other.PgConn().PID())
		mustExec(t, holder, "COMMIT")
		same(t, "the batch", counts(batch.must(t)), familyCount(3, 1, 2, 2, 0, 0))
		reopen.must(t)
	})
}

// family12 is twelve events of one age with two deliveries each.
const family12 = `TRUNCATE ev, dl CASCADE;
INSERT INTO ev SELECT g, '2020-01-01 01:00+00' FROM generate_series(1,12) g;
INSERT INTO dl SELECT g * 10 + r, g, 'r' || r, 'ok' FROM generate_series(1,12) g, generate_series(1,2) r;`

// TestStuckParents drains events of one age of which one cannot go, or one of whose children cannot: the others do, and
// the report names what keeps it.
func TestStuckParents(t *testing.T) {
	t.Parallel()
	veto := func(table, id string) string {
		return fmt.Sprintf(`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = %s THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION keep()`, id, table)
	}
	pins := func(table, id, more string) string {
		return fmt.Sprintf(`CREATE TABLE pins (at int, CONSTRAINT pinned FOREIGN KEY (at) REFERENCES %s%s); CREATE INDEX ON pins (at); INSERT INTO pins VALUES (%s)`, table, more, id)
	}
	for _, c := range []struct {
		name, sql, constraint, table string
		children                     int // removed
		left                         string
	}{
		{"a trigger on the parent", veto("ev", "7"), "veto", "public.ev", 24, "7"},
		{"a trigger on a child", veto("dl", "72"), "veto", "public.dl", 23, "7:72ok"},
		{"a foreign key to the parent", pins("ev", "7", ""), "pinned", "public.pins", 22, "7:71ok,72ok"},
		{"a deferred foreign key to the parent", pins("ev", "7", " DEFERRABLE INITIALLY DEFERRED"), "pinned", "public.pins", 22, "7:71ok,72ok"},
		{"a foreign key to a child", pins("dl", "72", ""), "pinned", "public.pins", 22, "7:71ok,72ok"},
	} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyed %t", c.name, keyed), func(t *testing.T) {
				t.Parallel()
				r := outboxRace(t)
				if !keyed {
					r = unkeyedOutbox(t)
				}
				r.Exec(t, family12+c.sql)
				again, pinned := family12, strings.Index(c.sql, "INSERT INTO pins")
				if pinned > 0 {
					again += c.sql[pinned:]
				}
				for _, limit := range []int{1, 5, 100} {
					r.Exec(t, again)
					r.sweep.Batch.Limit = max(limit, 3)
					s := r.sweeper(t, Options{OneSweeper: true})
					for pass, removed := range []int{11, 0} {
						rep := s.drain(t.Context(), drain.Bounds{Limit: limit}).must(t)
						children := map[bool]int{true: c.children}[pass == 0]
						same(t, fmt.Sprintf("drain %d at %d", pass+1, limit), []any{rep.Stop, rep.Removed, rep.Children, rep.Stuck, rep.Moved, rep.Locked, rep.Held}, []any{drain.StopStuck, removed, children, 1, 0, 0, 0})
						same(t, "what keeps it", rep.Blocked, []pruner.Block{{Constraint: c.constraint, Table: c.table, Rows: 1}})
						same(t, "left", r.leftNow(t), c.left)
						if rep.Batches > 60 {
							t.Errorf("it took %d batches", rep.Batches)
						}
					}
				}
			})
		}
	}
}

// TestStuckBesideHeld drains events of one age of which many are owed and one cannot go: the search for that one by halves
// does not give up the others, whether an index orders them or not.
func TestStuckBesideHeld(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{true, false} {
		t.Run(fmt.Sprintf("keyed %t", keyed), func(t *testing.T) {
			t.Parallel()
			r := outboxRace(t)
			if !keyed {
				r = unkeyedOutbox(t)
			}
			r.Exec(t, family12+`INSERT INTO ev SELECT g, '2020-01-01 01:00+00' FROM generate_series(-40, -1) g; INSERT INTO dl SELECT g, g, 'r', 'pending' FROM generate_series(-40, -1) g;
CREATE TABLE pins (at int, CONSTRAINT pinned FOREIGN KEY (at) REFERENCES ev); CREATE INDEX ON pins (at); INSERT INTO pins VALUES (7)`)
			rep := r.sweeper(t, Options{}).drain(t.Context(), drain.Bounds{Limit: 20}).must(t)
			same(t, "the drain", []any{rep.Stop, rep.Removed, rep.Children, rep.Stuck, rep.Held}, []any{drain.StopStuck, 11, 22, 1, 40})
			same(t, "what keeps it", rep.Blocked, []pruner.Block{{Constraint: "pinned", Table: "public.pins", Rows: 1}})
		})
	}
}

// TestStuckInChunks drains a parent that is emptied in chunks, and one row of which cannot go.
func TestStuckInChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, left string }{
		{"a trigger on a child", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 50 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON dl FOR EACH ROW EXECUTE FUNCTION keep()`, "2:1"},
		{"a trigger on every child", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.ev = 2 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON dl FOR EACH ROW EXECUTE FUNCTION keep()`, "2:100"},
		{"a trigger on the parent", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 2 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON ev FOR EACH ROW EXECUTE FUNCTION keep()`, "2:0"},
		{"a foreign key to a child", "CREATE TABLE pins (dl int REFERENCES dl); INSERT INTO pins VALUES (50)", "2:51"},
	} {
		for _, keyset := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyset %t", c.name, keyset), func(t *testing.T) {
				t.Parallel()
				r := wide(t, true)
				if !keyset {
					r.Exec(t, "ALTER TABLE dl DROP CONSTRAINT dl_ev_rcv_key; CREATE INDEX ON dl (ev)")
				}
				r.Exec(t, c.sql)
				s := r.sweeper(t, Options{})
				for pass, removed := range []int{2, 0} {
					rep := s.drain(t.Context(), drain.Bounds{Limit: 20}).must(t)
					same(t, fmt.Sprintf("drain %d", pass+1), []any{rep.Stop, rep.Removed, rep.Stuck, rep.Moved, rep.Locked, rep.Held}, []any{drain.StopStuck, removed, 1, 0, 0, 0})
					if keyset || !strings.Contains(c.name, "trigger on a child") {
						same(t, "left", r.leftNow(t), c.left)
					}
					if rep.Batches > 60 {
						t.Errorf("it took %d batches", rep.Batches)
					}
				}
			})
		}
	}
}

// TestLockedChild drains beside a session that holds one child and does not let go: its parent stays, whole, and the others go.
func TestLockedChild(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{true, false} {
		t.Run(fmt.Sprintf("keyed %t", keyed), func(t *testing.T) {
			t.Parallel()
			r := outboxRace(t)
			if !keyed {
				r = unkeyedOutbox(t)
			}
			r.sweep.Timeouts.Lock = 30 * time.Millisecond
			r.Exec(t, family12)
			s, holder := r.sweeper(t, Options{}), r.Conn(t)
			mustExec(t, holder, begin+"SELECT FROM dl WHERE id = 72 FOR UPDATE")
			_, err := s.prune(t.Context()).end(t)
			if !as[*pruner.LockTimeoutError](err) {
				t.Fatalf("a batch beside a locked child ended with %v", err)
			}
			rep := s.drain(t.Context(), drain.Bounds{Limit: 50}).must(t)
			same(t, "the drain", []any{rep.Stop, rep.Err, rep.Removed, rep.Children, rep.Locked, rep.Moved, rep.Stuck}, []any{drain.StopLocked, error(nil), 11, 22, 1, 0, 0})
			same(t, "left", r.leftNow(t), "7:71ok,72ok")
			mustExec(t, holder, "COMMIT")
			rep = s.drain(t.Context(), drain.Bounds{}).must(t)
			same(t, "the next drain", []any{rep.Stop, rep.Removed, rep.Children, rep.Locked}, []any{drain.StopDrained, 1, 2, 0})
		})
	}
	t.Run("in a chunk", func(t *testing.T) {
		t.Parallel()
		r := wide(t, true)
		r.sweep.Timeouts.Lock = 30 * time.Millisecond
		s, holder := r.sweeper(t, Options{}), r.Conn(t)
		mustExec(t, holder, begin+"SELECT FROM dl WHERE id = 50 FOR UPDATE")
		rep := s.drain(t.Context(), drain.Bounds{Limit: 20}).must(t)
		same(t, "the drain", []any{rep.Stop, rep.Err, rep.Removed, rep.Children, rep.Locked, rep.Moved, rep.Stuck}, []any{drain.StopLocked, error(nil), 2, 51, 1, 0, 0})
		same(t, "left", r.leftNow(t), "2:51")
		mustExec(t, holder, "COMMIT")
		rep = s.drain(t.Context(), drain.Bounds{Limit: 20}).must(t)
		same(t, "the next drain", []any{rep.Stop, rep.Removed, rep.Children, rep.Locked}, []any{drain.StopDrained, 1, 51, 0})
	})
}

// TestLockedChildTable drains beside a session that has locked a whole table of children: the drain stops and names it.
func TestLockedChildTable(t *testing.T) {
	t.Parallel()
	r := outboxRace(t)
	r.sweep.Timeouts.Lock = 30 * time.Millisecond
	s, holder := r.sweeper(t, Options{}), r.Conn(t)
	mustExec(t, holder, begin+"LOCK TABLE dl IN ACCESS EXCLUSIVE MODE")
	_, err := s.prune(context.Background()).end(t)
	var late *pruner.LockTimeoutError
	if !errors.As(err, &late) || late.Table != "public.dl" || late.CanSkip {
		t.Errorf("the batch ended with %v", err)
	}
	mustExec(t, holder, "COMMIT")
	same(t, "left", r.leftNow(t), allOfOutbox)
}
