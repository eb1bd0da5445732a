package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

func (r *Report) checkTable(w io.Writer) error {
	var rows [][]string
	refused := 0
	var fixes []string
	seen := map[string]bool{}
	add := func(name string, checks []Check, failure *Error) {
		for _, c := range checks {
			rows = append(rows, []string{name, c.Check, string(c.Result), c.line()})
			if c.Fix != nil && !seen[*c.Fix] {
				seen[*c.Fix] = true
				fixes = append(fixes, *c.Fix)
			}
		}
		if failure != nil {
			rows = append(rows, []string{name, "-", string(Failed), oneLine(failure.Message)})
		}
	}
	for _, s := range r.Sweeps {
		if s.Stop == Refused {
			refused++
		}
		add(s.Name, s.Checks, s.Error)
	}
	head, refusedPurges := "SWEEP", 0
	for _, p := range r.Purges {
		if p.Stop == Refused {
			refusedPurges++
		}
		add(p.Name, p.Checks, p.Error)
		head = "SWEEP OR PURGE"
	}
	if len(r.Sweeps)+len(r.Components) == 0 {
		head = "PURGE"
	}
	unfit := 0
	for _, c := range r.Components {
		if c.Result == Refuse || c.Result == Verdict(Failed) {
			unfit++
		}
		rows = append(rows, c.checkRows()...)
	}
	if len(rows) > 0 {
		if err := table(w, []column{{head, false}, {"CHECK", false}, {"RESULT", false}, {"DETAIL", false}}, rows); err != nil {
			return err
		}
	}
	var lines []string
	for _, s := range r.Sweeps {
		if s.words.InForce != "" {
			lines = append(lines, s.Name+": "+s.words.InForce)
		}
	}
	if r.Database == nil {
		read := count(len(r.Sweeps), "sweep")
		if len(r.Purges) > 0 {
			read += " and " + count(len(r.Purges), "purge")
		}
		lines = append(lines, read+" read, no fault found; the database was not asked")
	} else if len(r.Sweeps) > 0 {
		lines = append(lines, fmt.Sprintf("%d of %s refused", refused, count(len(r.Sweeps), "sweep")))
	}
	if len(r.Components) > 0 {
		lines = append(lines, fmt.Sprintf("%d of %s refused", unfit, count(len(r.Components), "component")))
	}
	if r.Database != nil && len(r.Purges) > 0 {
		lines = append(lines, fmt.Sprintf("%d of %s refused", refusedPurges, count(len(r.Purges), "purge")))
	}
	if r.Vacuum != nil {
		lines = append(lines, r.Vacuum.String())
	}
	return writeLines(w, append(lines, statements(fixes)...))
}

// line is what is wrong and where; what to do about it stands below the table, where it can be copied.
func (c Check) line() string {
	line := oneLine(c.Detail)
	if c.Result != OK && c.Position != "" {
		line += " (" + c.Position + ")"
	}
	if c.Result != OK && c.Fix != nil && !isSQL(*c.Fix) {
		line += "; " + oneLine(*c.Fix)
	}
	return line
}

// isSQL tells a statement from an advice.
func isSQL(fix string) bool {
	verb, _, _ := strings.Cut(strings.ToLower(fix), " ")
	switch verb {
	case "create", "grant", "alter", "analyze", "vacuum", "reindex", "drop":
		return true
	}
	return false
}

// statements are the fixes that can be run as they are, the GRANTs first, so that they can be given in one go.
func statements(fixes []string) []string {
	var grants, others []string
	for _, f := range fixes {
		if !isSQL(f) {
			continue
		}
		f = strings.TrimRight(f, "; \n") + ";"
		if strings.HasPrefix(strings.ToLower(f), "grant") {
			for g := range strings.SplitAfterSeq(f, "; ") {
				if g = strings.TrimSpace(g); !slices.Contains(grants, g) {
					grants = append(grants, g)
				}
			}
		} else {
			others = append(others, f)
		}
	}
	return append(grants, others...)
}
