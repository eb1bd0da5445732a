package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
)

// owedTables have 1,000 rows of 100 days ago and their deliveries: every tenth is owed, every tenth of the others held, and
// every fifth of an owner that is alive.
const owedTables = `
CREATE TABLE t (id bigint PRIMARY KEY, state text NOT NULL, at timestamptz NOT NULL, hold boolean, o_id bigint);
CREATE INDEX ON t (at, id);
CREATE TABLE o (id bigint PRIMARY KEY, status text NOT NULL);
CREATE TABLE c (id bigint PRIMARY KEY, t_id bigint, status text %s);
CREATE INDEX c_t ON c (t_id, id);
CREATE INDEX c_open ON c (t_id) WHERE %s;
INSERT INTO o VALUES (0, 'live'), (1, 'done');
INSERT INTO t SELECT g, CASE WHEN g %% 4 = 3 THEN 'open' ELSE 'done' END, now() - interval '100 days' + g * interval '1 second', g %% 10 = 1, least(g %% 5, 1) FROM generate_series(1, 1000) g;
INSERT INTO c SELECT g * 10 + d, g, CASE WHEN g %% 10 = 0 AND d = 2 THEN CASE WHEN g %% 20 = 0 THEN 'pending' ELSE 'claimed' END WHEN g %% 10 = 0 AND d = 3 THEN 'failed' ELSE 'done' END FROM generate_series(1, 1000) g, generate_series(1, 3) d;
`

// TestLooksAtOwedRows holds what the looks say of rows that are kept by rows that refer to them: once each, by the first
// reason there is, through an index, and with no probe for a row that is kept anyway.
func TestLooksAtOwedRows(t *testing.T) {
	key := []policy.ChildKey{{Parent: "id", Child: "t_id"}}
	public := func(name string) policy.Name { return policy.Name{Schema: "public", Table: name} }
	state := &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}
	owner := &policy.OwnerGuard{Table: public("o"), Key: []policy.KeyPair{{Target: "o_id", Owner: "id"}}, Column: "status", Terminal: policy.Texts("done")}
	byStatus := &policy.OwedGuard{Table: public("c"), Key: key, Column: "status", Terminal: policy.Texts("done", "dead")}
	single := &policy.OwedGuard{Table: public("c"), Key: key, Column: "status", Terminal: policy.Texts("done")}
	each := &policy.OwedGuard{Table: public("c"), Key: key}
	const open, openOrNull = "status NOT IN ('done', 'dead')", "status NOT IN ('done', 'dead') OR status IS NULL"
	for _, c := range []struct {
		name, null, where, change string
		guard                     policy.Guard
		probed                    int    // rows that are asked about
		index                     string // by which
		due                       int
		held                      string
	}{
		{"owed", "NOT NULL", open, "", policy.Guard{Owed: byStatus}, 1000, "c_open", 900, "owed claimed 50, owed failed 50"},
		{"owed, a state that can be null", "", openOrNull, "UPDATE c SET status = NULL WHERE t_id = 5; UPDATE c SET status = NULL WHERE t_id = 10 AND status = 'failed'", policy.Guard{Owed: byStatus}, 1000, "c_open", 899, "owed  1, owed claimed 50, owed failed 50"},
		{"owed by one state", "NOT NULL", "status <> 'done'", "", policy.Guard{Owed: single}, 1000, "c_open", 900, "owed claimed 50, owed failed 50"},
		{"owed by every row", "NOT NULL", open, "DELETE FROM c WHERE t_id % 2 = 0", policy.Guard{Owed: each}, 1000, "c_t", 500, "owed  500"},
		{"state, hold and owed", "NOT NULL", open, "", policy.Guard{State: state, Hold: "hold", Owed: byStatus}, 700, "c_open", 600, "hold  50, owed claimed 50, owed failed 50, state open 250"},
		{"owner and owed", "NOT NULL", open, "", policy.Guard{Owner: owner, Owed: byStatus}, 1000, "c_open", 800, "owed claimed 50, owed failed 50, owner live 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := pgtest.New(t)
			db.Exec(t, fmt.Sprintf(owedTables, c.null, c.where)+c.change)
			conn := db.Conn(t)
			mustExec(t, conn, "VACUUM ANALYZE")
			s := policy.Sweep{Name: "t", Table: public("t"), Age: "at", Window: policy.MustWindow(24 * time.Hour), Guard: c.guard}
			arms, err := Open(t.Context(), Conn(conn), s, Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, cutoff := arms[0], policy.CutoffAt(time.Now())
			p, err := a.Plan(t.Context(), cutoff, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			by, err := a.HeldBy(t.Context(), cutoff, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			held := 0
			for _, h := range by {
				got = append(got, fmt.Sprintf("%s %s %d", h.Reason, h.Value, h.Rows))
				held += h.Rows
			}
			if text := strings.Join(sorted(got), ", "); text != c.held || p.Held != held || p.Due != c.due || p.Examined != 1000 || p.InVain != 0 {
				t.Errorf("the plan is %+v, held by %s\nwant %d due, held by %s", p, text, c.due, c.held)
			}
			mustExec(t, conn, "BEGIN; "+a.readSettingsSQL())
			for name, st := range map[string]statement{"plan": a.planSQL(), "held": a.heldSQL()} {
				for _, fault := range lint(st) {
					t.Errorf("%s: %s\n%s", name, fault, st.sql)
				}
				for _, generic := range []bool{true, false} {
					pl := planner{conn, a}
					stmt := fmt.Sprintf("%s_%t", name, generic)
					if err := pl.prepare(t.Context(), stmt, st); err != nil {
						t.Fatal(err)
					}
					values := planValues(a, 10_000)
					values[argCutoff] = timestamptz(cutoff.Time().UnixMicro())
					e, err := pl.explain(t.Context(), "ANALYZE, FORMAT JSON", stmt, st, values, generic)
					if err != nil {
						t.Fatal(err)
					}
					probes := 0
					e.Plan.each(func(n *node, _ []*node) {
						if n.Relation != "c" {
							return
						}
						probes += n.Loops
						if n.Index != c.index || !regexp.MustCompile(`\(t_id = `).MatchString(n.Cond) {
							t.Errorf("%s, generic %t: c is read by %s through %q with %q", name, generic, n.Type, n.Index, n.Cond)
						}
					})
					if probes != c.probed {
						t.Errorf("%s, generic %t: %d probes; want %d", name, generic, probes, c.probed)
					}
				}
			}
			mustExec(t, conn, "ROLLBACK")
		})
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
