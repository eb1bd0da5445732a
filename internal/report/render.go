package report

import (
	"fmt"
	"io"
	"strings"
)

// Table writes the report for a person: a table, and below it a line for each thing that a person should know. It writes
// nothing where there is nothing to say of any sweep or purge.
func (r *Report) Table(w io.Writer) error {
	switch {
	case r.Reopening != nil:
		return r.reopeningTable(w)
	case r.Purge != nil:
		return r.purgeTable(w)
	case len(r.Sweeps) == 0 && len(r.Components) == 0 && len(r.Purges) == 0:
		return nil
	}
	switch r.Command {
	case Planning:
		return r.planTable(w)
	case Checking:
		return r.checkTable(w)
	case Surveying:
		return r.statusTable(w)
	default:
		return r.sweepTable(w)
	}
}

func writeLines(w io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// stopText is the stop in words: "ceiling: rows", "not reached".
func (s Sweep) stopText() string {
	text := strings.ReplaceAll(string(s.Stop), "_", " ")
	if s.StopBy != "" {
		text += ": " + string(s.StopBy)
	}
	return text
}

// refusals are the lines on the checks that refuse a sweep: what is wrong, where, and what to do.
func (s Sweep) refusals() []string {
	var lines []string
	for _, c := range s.Checks {
		if c.Result != Refuse {
			continue
		}
		line := s.Name + ": refused: "
		if c.Position != "" {
			line = c.Position + ": " + line
		}
		line += oneLine(c.Detail)
		if c.Fix != nil {
			line += "; " + oneLine(*c.Fix)
		}
		lines = append(lines, line)
	}
	return lines
}

func (s Sweep) failure() []string {
	if s.Error == nil {
		return nil
	}
	line := fmt.Sprintf("%s: %s: %s", s.Name, s.stopText(), oneLine(s.Error.Message))
	if s.Error.SQLState != nil {
		line += fmt.Sprintf(" (SQLSTATE %s)", *s.Error.SQLState)
	}
	return []string{line}
}
