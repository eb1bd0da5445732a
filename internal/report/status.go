package report

import (
	"io"
	"time"
)

// Backlog is what a status knows of a sweep, beside its counts.
type Backlog struct {
	Due        int        `json:"due"`
	DueIsFloor bool       `json:"due_is_floor"` // the count stopped there: at least so many are due
	OldestDue  *time.Time `json:"oldest_due"`
	OldestHeld *time.Time `json:"oldest_held"`
	Rows       *int64     `json:"rows_estimate"` // of the table, by the catalog; null where it was never analysed
	Size       *int64     `json:"size_bytes"`    // of the table with its indexes and TOAST
}

// SumBacklog fills the backlog from the arms.
func (s *Sweep) SumBacklog() {
	for _, a := range s.Arms {
		if a.ArmPlan == nil {
			continue
		}
		s.Due += a.Due
		s.DueIsFloor = s.DueIsFloor || a.DueIsFloor
		s.OldestDue = older(s.OldestDue, a.OldestDue)
		s.OldestHeld = older(s.OldestHeld, a.OldestHeld)
	}
}

func older(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

func (r *Report) statusTable(w io.Writer) error {
	var rows [][]string
	for _, s := range r.Sweeps {
		rows = append(rows, r.statusRow(s))
	}
	columns := []column{{"SWEEP", false}, {"OVERDUE", true}, {"DUE", true}, {"HELD", true}, {"OLDEST HELD", true}, {"UNDATED", true}, {"ROWS", true}, {"SIZE", true}}
	if err := table(w, columns, rows); err != nil {
		return err
	}
	var lines []string
	for _, s := range r.Sweeps {
		lines = append(lines, s.refusals()...)
		lines = append(lines, s.failure()...)
	}
	lines = append(lines, r.policyLines()...)
	for _, h := range r.Health {
		lines = append(lines, h.lines(r.Now)...)
	}
	return writeLines(w, lines)
}

func (r *Report) statusRow(s Sweep) []string {
	size, estimate := "-", "-"
	if s.Backlog != nil && s.Size != nil {
		size = Size(*s.Size)
	}
	if s.Backlog != nil && s.Rows != nil {
		estimate = Number(int(*s.Rows))
	}
	if s.Stop != Counted || s.Backlog == nil {
		return []string{s.Name, s.stopText(), "-", "-", "-", "-", estimate, size}
	}
	overdue, due, oldest := "-", Number(s.Due), "-"
	if s.Overdue != nil {
		overdue = Ago(seconds(*s.Overdue))
	}
	switch {
	case s.keepsAll():
		overdue, due = "-", "never"
	case s.DueIsFloor:
		due = ">= " + due
	case s.Due == 0:
		overdue = "0"
	}
	if s.OldestHeld != nil && r.Now != nil {
		oldest = Ago(r.Now.Sub(*s.OldestHeld))
	}
	return []string{s.Name, overdue, due, number(s.Held), oldest, number(s.Undated), estimate, size}
}

// keepsAll reports whether every window of the sweep is never.
func (s Sweep) keepsAll() bool {
	for _, a := range s.Arms {
		if a.Cutoff != nil {
			return false
		}
	}
	return true
}
