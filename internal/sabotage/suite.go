package sabotage

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Edit takes one clause of one statement out, or puts another in its place, and names who must notice.
type Edit struct {
	Statement string
	Clause    string // "part: text", or the text alone where it is in no part; see [Clause]
	Instead   string // of the whole line; [Dropped] of the clause where it is empty
	Also      string // another clause of the statement that holds the same, and is dropped with it
	Victim    string
}

// Name is the clause with its part.
func (c Clause) Name() string {
	if c.Part == "" {
		return c.Text
	}
	return c.Part + ": " + c.Text
}

// In is the statement with the edit made. The error says that the statement has no such clause.
func (e Edit) In(sql string) (string, error) {
	edited := sql
	for _, one := range []struct{ clause, instead string }{{e.Also, ""}, {e.Clause, e.Instead}} {
		if one.clause == "" {
			continue
		}
		all := Clauses(edited)
		i := slices.IndexFunc(all, func(c Clause) bool { return c.Name() == one.clause })
		if i < 0 {
			return "", fmt.Errorf("%s has no clause %q", e.Statement, one.clause)
		}
		edited = edited[:all[i].Start] + instead(one.clause, one.instead) + edited[all[i].End:]
	}
	if edited == sql {
		return "", fmt.Errorf("the edit of %q in %s changes nothing", e.Clause, e.Statement)
	}
	return edited, nil
}

func instead(clause, text string) string {
	if text != "" {
		return text
	}
	if part := regexp.MustCompile(`^\w+: `).FindString(clause); part != "" {
		clause = clause[len(part):]
	}
	return Dropped(regexp.MustCompile(` \(\d\)$`).ReplaceAllString(clause, ""))
}

var parameter = regexp.MustCompile(`\$\d+::[a-z]+(?:\[\])?`)

// Dropped is a line without its clause: a condition that is always true, the other order, a thousand times the bound, no
// lock. The parameters stay, since a statement without them would be refused for that, and so does what closes brackets
// that were opened before the line.
func Dropped(line string) string {
	clause, rest, depth := line, "", 0
	for i, r := range line {
		if r == '(' {
			depth++
		} else if r == ')' {
			depth--
		}
		if depth < 0 {
			clause, rest = line[:i], line[i:]
			break
		}
	}
	truth := "true"
	for _, p := range parameter.FindAllString(clause, -1) {
		truth += " AND (" + p + " IS NULL) IS NOT NULL"
	}
	switch word, more, _ := strings.Cut(clause, " "); {
	case word == "WHERE" || word == "AND":
		return word + " " + truth + rest
	case word == "FOR":
		return rest
	case word == "LIMIT" && parameter.MatchString(more):
		return "LIMIT 1000 * " + parameter.FindString(more) + rest
	case word == "LIMIT":
		return rest
	case strings.HasPrefix(clause, "ORDER BY "):
		first, others, _ := strings.Cut(strings.TrimPrefix(clause, "ORDER BY "), ",")
		if strings.HasSuffix(first, " DESC") {
			first = strings.TrimSuffix(first, " DESC")
		} else {
			first += " DESC"
		}
		if others != "" {
			first += "," + others
		}
		return "ORDER BY " + first + rest
	}
	panic("say what stands instead of " + line)
}

// Suite is what a package brings to have its statements taken apart.
type Suite struct {
	Package    string            // its folder below the root, for the report
	Statements map[string]string // by name
	Edits      []Edit
	Exempt     []Exemption
	Victims    []string
	// Run runs a victim while a statement has this text; "" for the statement: all are as they are.
	Run func(t *testing.T, victim, statement, sql string) error
}

// Problems lists the clauses without an edit and the edits without a clause.
func (s Suite) Problems() (ps []string) {
	type key struct{ statement, clause string }
	have := map[key]bool{}
	for name, sql := range s.Statements {
		for _, c := range Clauses(sql) {
			have[key{name, c.Name()}] = false
		}
	}
	mark := func(k key, what string) {
		if _, ok := have[k]; !ok {
			ps = append(ps, fmt.Sprintf("%s has no clause %q, of which there is an %s", k.statement, k.clause, what))
		}
		have[k] = true
	}
	for _, e := range s.Edits {
		mark(key{e.Statement, e.Clause}, "edit")
		if e.Also != "" {
			mark(key{e.Statement, e.Also}, "edit")
		}
	}
	for _, x := range s.Exempt {
		k := key{x.Statement, x.Clause}
		if have[k] {
			ps = append(ps, fmt.Sprintf("%s, %q is exempt and has an edit", x.Statement, x.Clause))
		}
		mark(k, "exemption")
	}
	for k, held := range have {
		if !held {
			ps = append(ps, fmt.Sprintf("no edit takes this out, and it is not exempt: %s, %q", k.statement, k.clause))
		}
	}
	slices.Sort(ps)
	return ps
}

// refused reports whether the server or the driver refused the edited text itself, which says nothing of the clause.
func refused(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return strings.HasPrefix(state.SQLState(), "42") || state.SQLState() == "08P01"
	}
	return strings.Contains(err.Error(), "arguments, got") || strings.Contains(err.Error(), "mismatched param")
}

// Test holds that every clause has its edit or its exemption, runs each victim as things are, and then against each of its
// edits. It keeps the package's part of the report in file.
func (s Suite) Test(t *testing.T, file string, update bool) {
	if testing.Short() {
		t.Skip("what a clause is there for does not depend on the server")
	}
	for _, p := range s.Problems() {
		t.Error(p)
	}
	r := Report{Package: s.Package, Exempt: s.Exempt}
	for _, victim := range s.Victims {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			if err := s.Run(t, victim, "", ""); err != nil {
				t.Fatalf("it is red with nothing taken out: %v", err)
			}
			for _, e := range s.Edits {
				if e.Victim != victim {
					continue
				}
				t.Run(e.Statement+", "+e.Clause, func(t *testing.T) {
					sql, err := e.In(s.Statements[e.Statement])
					if err != nil {
						t.Fatal(err)
					}
					switch err := s.Run(t, victim, e.Statement, sql); {
					case err == nil:
						t.Errorf("it stays green\n%s", sql)
					case refused(err):
						t.Errorf("the edit is refused as it is, and proves nothing: %v\n%s", err, sql)
					default:
						t.Log(err)
					}
				})
			}
		})
	}
	for _, e := range s.Edits {
		if !slices.Contains(s.Victims, e.Victim) {
			t.Errorf("%q is no victim", e.Victim)
		}
		row := Row{e.Statement, e.Clause, instead(e.Clause, e.Instead), e.Victim}
		if e.Also != "" {
			row.Clause += "\n" + e.Also
			row.Instead += "\n" + instead(e.Also, "")
		}
		r.Rows = append(r.Rows, row)
	}
	if err := r.Keep(file, update); err != nil && !t.Failed() {
		t.Error(err)
	}
}
