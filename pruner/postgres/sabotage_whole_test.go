package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	clausetext "github.com/prunectl/prunectl/internal/sabotage"
)

// sabotaged is what the two tests before this one saw their victims run.
var sabotaged struct{ ordinary, parents map[string]seen }

// exempt are clauses that no test misses.
var exempt = []exemption{
	{"batch|parents' batch", "mine", `coalesce.*|d\.c .*`, "a second lock behind the address: a row that changed has another one (on servers whose minor release does not know that, it is what keeps such a row)"},
	{"parents' chunk", "gone", `\(d\.c = v\) IS TRUE`, "a second lock behind the address, as in the delete of all children, where it has its victim"},
	{"after", "", `d\.c < \$`, "a row that is the same version has the same age"},
	{"parents' after", "", `FROM ONLY t d`, "an address more in the list of those that are passed passes over nothing"},
	{"parents' after", "", `o\.c NOT = v`, "a child that is left says that the parent moved, owed or not"},
	{"batch|look", "a row", `e\.c < \$`, "the range ends there already; it stands for windows that are shorter than the floor, which have their victim"},
	{"batch|parents' batch", "gate|counted|cut|done|fit|judged|mine|seen", "MATERIALIZED", "more than one query reads it, or it locks: the server makes it once in any case"},
	{"parents' batch", "keys", "MATERIALIZED", "one query reads it, through a join that asks for each owner once in any case"},
	{"look", "seen|keys|owners", "MATERIALIZED", "a look that is put together with what reads it says the same"},
	{"parents' chunk", "next", "MATERIALIZED", "two queries read it"},
	{"look", "owners", `k\.candidates > 0|l\.got IS NULL`, "saves probes: a look locks nothing"},
	{"look", "seen", `coalesce\(e\.c = v|e\.c IS NOT TRUE`, "saves the probe of a row that is kept anyway"},
	{"look", "seen", "LIMIT n", "bounds what is read to name a state"},
	{"parents' batch", "seen", `e\.n <= (\$|1)`, "saves the probe of the one parent that is read beyond those that are looked at"},
	{"parents' batch", "keys", `e\.n <= 1`, "a chunk looks at one parent, so that all of its rows are the first"},
	{"parents' batch", "", `f\.(got|over)`, "says again what the cut and the count say: only what was got is counted, and the cut is where there is no room"},
	{"parents' child|parents' chunk", "|next", `c\.c = v`, "spares waiting for a row whose state is asked again under its lock"},
	{"parents' chunk", "next", `\(c1\.c\) >= \(\$\)`, "saves walking the dead entries of the chunks before"},
	{"parents' chunk|parents' after", "next|", "OFFSET 0", "keeps the planner from another way to the same rows"},
	{"parents' chunk", "", `set_config\('prunectl.empty', 'no', true\)`, "the probe for children keeps the parent all the same"},
	{"parents' keys", "", `set_config\('enable_(hashjoin|nestloop)'.*`, "each join is a LATERAL with OFFSET 0, which is nothing else"},
}

// exemption is a clause, by what fits its form, the query and its text, and why it is there although no test misses it.
type exemption struct{ form, part, text, why string }

func (x exemption) fits(p piece) bool {
	whole := func(pattern, text string) bool { return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text) }
	return whole(x.form, p.form) && whole(x.part, p.Part) && whole(x.text, p.Text)
}

