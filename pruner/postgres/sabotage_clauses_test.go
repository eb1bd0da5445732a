package postgres

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	clausetext "github.com/prunectl/prunectl/internal/sabotage"
)

// The engine renders its statements, so a clause is written in as many ways as there are sweeps. Here it is what is left
// of it without the names and values of one of them. Which clauses there are is read off the statements of the specimens;
// which of them an edit takes out is read off the statements that its victim runs.

// seen are the statements that a victim runs, by what they are.
type seen map[[2]string]bool

func (s seen) saw(form, sql string) {
	if s != nil {
		s[[2]string{form, sql}] = true
	}
}

// piece is a clause of a form of statement.
type piece struct {
	form string
	clausetext.Piece
}

func (p piece) where() string {
	if p.Part == "" {
		return p.form
	}
	return p.form + ", " + p.Part
}

var spellings = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`"(?:[^"]|"")*"\."(?:[^"]|"")*"`), "t"},                          // a table
	{regexp.MustCompile(`\b(\w+)\."(?:[^"]|"")*"`), "$1.c"},                              // a column
	{regexp.MustCompile(`\b([a-z])\.(?:age|at)\b`), "$1.at"},                             // one of our own
	{regexp.MustCompile(`\b(\w+)\.(tid|n|at|class|got|kids|over|owed|owes)_+`), "$1.$2"}, // one that had to give way to a column
	{regexp.MustCompile(`E?'(?:[^']|'')*'::[\w.]+|E'(?:[^']|'')*'`), "v"},                // a value
	{regexp.MustCompile(`\$\d+::\w+(?:\[\])?(?:::[\w.]+)*`), "$$"},                       // a parameter
	{regexp.MustCompile(`interval '\d+ \w+'`), "interval"},
	{regexp.MustCompile(`IN \(v(?:, v)*\)|= v\b`), "= v"},
	{regexp.MustCompile(`\bk\d+\b`), "k"},
	{regexp.MustCompile(`\(\(\((\w)\.c AT TIME ZONE v\) \+ \w\.c(?: \* interval)?\) AT TIME ZONE v\)`), "$1.c"}, // an expiry
	{regexp.MustCompile(`(\w+\.)(c|k)( DESC)?(?:, \w+\.(?:c|k)(?: DESC)?)+`), "$1$2$3"},                         // several columns
	{regexp.MustCompile(`\$, \$(?:, \$)*`), "$$, .."},
	{regexp.MustCompile(`(c\)) < (\(\$, \.\.)`), "$1 > $2"}, // the other way round, with the index
	{regexp.MustCompile(`LIMIT \d\d+`), "LIMIT n"},
	{regexp.MustCompile(`([ed]\.c) (<=|<>) interval(?: '0')?`), "$1 $2 v"}, // an own window that is an interval and no number
	{regexp.MustCompile(`([ed]\.c) >= interval`), "$1 > v"},
	{regexp.MustCompile(`([ed]\.c) < interval`), "$1 * interval < interval"},
}

// ofRow is a condition of a row by itself: classes of the renderer writes all of them, and each wherever a row is counted,
// picked or looked at, also the other way round.
var (
	ofRow  = regexp.MustCompile(`^[(]*(?:NOT [(]*)*(coalesce\([ed]\.c = v|[ed]\.c (?:IS |<= v|<> v|> v|>= v|< \$|< \(\$|\* interval).*?)(?:, false\)?)?[)]*$`)
	ofRows = map[string][]string{
		"batch": {"keys", "tally", "picked"}, "look": {"", "keys"}, "undated": {""}, "parents' batch": {"seen", "judged", "keys"},
	}
)

// canonical is a piece as it is counted.
func canonical(form string, p clausetext.Piece) piece {
	if m := ofRow.FindStringSubmatch(p.Text); m != nil {
		p.Text = m[1]
		if slices.Contains(ofRows[form], p.Part) && !(p.Part == "seen" && strings.Contains(p.Text, "$")) {
			p.Part = "a row"
		}
	}
	switch {
	case p.Part == "owners" && form != "look":
		form = "batch" // one text
	case p.Part == "found":
		p.Part = "seen" // as it is called where nothing is owed
	}
	return piece{form, p}
}

// spelled is a line of a statement as it would be written for any sweep.
func spelled(line string) string {
	for _, s := range spellings {
		line = s.what.ReplaceAllString(line, s.as)
	}
	return line
}

// formOf names the form of one of an arm's statements.
func formOf(name string, first bool) string {
	switch name, _, _ = strings.Cut(strings.ReplaceAll(name, " ", "_"), "_"); {
	case first:
		return "batch"
	case name == "plan" || name == "held":
		return "look"
	default:
		return name
	}
}

// piecesOf are the clauses of all statements of all specimens, and those statements that are sent beside a batch.
func piecesOf(t *testing.T) (all map[piece]string, others [][2]string) {
	t.Helper()
	all = map[piece]string{}
	add := func(form, from, sql string) {
		for _, p := range clausetext.Pieces(sql, spelled) {
			all[canonical(form, p)] = from
		}
	}
	conn := specimenDB.New(t).Conn(t)
	for _, sp := range specimens() {
		arm := sp.open(t, Conn(conn))
		for name, st := range statementsOf(arm) {
			_, first := shapesOf(arm)[name]
			form := formOf(name, first)
			add(form, sp.name+"."+name, st.sql)
			if form == "settings" || form == "after" {
				others = append(others, [2]string{form, st.sql})
			}
		}
	}
	conn = parentDB.New(t).Conn(t)
	for _, sp := range parentSpecimens() {
		arm := sp.open(t, Conn(conn))
		for name, st := range parentStatementsOf(arm) {
			if name == "settings" {
				continue // the same as without children
			}
			_, first := parentShapes(arm)[name]
			add("parents' "+formOf(name, first), sp.name+"."+name, st.sql)
		}
		add("look", sp.name+".plan", arm.planSQL().sql)
		add("look", sp.name+".held", arm.heldSQL().sql)
	}
	return all, append(others, [2]string{"parents' keys", nearKeysSQL})
}

// edited is an edit and what it takes out of the statements of its victim.
type edited struct {
	name, victim string
	taken, given map[piece]bool
}

func newEdited(name, victim string) edited {
	return edited{name, victim, map[piece]bool{}, map[piece]bool{}}
}

// in adds what an edit takes out of a statement, and what it puts in.
func (e edited) in(form, sql, instead string) {
	for _, p := range clausetext.Taken(sql, instead, spelled) {
		e.taken[canonical(form, p)] = true
	}
	for _, p := range clausetext.Taken(instead, sql, spelled) {
		e.given[canonical(form, p)] = true
	}
}

// row is the edit's line of the report. One that changes no clause, but a value that is answered, has its name there.
func (e edited) row() clausetext.Row {
	texts := func(ps map[piece]bool) (where, all []string) {
		for p := range ps {
			where, all = append(where, p.where()), append(all, p.Text)
		}
		slices.Sort(where)
		slices.Sort(all)
		return slices.Compact(where), slices.Compact(all)
	}
	where, taken := texts(e.taken)
	_, given := texts(e.given)
	return clausetext.Row{Statement: strings.Join(append([]string{"*" + e.name + "*"}, where...), "; "), Clause: strings.Join(taken, "\n"), Instead: strings.Join(given, "\n"), Victim: e.victim}
}
