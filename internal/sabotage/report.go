package sabotage

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Row is an edit of the report: what it takes out of which statement, what is there instead, and who notices.
type Row struct{ Statement, Clause, Instead, Victim string }

// Exemption is a clause that no test misses, and why it is there all the same.
type Exemption struct{ Statement, Clause, Why string }

// Report is the part of docs/sabotage.md that one package keeps.
type Report struct {
	Package string // its folder below the root
	Rows    []Row
	Exempt  []Exemption
}

const (
	head = `# Sabotage

Each clause of each statement is taken out in turn, in the ordinary test run, and the test that is named beside it must fail then. A clause that neither stands here nor among the exceptions fails the run, and so does a line
of this file that is of no clause any more. The tests write it: ` + "`go test -p 1 ./... -run Sabotage -update`" + `. Read the difference.
`
	start = "\n## %s\n\n"
)

// text is the report as it stands in the file.
func (r Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, start, r.Package)
	b.WriteString("| statement | clause | instead | victim |\n| --- | --- | --- | --- |\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.Statement, code(row.Clause), code(row.Instead), row.Victim)
	}
	if len(r.Exempt) > 0 {
		b.WriteString("\nWithout a victim:\n\n| statement | clause | why |\n| --- | --- | --- |\n")
		for _, e := range r.Exempt {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", e.Statement, code(e.Clause), e.Why)
		}
	}
	return b.String()
}

// code is SQL within a table; each line of it is one of its own.
func code(sql string) string {
	if strings.TrimSpace(sql) == "" {
		return "-"
	}
	lines := strings.Split(strings.TrimSpace(sql), "\n")
	for i, l := range lines {
		lines[i] = "`" + strings.ReplaceAll(strings.TrimSpace(l), "|", "\\|") + "`"
	}
	return strings.Join(lines, "<br>")
}

// Keep holds the package's part of the file against the report, or writes it. The error says what to do.
func (r Report) Keep(file string, update bool) error {
	had, err := os.ReadFile(file)
	if err != nil && !(update && os.IsNotExist(err)) {
		return fmt.Errorf("%w; write it with -update", err)
	}
	parts := map[string]string{}
	for i, part := range strings.Split(string(had), "\n## ") {
		if name, _, ok := strings.Cut(part, "\n"); ok && i > 0 {
			parts[name] = "\n## " + strings.TrimRight(part, "\n") + "\n"
		}
	}
	if parts[r.Package] == r.text() && strings.HasPrefix(string(had), head) {
		return nil
	}
	if !update {
		return fmt.Errorf("%s is not what the tests of %s take out: %s; write it with -update and read the difference", file, r.Package, firstDifference(parts[r.Package], r.text()))
	}
	parts[r.Package] = r.text()
	var names []string
	for name := range parts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a, b) })
	text := head
	for _, name := range names {
		text += parts[name]
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// firstDifference names the first line in which two texts differ.
func firstDifference(had, want string) string {
	h, w := strings.Split(had, "\n"), strings.Split(want, "\n")
	for i := range w {
		if i >= len(h) {
			return fmt.Sprintf("%q is missing", w[i])
		}
		if h[i] != w[i] {
			return fmt.Sprintf("%q stands where %q is due", h[i], w[i])
		}
	}
	return fmt.Sprintf("%q is too much", h[len(w)])
}