// TestSabotageIsWhole fails for a clause of any statement of any specimen that no edit takes out, and that is not exempt;
// and for an exemption of a clause that is not there, or that an edit does take out. The edits themselves are run by
// TestSabotage and TestSabotageParents.
func TestSabotageIsWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("what a clause is there for does not depend on the server")
	}
	const together = "it needs what TestSabotage and TestSabotageParents saw: run them together and whole, with -run Sabotage"
	for _, c := range clauses() {
		if sabotaged.ordinary[c.victim.name] == nil {
			t.Fatalf("%s; nothing was seen of %q", together, c.victim.name)
		}
	}
	for _, c := range parentClauses() {
		if sabotaged.parents[c.victim.name] == nil {
			t.Fatalf("%s; nothing was seen of %q", together, c.victim.name)
		}
	}
	universe, others := piecesOf(t)
	all := edits(others)
	have := map[piece]bool{}
	for _, e := range all {
		maps.Copy(have, e.taken)
	}
	var missing []string
	var excused []clausetext.Exemption
	used := make([]bool, len(exempt))
	for p, from := range universe {
		if have[p] {
			continue
		}
		if i := slices.IndexFunc(exempt, func(x exemption) bool { return x.fits(p) }); i >= 0 {
			used[i] = true
			excused = append(excused, clausetext.Exemption{Statement: p.where(), Clause: p.Text, Why: exempt[i].why})
			continue
		}
		missing = append(missing, fmt.Sprintf("%s: %s  (%s)", p.where(), p.Text, from))
	}
	slices.Sort(missing)
	for _, m := range missing {
		t.Errorf("no edit takes this out, and it is not exempt: %s", m)
	}
	for i, x := range exempt {
		if !used[i] {
			t.Errorf("the exemption of %s in %s, %s is of no clause that is left over", x.text, x.form, x.part)
		}
	}
	if t.Failed() {
		return // the report is of what holds
	}
	r := clausetext.Report{Package: "pruner/postgres", Exempt: excused}
	for _, e := range all {
		r.Rows = append(r.Rows, e.row())
	}
	for _, s := range isolationSabotages {
		r.Rows = append(r.Rows, clausetext.Row{Statement: s.name, Victim: "the orders of isolation spec " + s.spec})
	}
	slices.SortFunc(r.Exempt, func(a, b clausetext.Exemption) int {
		return cmp.Or(cmp.Compare(a.Statement, b.Statement), cmp.Compare(a.Clause, b.Clause))
	})
	if err := r.Keep(filepath.Join("..", "..", "docs", "sabotage.md"), *update); err != nil {
		t.Error(err)
	}
}

// edits are what each edit takes out of what its victim runs.
func edits(others [][2]string) (all []edited) {
	form := func(form, sql string) string {
		if strings.Contains(sql, "judged AS") {
			return "parents' batch"
		}
		return form
	}
	for _, c := range clauses() {
		e := newEdited(c.name, c.victim.name)
		for st := range sabotaged.ordinary[c.victim.name] {
			switch sql := st[1]; {
			case st[0] == "batch" && c.edit != nil:
				if c.under != nil {
					sql = c.under(sql)
				}
				e.in(form(st[0], sql), sql, c.edit(sql))
			case st[0] != "batch" && c.look != nil:
				e.in(st[0], sql, c.look(sql))
			}
		}
		for _, st := range others {
			if c.wire[0] != "" {
				e.in(st[0], st[1], strings.ReplaceAll(st[1], c.wire[0], c.wire[1]))
			}
		}
		if strings.Contains(c.wire[0], `"thing"`) { // of the victim's own table, and so of no specimen
			e.in("after", c.wire[0], c.wire[1])
		}
		all = append(all, e)
	}
	for _, c := range parentClauses() {
		e := newEdited(c.name, c.victim.name)
		for st := range sabotaged.parents[c.victim.name] {
			name := strings.TrimPrefix(st[0], "parents' ")
			if c.edit != nil && (c.step == "" && name == "batch" || c.step != "" && strings.HasPrefix(name, strings.ReplaceAll(c.step, "child_attempts", "child"))) {
				sql := st[1]
				if c.under != nil {
					sql = c.under(sql)
				}
				e.in("parents' "+formOf(name, false), sql, c.edit(sql))
			}
		}
		for _, st := range others {
			if c.wire[0] != "" {
				e.in(st[0], st[1], strings.ReplaceAll(st[1], c.wire[0], c.wire[1]))
			}
		}
		all = append(all, e)
	}
	return all
}
