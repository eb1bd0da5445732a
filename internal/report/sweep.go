package report

import (
	"fmt"
	"io"
	"time"
)

func (r *Report) sweepTable(w io.Writer) error {
	rows := make([][]string, 0, len(r.Sweeps)+1)
	batches := 0
	for _, s := range r.Sweeps {
		batches += s.Batches
		row := []string{s.Name, Number(s.Removed), Number(s.Children), number(s.Held), Number(s.Stuck), Number(s.Batches), Took(seconds(s.Elapsed)), s.stopText()}
		if !s.ran() {
			row = []string{s.Name, "-", "-", "-", "-", "-", "-", s.stopText()}
		}
		rows = append(rows, row)
	}
	if len(r.Sweeps) > 1 {
		t := r.Totals
		rows = append(rows, []string{count(len(r.Sweeps), "sweep"), Number(t.Removed), Number(t.Children), number(t.Held), Number(t.Stuck), Number(batches), Took(seconds(r.Elapsed)), ""})
	}
	err := table(w, []column{{"SWEEP", false}, {"REMOVED", true}, {"CHILDREN", true}, {"HELD", true}, {"STUCK", true}, {"BATCHES", true}, {"TIME", true}, {"STOP", false}}, rows)
	if err != nil {
		return err
	}
	return writeLines(w, r.sweepLines())
}

// ran reports whether the sweep came as far as its first batch.
func (s Sweep) ran() bool {
	return s.Stop != Refused && s.Stop != NotReached
}

func (r *Report) sweepLines() []string {
	lines := r.windowLines()
	for _, s := range r.Sweeps {
		lines = append(lines, s.kept()...)
		for _, b := range s.StuckOn {
			lines = append(lines, fmt.Sprintf("%s: %s stuck on %s from %s", s.Name, Number(b.Rows), b.Constraint, b.Table))
		}
		if s.UnknownCommits > 0 {
			lines = append(lines, fmt.Sprintf("%s: the outcome of %s is unknown: its rows are gone or still there, and are not counted as removed", s.Name, count(s.UnknownCommits, "commit")))
		}
		if s.Stop == Busy {
			lines = append(lines, s.Name+": another run holds this sweep")
		}
		lines = append(lines, s.refusals()...)
		lines = append(lines, s.failure()...)
	}
	lines = append(lines, r.policyLines()...)
	if r.Totals.Removed > 0 {
		line := "rows are gone, disk space is not: vacuum reuses it"
		if r.Vacuum != nil {
			line += "; " + r.Vacuum.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// String says who holds vacuum back.
func (v *Vacuum) String() string {
	text := fmt.Sprintf("vacuum is held back %s by ", Ago(seconds(v.Since)))
	if v.PID == 0 {
		return text + oneLine(v.What)
	}
	text += fmt.Sprintf("pid %d (%s", v.PID, oneLine(v.What))
	if v.App != "" {
		text += fmt.Sprintf(", app %q", v.App)
	}
	return text + ")"
}

// kept are the lines on rows that are past their window, or without an age, and were left.
func (s Sweep) kept() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, s.Name+": "+fmt.Sprintf(format, args...)) }
	orphans := false
	for _, h := range s.HeldBy {
		since := ""
		if h.Oldest != nil {
			since = ", the oldest from " + h.Oldest.UTC().Format(time.DateOnly)
		}
		value := ""
		if h.Value != nil {
			value = oneLine(*h.Value)
		}
		switch h.Reason {
		case "owner":
			owners := ""
			if h.Owners != nil {
				owners = count(*h.Owners, "owner") + " in "
			}
			add("%s held by %sstate %s%s", Number(h.Rows), owners, value, since)
		case "state":
			add("%s held in state %s%s", Number(h.Rows), value, since)
		case "unknown_state":
			add("%s held in state %s, which the policy does not list%s", Number(h.Rows), value, since)
		case "orphan":
			orphans = true
			add("%s kept as orphans: %s%s", Number(h.Rows), s.ownerMissing(), since)
		case "ownerless":
			add("%s kept without an owner: the key to it is null%s", Number(h.Rows), since)
		case "owed":
			state := ""
			if value != "" {
				state = " in state " + value
			}
			add("%s held as owed%s%s%s", Number(h.Rows), state, s.owedTo(), since)
		case "hold":
			add("%s held by %s%s", Number(h.Rows), s.holdName(), since)
		default:
			add("%s held by %s %s%s", Number(h.Rows), h.Reason, value, since)
		}
	}
	if s.Orphan > 0 && !orphans {
		add("%s kept as orphans: %s", Number(s.Orphan), s.ownerMissing())
	}
	if s.Undated != nil && *s.Undated > 0 {
		why := "is null or too old to be an age"
		if s.words.Expires {
			why = "is too old to be an expiry"
		}
		add("%s kept as undated: %s %s", Number(*s.Undated), s.ageName(), why)
	}
	if s.Unusable != nil && *s.Unusable > 0 {
		add("%s; %s kept", rowsHave(*s.Unusable, "an unusable own window"+bracketed(s.words.Unusable)), theyAre(*s.Unusable))
	}
	if s.Raised > 0 {
		add("%s, which is raised to %s", rowsHave(s.Raised, "an own window below the floor"), s.floorName())
	}
	if s.Locked > 0 || s.Moved > 0 {
		add("%s locked and %s moved by other sessions; the next run takes them", Number(s.Locked), Number(s.Moved))
	}
	return lines
}

func (s Sweep) ownerMissing() string {
	if s.words.Owner == "" {
		return "their owner does not exist"
	}
	return "their owner is not in " + s.words.Owner
}

func (s Sweep) ageName() string {
	if s.words.Age == "" {
		return "the age"
	}
	return s.words.Age
}

func (s Sweep) owedTo() string {
	if s.words.Owed == "" {
		return ""
	}
	return " by rows of " + s.words.Owed
}

func (s Sweep) holdName() string {
	if s.words.Hold == "" {
		return "a column"
	}
	return s.words.Hold
}

func (s Sweep) floorName() string {
	if s.words.Floor == "" {
		return "it"
	}
	return s.words.Floor
}

// rowsHave writes "1 row has it", "2 rows have it".
func rowsHave(n int, what string) string {
	if n == 1 {
		return "1 row has " + what
	}
	return Number(n) + " rows have " + what
}

func theyAre(n int) string {
	if n == 1 {
		return "it is"
	}
	return "they are"
}

func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
