package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

func (r *Report) purgeTable(w io.Writer) error {
	p := r.Purge
	columns := []column{{"TABLE", false}, {"BY", false}, {"FOUND", true}}
	if p.ran() {
		columns = append(columns, column{"REMOVED", true}, column{"LATE", true}, column{"LEFT", true})
	}
	if len(p.Excluded) > 0 {
		columns = append(columns, column{"", false})
	}
	if err := table(w, columns, p.rows(len(columns))); err != nil {
		return err
	}
	return writeLines(w, r.purgeLines())
}

// ran reports whether the purge came as far as its first batch.
func (p *Purge) ran() bool {
	return p.Started != nil
}

// rows are those of the tables and then those of the excluded ones, each of so many columns.
func (p *Purge) rows(columns int) [][]string {
	var rows [][]string
	for _, t := range p.Tables {
		row := []string{oneLine(t.Table), t.by(), floored(t.Found, t.FoundIsFloor)}
		if p.ran() {
			row = append(row, Number(t.Removed), Number(t.Late), floored(t.Left, t.LeftIsFloor))
		}
		for len(row) < columns {
			row = append(row, "")
		}
		rows = append(rows, row)
	}
	for _, e := range p.Excluded {
		row := []string{oneLine(e.Table)}
		for len(row) < columns-1 {
			row = append(row, "-")
		}
		rows = append(rows, append(row, "excluded: "+oneLine(e.Reason)))
	}
	return rows
}

// by says how a row of the table is known to be the tenant's.
func (t PurgeTable) by() string {
	if t.By != nil {
		return oneLine(*t.By)
	}
	return "of " + oneLine(strings.Join(t.Of, " of "))
}

func floored(n *int, floor bool) string {
	if n != nil && floor {
		return ">= " + Number(*n)
	}
	return number(n)
}

// Preview is what would go, as lines for a person who is asked about it.
func (p *Purge) Preview() ([]string, error) {
	var b strings.Builder
	columns := []column{{"TABLE", false}, {"BY", false}, {"FOUND", true}}
	if len(p.Excluded) > 0 {
		columns = append(columns, column{"", false})
	}
	if err := table(&b, columns, p.rows(len(columns))); err != nil {
		return nil, err
	}
	return append(strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), p.writerLines()...), nil
}

// purgeLines are the receipt below the table. The first one cannot be read as done where it is not.
func (r *Report) purgeLines() []string {
	p := r.Purge
	var fixes []string
	lines := p.checkLines(&fixes)
	lines = append(lines, p.verdict(r.Signal))
	for _, t := range p.Tables {
		lines = append(lines, t.lines(p.Stop)...)
	}
	lines = append(lines, p.lateLines()...)
	lines = append(lines, p.writerLines()...)
	if p.ran() {
		lines = append(lines, r.signature(), p.notCovered(r.Vacuum))
	}
	return append(lines, statements(fixes)...)
}

// checkLines are the findings that refuse the purge, and for who only looks the warnings too; statements that can be run as
// they are go to fixes.
func (p *Purge) checkLines(fixes *[]string) []string {
	var lines []string
	for _, c := range p.Checks {
		if c.Result == OK || c.Result == Warning && p.Stop != Counted && p.Stop != Refused {
			continue
		}
		line := p.Name + ": " + string(c.Result) + ": " + oneLine(c.Detail)
		if c.Position != "" {
			line = c.Position + ": " + line
		}
		switch {
		case c.Fix == nil:
		case !isSQL(*c.Fix):
			line += "; " + oneLine(*c.Fix)
		case !slices.Contains(*fixes, *c.Fix):
			*fixes = append(*fixes, *c.Fix)
		}
		lines = append(lines, line)
	}
	return lines
}

// verdict says whether the tenant is gone, and on what that stands.
func (p *Purge) verdict(signal string) string {
	who, tables := fmt.Sprintf("%q", p.Tenant), count(len(p.Tables), "table")
	gone := count(p.removed(), "row") + " of " + tables
	const untouched = "; nothing was touched"
	switch p.Stop {
	case Purged:
		if found, _ := p.found(); found == 0 && p.removed() == 0 {
			return fmt.Sprintf("nothing of %s was found in %s, looked at in one snapshot%s; case and blanks of a tenant's name count", who, tables, at(p.ProvedAt))
		}
		return fmt.Sprintf("purged %s: %s; none was left%s, when all were looked at in one snapshot", who, gone, at(p.ProvedAt))
	case Counted:
		found, floor := p.found()
		return fmt.Sprintf("nothing was removed; prunectl purge would remove %s of %s from %s", Bounded{found, floor}.words("row", "rows"), who, tables)
	case Left:
		return fmt.Sprintf("not purged %s: %s went%s; run it again", who, gone, p.remains())
	case Refused:
		return fmt.Sprintf("not purged %s: refused%s", who, untouched)
	case Declined:
		return fmt.Sprintf("not purged %s: what was typed is not this name%s", who, untouched)
	case Busy:
		return fmt.Sprintf("not purged %s: another run purges this tenant; %s went in this one%s", who, gone, p.remains())
	}
	why := "failed"
	switch p.Stop {
	case Ceiling:
		why = "the time is over"
	case Signal:
		why = signal
	}
	if !p.ran() {
		return fmt.Sprintf("not purged %s: %s%s%s", who, why, untouched, p.failure())
	}
	return fmt.Sprintf("not purged %s: %s; %s went%s; run it again to go on%s", who, why, gone, p.remains(), p.failure())
}

