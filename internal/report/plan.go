package report

import (
	"fmt"
	"io"
	"strings"
)

func (r *Report) planTable(w io.Writer) error {
	var rows [][]string
	for _, s := range r.Sweeps {
		for _, a := range s.Arms {
			if a.ArmPlan != nil {
				rows = append(rows, r.planRow(s, a))
			}
		}
		if s.Stop != Planned {
			rows = append(rows, []string{s.Name, "-", "-", "-", "-", "-", s.stopText()})
		}
	}
	columns := []column{{"ARM", false}, {"DUE", true}, {"THIS RUN", true}, {"HELD", true}, {"READ IN VAIN", true}, {"OLDEST DUE", true}, {"INDEX", false}}
	if err := table(w, columns, rows); err != nil {
		return err
	}
	for _, s := range r.Sweeps {
		for _, a := range s.Arms {
			if a.ArmPlan == nil {
				continue
			}
			for _, sql := range a.Statements {
				if _, err := fmt.Fprintf(w, "\n-- %s\n%s\n", a.title(s), strings.TrimRight(sql, "\n")); err != nil {
					return err
				}
			}
		}
	}
	return writeLines(w, r.planLines())
}

// title is the arm's name for a person: the sweep's, and the state where the sweep has an arm a state.
func (a Arm) title(s Sweep) string {
	if a.Arm == s.Name {
		return s.Name
	}
	return s.Name + " " + a.Arm
}

func (r *Report) planRow(s Sweep, a Arm) []string {
	due, oldest := Number(a.Due), "-"
	if a.DueIsFloor {
		due = ">= " + due
	}
	if a.OldestDue != nil && r.Now != nil {
		oldest = Ago(r.Now.Sub(*a.OldestDue))
	}
	if a.Cutoff == nil {
		due = "never"
	}
	return []string{a.title(s), due, Number(a.ThisRun), number(a.Held), Number(a.ReadInVain), oldest, a.Index}
}

// planLines end with one that cannot be read as done.
func (r *Report) planLines() []string {
	lines := r.windowLines()
	run, floor, bounded, children := 0, false, false, false
	for _, s := range r.Sweeps {
		due := 0
		for _, a := range s.Arms {
			if a.ArmPlan == nil {
				continue
			}
			due += a.Due
			run += a.ThisRun
			children = children || s.words.Children != "" && a.ThisRun > 0
			// More than was counted is more in this run only where the run's bounds leave room for it.
			floor = floor || a.DueIsFloor && a.ThisRun >= a.Due
			// A ceiling of batches may be reached by batches that are not full.
			bounded = bounded || a.ThisRun < a.Due
		}
		lines = append(lines, s.planNotes(due)...)
	}
	amount := count(run, "row")
	switch {
	case floor:
		amount = "at least " + amount
	case bounded:
		amount = "at most " + amount
	}
	lines = append(lines, r.policyLines()...)
	line := "nothing was removed; prunectl sweep would remove " + amount + " in this run"
	if children {
		line += ", fewer where the rows that go with them reach a ceiling first"
	}
	lines = append(lines, line)
	return lines
}

func (s Sweep) planNotes(due int) []string {
	var lines []string
	thisRun := 0
	for _, a := range s.Arms {
		if a.ArmPlan != nil {
			thisRun += a.ThisRun
		}
	}
	if s.Stop == Planned {
		lines = append(lines, s.planWords()...)
	}
	for _, n := range s.notes {
		lines = append(lines, s.Name+": "+n)
	}
	lines = append(lines, s.kept()...)
	if thisRun < due && len(s.notes) == 0 {
		lines = append(lines, fmt.Sprintf("%s: one run is not enough: %s are due and it removes %s at most", s.Name, Number(due), Number(thisRun)))
	}
	lines = append(lines, s.refusals()...)
	return append(lines, s.failure()...)
}

// planWords are the lines on how the sweep goes about it.
func (s Sweep) planWords() []string {
	var lines []string
	for _, words := range []string{s.words.Guard, s.words.Children} {
		if words != "" {
			lines = append(lines, s.Name+": "+words)
		}
	}
	if s.words.AtOnce {
		lines = append(lines, s.Name+": a row whose window is at_once goes with the first sweep from which nothing protects it, however young")
	}
	return lines
}
