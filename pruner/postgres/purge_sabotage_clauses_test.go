package postgres

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
)

var purgeSpellings = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\bheld\d+\b`), "held"},
	{regexp.MustCompile(`\b([tcurl])\d+\b`), "$1"},
}

func purgeClauses() []purgeClause {
	each, vetoed := eachOnce("each row is examined once", "", nil, 7), eachOnce("each row is examined once, and some stay", vetoes, map[string]int{"runs": 6, "marks": 6, "logs": 6, "parts": 6, "lines": 3, "orders": -1}, 4)
	few := eachOnce("each row is examined once, all of them by one batch", "", nil, 1000)
	pick := func(name, query string, edit func(string) string, v purgeVictim) purgeClause {
		return purgeClause{strings.TrimSuffix("pick, "+query, ", ") + ": " + name, "pick", inQuery(query, edit), v}
	}
	var cs []purgeClause
	add := func(c ...purgeClause) { cs = append(cs, c...) }
	add(
		pick("the gate", "gate", re(`pg_try_advisory_xact_lock\(\S+\)`, "true"), shut),
	)
	for _, q := range []string{"seen", "page"} {
		add(
			pick("gated", q, re(`(?m)^     AND \(SELECT g\.ok FROM gate g\)$`, ""), shut),
			pick("whose, from", q, re(`e\."tenant_id" >= (\S+)`, "($1) IS NOT NULL"), each),
			pick("whose, to", q, re(`e\."tenant_id" <= (\S+)`, "($1) IS NOT NULL"), few),
			pick("the cursor", q, re(`\(e\."tenant_id", e\."id"\) > (\([^\n]*?\))  --`, "(e.\"tenant_id\", e.\"id\") >= $1  --"), vetoed),
			pick("to the edge", q, re(`\((e\."tenant_id"), e\."id"\) <= \((\S+), ([^\n]*?)\)  --`, "$1 <= $2 AND ($3) IS NOT NULL  --"), edges),
			pick("in order", q, re(`(?m)^   ORDER BY e\."tenant_id", e\."id"`, `   ORDER BY md5(e."id"::text)`), each),
			pick("ONLY", q, re("FROM ONLY", "FROM"), purgedHeirs),
		)
	}
	add(
		pick("whose", "edge", re(`l\."tenant_id" <= (\S+)`, "($1) IS NOT NULL"), edges),
		pick("from behind", "edge", re(`ORDER BY l\."tenant_id" DESC, l\."id" DESC`, `ORDER BY l."tenant_id" DESC, l."id"`), edges),
		pick("the tenant from behind", "edge", re(`ORDER BY l\."tenant_id" DESC, `, `ORDER BY l."tenant_id", `), edges),
		pick("the limit", "seen", re(`(?m)LIMIT (\S+)$`, "LIMIT 2 * $1"), each),
		pick("the rows looked at", "page", re(`(?m)LIMIT (\S+)$`, "LIMIT 2 * $1"), each),
		pick("whose, by index", "seen", re(`WHERE e\."tenant_id" = (\S+)`, "WHERE ($1) IS NOT NULL"), each),
		pick("passed over", "seen", re(`AND NOT \(e\.ctid = ANY \((\S+)\)\)`, "AND ($1) IS NOT NULL"), vetoed),
		pick("from this page", "seen", re(`e\.ctid > (\S+)`, "($1) IS NOT NULL"), vetoed),
		pick("to this page", "seen", re(`e\.ctid < (\S+)`, "($1) IS NOT NULL"), fewPages),
		pick("whose, in pages", "seen", re(`\(e\."org" = (\S+)\) IS TRUE`, "($1) IS NOT NULL"), each),

		pick("the one row: which", "page", re(`AND e\."id" = (\S+)`, "AND ($1) IS NOT NULL"), purgeChunks),
		pick("the key", "found", re(`WHERE x\."order_id" = p\.r0`, "WHERE true"), each),
		pick("the grandchild's key", "found", re(`WHERE x\."line_id" = c1\.r0`, "WHERE true"), each),
		pick("one more than fit", "found", re(`LIMIT (\S+) \+ 1`, "LIMIT $1"), each),
		pick("of one", "found", re(`(?m)LIMIT (\S+)$`, "LIMIT 2 * $1"), each),
		pick("after the last", "found", re(`\(x\."id"\) > \((\S+)\)`, "($1) IS NOT NULL"), purgeChunks),
		pick("in order", "found", re(`ORDER BY x\."id"`, `ORDER BY md5(x."id"::text)`), purgeChunks),
		pick("passed over", "found", re(`WHERE NOT \(c\.tid = ANY \((\S+)\)\)`, "WHERE ($1) IS NOT NULL"), vetoed),
		pick("ONLY", "found", re("FROM ONLY", "FROM"), purgedHeirs),
		pick("where it is cut", "cut", re(`> (\S+)`, "> 1000 * $1"), each),
		pick("what is cut", "seen", re(`WHERE f\.n < cut\.n`, "WHERE f.n <= cut.n"), each),

		pick("the rows' addresses", "held0", re(`d\.ctid = ANY \(ARRAY\(SELECT s\.t0 FROM seen s\)\)`, "d.ctid <> '(0,0)'"), lockedElsewhere),
		pick("they are held", "held0", re(`FOR SHARE SKIP LOCKED`, ""), racing("a child's row moves to another tenant")),
		pick("nobody is waited for", "held0", re(`FOR SHARE SKIP LOCKED`, "FOR SHARE"), racing("a child's row moves to another tenant")),
		pick("they are held", "held1", re(`FOR SHARE SKIP LOCKED`, ""), grandchildren),
		pick("the rows' addresses", "mine", re(`d\.ctid = ANY \(ARRAY\(SELECT s\.tid FROM seen s\)\)`, "d.ctid <> '(0,0)'"), each),
		pick("the rows' addresses, of a child", "mine", re(`d\.ctid = ANY \(ARRAY\((SELECT s\.tid FROM seen s WHERE [^\n]*)\)\)`, "d.ctid <> '(0,0)'"), each),
		pick("by held rows", "mine", re(`WHERE \(s\.t0 IN \(SELECT h\.tid FROM held0 h\)\) IS TRUE`, "WHERE true"), racing("a child's row moves to another tenant")),
		pick("by held rows, of a row's row", "mine", re(`AND \(s\.t1 IN \(SELECT h\.tid FROM held1 h\)\) IS TRUE`, ""), grandchildren),
		pick("locked", "mine", re(`FOR UPDATE SKIP LOCKED`, ""), racing("a row that another tenant's begins to refer to")),
		pick("nobody is waited for", "mine", re(`FOR UPDATE SKIP LOCKED`, "FOR UPDATE"), racing("a row that another tenant's begins to refer to")),
		pick("against new references", "mine", re(`FOR UPDATE SKIP LOCKED`, "FOR NO KEY UPDATE SKIP LOCKED"), newReference),
		pick("ONLY", "mine", re("FROM ONLY", "FROM"), purgedHeirs),

		pick("examined", "", re(`\(SELECT count\(\*\) FROM seen s\) AS examined`, "0 AS examined"), each),
		pick("picked, counted", "", re(`\(SELECT count\(\*\) FROM mine m\) AS picked`, "0 AS picked"), each),
		pick("stepped over, counted", "", re(`\(SELECT count\(\*\) FROM seen m\) AS picked`, "0 AS picked"), stepped),
		pick("who has the gate", "", re(`\(SELECT g\.ok FROM gate g\) AS ok`, "true AS ok"), shut),
		pick("what is picked", "", re(`\(SELECT coalesce\(array_agg\(m\.tid\), '\{\}'\)::text FROM mine m\)`, "'{}'"), each),
		pick("what is passed", "", re(`set_config\('prunectl.passed', \(SELECT coalesce\(array_agg\(s\.tid\), '\{\}'\)::text FROM seen s\), true\)`, "set_config('prunectl.passed', '{}', true)"), vetoed),
		pick("the last key", "", re(`FROM seen s ORDER BY s\.k0 DESC LIMIT 1`, "FROM seen s ORDER BY s.k0 LIMIT 1"), vetoed),
		pick("the last key of one", "", re(`FROM seen s ORDER BY s\.l0 DESC LIMIT 1`, "FROM seen s ORDER BY s.l0 LIMIT 1"), purgeChunks),
		pick("the last address", "", re(`max\(s\.tid\)`, "min(s.tid)"), vetoed),
		pick("the last of the page", "", re(`FROM page p, cut WHERE p\.n < cut\.n ORDER BY p\.n DESC LIMIT 1`, "FROM page p, cut WHERE p.n < cut.n ORDER BY p.n LIMIT 1"), purgeChunks),
		pick("that is done", "", re(`FROM page p, cut WHERE p\.n < cut\.n ORDER`, "FROM page p, cut WHERE p.n <= cut.n ORDER"), each),
		pick("more than fit, the first", "", re(`WHERE p\.n = 1 AND cut\.n = 1`, "WHERE cut.n = 1 ORDER BY p.n DESC LIMIT 1"), purgeChunks),
		pick("the rest of the page", "", re(`\(SELECT count\(\*\) FROM page p WHERE p\.n >= \(SELECT c\.n FROM cut c\)\) AS rest`, "0 AS rest"), each),
		pick("the length of the page", "", re(`\(SELECT count\(\*\) FROM page p\) AS page`, "0 AS page"), each),
		pick("the last key when it begins", "", re(`\(SELECT to_json\(ARRAY\[e\.k0::text\]::text\[\]\)::text FROM edge e\) AS ends`, "NULL::text AS ends"), edges),
		pick("the pages of the table", "", re(`pg_relation_size\(\S+\) / current_setting\('block_size'\)::bigint AS ends`, "1::bigint AS ends"), fewPages),
		pick("the room of the table", "", re(`pg_relation_size\(\S+\) AS ends`, "0::bigint AS ends"), each),

		purgeClause{"delete: what was picked", "delete", re(`d\.ctid = ANY \(current_setting\('prunectl\.picked'\)::tid\[\]\)`, "true"), each},
		purgeClause{"delete: nothing refers to it", "delete", re(`(?m)^   AND \(SELECT true FROM ONLY "public"\."returns" [^\n]*\n`, ""), racing("a row that another tenant's refers to")},
		purgeClause{"delete: no child refers to it", "delete", re(`(?m)^   AND \(SELECT true FROM ONLY "public"\."lines" [^\n]*\n`, ""), racing("a child has begun to refer to a row")},
		purgeClause{"delete: the key of what refers", "delete", re(`c\."order_id" = d\."id"`, "true"), each},
		purgeClause{"delete: but itself", "delete", re(` AND c\.ctid <> d\.ctid`, ""), turning},
		purgeClause{"delete: ONLY", "delete", re("DELETE FROM ONLY", "DELETE FROM"), purgedHeirs},
		purgeClause{"delete: ONLY, what refers", "delete", re("SELECT true FROM ONLY", "SELECT true FROM"), purgedHeirs},

		purgeClause{"after: what is left", "after", re(`SELECT count\(\*\) AS left`, "SELECT 0 AS left"), saysWhy},
		purgeClause{"after: of what was picked", "after", re(`p\.ctid = ANY \(current_setting\('prunectl\.picked'\)::tid\[\]\)`, "true"), each},
		purgeClause{"after: by the first key", "after", re(`count\(\*\) FILTER \(WHERE x\.by = 1\)`, "0"), saysWhy},
		purgeClause{"after: by which key", "after", re(`count\(\*\) FILTER \(WHERE x\.by = 2\)`, "0"), saysWhy},
		purgeClause{"after: the key", "after", re(`c\."order_id" = p\."id"`, "true"), saysWhy},
		purgeClause{"after: referred to", "after", re(`IS NOT NULL THEN`, "IS NULL THEN"), saysWhy},
		purgeClause{"after: but by itself", "after", re(` AND c\.ctid <> p\.ctid`, ""), selfVetoed},
		purgeClause{"after: what was passed", "after", re(`coalesce\(array_agg\(d\.ctid\)::text, '\{\}'\)`, "'{}'"), vetoed},
		purgeClause{"after: ONLY", "after", re(`FROM ONLY ("public"\."\w+") p`, "FROM $1 p"), purgedHeirs},

		purgeClause{"look: whose", "look", re(`e\."tenant_id" = (\S+)`, "($1) IS NOT NULL"), each},
		purgeClause{"look: the grandchild's key", "look", re(`x\."line_id" = c1\.r0`, "true"), each},
		purgeClause{"look: the key", "look", re(`x\."order_id" = p\.r0`, "true"), each},
		purgeClause{"look: ONLY", "look", re("FROM ONLY", "FROM"), purgedHeirs},

		purgeClause{"settings: it is durable", "settings", re(`ELSE 'on' END`, "ELSE current_setting('synchronous_commit') END"), inForceOf},
		purgeClause{"settings: no less durable", "settings", re(`WHEN 'remote_apply' THEN 'remote_apply'`, "WHEN 'remote_apply' THEN 'on'"), inForceOf},
		purgeClause{"settings: row security", "settings", re(`(?m)^     , set_config\('row_security'[^\n]*\n`, ""), inForceOf},
		purgeClause{"settings: those of the purge", "settings", re(`(?m)^     , set_config\('app.purging'[^\n]*\n`, ""), inForceOf},
		purgeClause{"settings: the statement timeout", "settings", re(`set_config\('statement_timeout', `, "set_config('app.none', "), inForceOf},
		purgeClause{"settings: the lock timeout", "settings", re(`set_config\('lock_timeout', `, "set_config('app.none', "), inForceOf},
	)
	return cs
}

// purgeLeftOut are the clauses without an edit, and why.
var purgeLeftOut = []purgeExemption{
	{"settings", "enable_|jit|plan_cache_mode|work_mem|max_parallel", "a plan, which TestPlansOfPurges holds"},
	{"", "MATERIALIZED", "a plan; what it answers is the same"},
	{"", "OFFSET 0", "a plan, which TestPlansOfPurges holds: each probe stays one"},
	{"pick", `^page: \(e\.c = \$\) IS TRUE`, "the one row that a cursor names: it is asked again as that is locked"},
	{"pick", `^(?:held0|mine): .*IS TRUE`, "what is asked again as a row is locked: one that changed has another address, at which nothing is due; on servers whose minor release does not know that it is what keeps such a row"},
	{"delete", `IS TRUE|^u\.c|FROM ONLY t u$`, "the same: what was picked is locked, and so is what makes it the tenant's"},
	{"", "LIMIT 1", "of a query that is read as one value: the server refuses a second row"},
	{"pick", `^held\d: FROM ONLY`, "an heir's row at the address of one is locked for nothing, and decides nothing"},
	{"after", "FROM ONLY t c", "it names what the delete was kept by, which asks of ONLY"},
	{"pick", "FROM ONLY t l$", "an heir's last row: the pass ends a little later"},
	{"look", "^LIMIT", "a reading less: what is counted is cut to the bound"},
	{"pick", `cut\.n = 1`, "a cost: without it each row of a page is emptied by itself"},
	{"pick", `SELECT s\.t FROM seen`, "a lock less, of rows that no row of the batch goes by"},
	{"pick", `^\(e\.c\) > \(\$\)$`, "the key of the tenants' own table: there is one row at most"},
	{"after", `prunectl\.passed|FROM ONLY t d`, "a longer list of addresses passes over the same rows"},
	{"", "Notes$", "a name with -- in it ends the line for whoever reads clauses"},
	{"settings", "remote_apply|app.purging|synchronous_commit", "an edit takes each out, in another spelling"},
}

// TestSabotagePurges takes each clause of the statements of a purge out in turn, and has a named check notice. A clause that
// no edit takes out, and that no reason leaves out, fails it too. It keeps its part of docs/sabotage.md.
func TestSabotagePurges(t *testing.T) {
	if testing.Short() {
		t.Skip("what a clause is there for does not depend on the server")
	}
	db := pgtest.New(t)
	admin := db.Conn(t)
	mustExec(t, admin, "SET lock_timeout = '10s'")
	sound := map[string]seen{} // what each victim runs with nothing taken out
	taken := map[piece]bool{}
	for _, c := range purgeClauses() {
		t.Run(c.name, func(t *testing.T) {
			if sound[c.victim.name] == nil {
				ran := seen{}
				if err := c.victim.run(t.Context(), &purgeBench{t: t, db: db, admin: admin, seen: ran}); err != nil {
					t.Fatalf("%q is red with nothing taken out: %v", c.victim.name, err)
				}
				sound[c.victim.name] = ran
			}
			b := &purgeBench{t: t, db: db, admin: admin, clause: c, taken: taken}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a pass that does not end is noticed too
			defer cancel()
			err := c.victim.run(ctx, b)
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
	universe := purgePieces(t)
	for _, missed := range purgeClausesMissed(universe, taken) {
		t.Errorf("no edit takes out %s", missed)
	}
	if t.Failed() {
		return // the report is of what holds
	}
	r, stale := purgeReport(universe, sound)
	for _, x := range stale {
		t.Errorf("the reason for %s in %q is of no clause that is left over", x.clause, x.statement)
	}
	if err := r.Keep(filepath.Join("..", "..", "docs", "sabotage.md"), *update); err != nil && !t.Failed() {
		t.Error(err)
	}
}