// remains says what the last look found, or that there was none.
func (p *Purge) remains() string {
	if p.LookedAt == nil {
		return ", and what is left was not looked at"
	}
	left, floor := p.left()
	return fmt.Sprintf(", and %s left%s, when all were looked at in one snapshot", rowsAre(left, floor), at(p.LookedAt))
}

func (p *Purge) failure() string {
	if p.Error == nil {
		return ""
	}
	text := ": " + oneLine(p.Error.Message)
	if p.Error.SQLState != nil {
		text += " (SQLSTATE " + *p.Error.SQLState + ")"
	}
	return text
}

func at(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " at " + Stamp(*t)
}

// rowsAre writes "1 row was", "at least 2 rows were".
func rowsAre(n int, floor bool) string {
	text := count(n, "row") + " were"
	if n == 1 && !floor {
		text = "1 row was"
	}
	if floor {
		text = "at least " + text
	}
	return text
}

// lines say why rows of a table were left.
func (t PurgeTable) lines(stop Stop) []string {
	var lines []string
	name := oneLine(t.Table)
	add := func(format string, args ...any) { lines = append(lines, name+": "+fmt.Sprintf(format, args...)) }
	for _, b := range t.StuckOn {
		add("%s stuck on %s from %s", Number(b.Rows), oneLine(b.Constraint), oneLine(b.Table))
	}
	if stop != Purged && t.Locked > 0 {
		add("%s locked by other sessions", Number(t.Locked))
	}
	if came := t.came(); stop == Left && came > 0 {
		add("%s there and neither locked nor stuck: they came after the last pass had gone by", rowsAre(came, t.LeftIsFloor))
	}
	if t.UnknownCommits > 0 {
		add("the outcome of %s is unknown: its rows are gone or still there, and are not counted as removed", count(t.UnknownCommits, "commit"))
	}
	if t.Error != nil {
		add("%s", oneLine(t.Error.Message))
	}
	return lines
}

// came is how many of the rows that were left nothing else explains.
func (t PurgeTable) came() int {
	if t.Left == nil {
		return 0
	}
	return max(0, *t.Left-t.Locked-t.Stuck)
}

// lateLines say that the tenant was still written to.
func (p *Purge) lateLines() []string {
	came, late := 0, 0
	for _, t := range p.Tables {
		late += t.Late
		if t.Found != nil && t.Left != nil && !t.FoundIsFloor {
			came += max(0, t.Removed+*t.Left-*t.Found)
		}
	}
	var parts []string
	if came > 0 {
		parts = append(parts, "at least "+count(came, "row")+" came meanwhile")
	}
	if late > 0 {
		text := rowsAre(late, false) + " found late, by the look after the first pass"
		if p.Passes > 1 {
			text += ", and a second pass followed"
		}
		parts = append(parts, text)
	}
	if parts == nil {
		return nil
	}
	return []string{strings.Join(parts, "; ")}
}

// writerLines name who could still bring rows, table by table.
func (p *Purge) writerLines() []string {
	var order []string
	by := map[string][]string{}
	for _, w := range p.Writers {
		who := fmt.Sprintf("pid %d", w.PID)
		if w.PID == 0 { // no session: the engine says what it is
			who = oneLine(w.App)
		} else if w.App != "" {
			who += fmt.Sprintf(" (%q)", w.App)
		}
		if by[w.Table] == nil {
			order = append(order, w.Table)
		}
		by[w.Table] = append(by[w.Table], who)
	}
	var lines []string
	for _, table := range order {
		who, verbs := by[table], [3]string{"transactions that have", "were", "they commit"}
		if len(who) == 1 {
			verbs = [3]string{"transaction that has", "was", "it commits"}
		}
		lines = append(lines, fmt.Sprintf("%s %s written to %s %s open: %s; what %s is not in this look",
			Number(len(who)), verbs[0], oneLine(table), verbs[1], strings.Join(who, ", "), verbs[2]))
	}
	return lines
}

// signature says by whom, where, when and by what the rows were removed.
func (r *Report) signature() string {
	p := r.Purge
	var parts []string
	if d := r.Database; d != nil {
		who := "by role " + oneLine(d.Role)
		if p.Operator != "" {
			who += " (" + oneLine(p.Operator) + ")"
		}
		parts = append(parts, fmt.Sprintf("%s in database %s on %s:%d", who, oneLine(d.Name), oneLine(d.Host), d.Port))
	}
	if p.Started != nil && p.Ended != nil {
		parts = append(parts, fmt.Sprintf("from %s to %s", Stamp(*p.Started), Stamp(*p.Ended)))
	}
	if r.Policy != nil {
		parts = append(parts, fmt.Sprintf("purge %s of %s sha256 %s", p.Name, oneLine(r.Policy.File), r.Policy.SHA256))
	}
	return strings.Join(parts, ", ")
}

// notCovered says where rows may be although no table has them.
func (p *Purge) notCovered(held *Vacuum) string {
	text := "backups, replicas, archives and files are not covered; in the server's own files the rows stay until vacuum and the WAL have gone over them"
	if held != nil {
		text += "; " + held.String()
	}
	return text
}
