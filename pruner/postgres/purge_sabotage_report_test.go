package postgres

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	clausetext "github.com/prunectl/prunectl/internal/sabotage"
)

// purgeExemption is a clause that no edit takes out, by how the statement's name begins and by a pattern of its text, alone or
// with the query in front, and why.
type purgeExemption struct{ statement, clause, why string }

// fits reports whether the clause is such a one.
func (x purgeExemption) fits(p piece) bool {
	clause := regexp.MustCompile(x.clause)
	return strings.HasPrefix(p.form, x.statement) && (clause.MatchString(p.Text) || clause.MatchString(p.Part+": "+p.Text))
}

// purgePieces are the clauses of all statements of all specimens. The forms of the pick are one statement.
func purgePieces(t *testing.T) map[piece]bool {
	t.Helper()
	all := map[piece]bool{}
	conn := purgeDB.New(t).Conn(t)
	for _, sp := range purgeSpecimens() {
		for name, st := range purgeStatementsOf(sp.open(t, Conn(conn))) {
			name, _, _ = strings.Cut(strings.Replace(name, "step", "pick", 1), "_")
			for _, p := range clausetext.Pieces(st.sql, spelledPurge) {
				all[piece{name, p}] = true
			}
		}
	}
	return all
}

// purgeClausesMissed are the clauses that no edit takes out and no reason leaves out.
func purgeClausesMissed(universe, taken map[piece]bool) (missed []string) {
	for p := range universe {
		if !taken[p] && !slices.ContainsFunc(purgeLeftOut, func(x purgeExemption) bool { return x.fits(p) }) {
			missed = append(missed, p.where()+": "+p.Text)
		}
	}
	slices.Sort(missed)
	return missed
}

// purgeReport is the report of the edits, each with what it takes out of the statements that its victim runs, and of the
// clauses that are left out. The others are the reasons that are of no clause.
func purgeReport(universe map[piece]bool, sound map[string]seen) (r clausetext.Report, stale []purgeExemption) {
	r.Package = "pruner/postgres, purges"
	have := map[piece]bool{}
	for _, c := range purgeClauses() {
		e := newEdited(c.name, c.victim.name)
		for st := range sound[c.victim.name] {
			if st[0] != c.step {
				continue
			}
			edited := c.edit(st[1])
			for _, p := range clausetext.Taken(st[1], edited, spelledPurge) {
				e.taken[piece{st[0], p}] = true
			}
			for _, p := range clausetext.Taken(edited, st[1], spelledPurge) {
				e.given[piece{st[0], p}] = true
			}
		}
		maps.Copy(have, e.taken)
		r.Rows = append(r.Rows, e.row())
	}
	used := make([]bool, len(purgeLeftOut))
	for p := range universe {
		if have[p] {
			continue
		}
		why := ""
		for i, x := range purgeLeftOut {
			if x.fits(p) {
				used[i], why = true, cmp.Or(why, x.why)
			}
		}
		r.Exempt = append(r.Exempt, clausetext.Exemption{Statement: p.where(), Clause: p.Text, Why: why})
	}
	for i, x := range purgeLeftOut {
		if !used[i] {
			stale = append(stale, x)
		}
	}
	slices.SortFunc(r.Exempt, func(a, b clausetext.Exemption) int {
		return cmp.Or(cmp.Compare(a.Statement, b.Statement), cmp.Compare(a.Clause, b.Clause))
	})
	return r, stale
}
