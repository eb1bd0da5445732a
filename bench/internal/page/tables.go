package page

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/prunectl/prunectl/bench/internal/study"
)

// sheet is a table: its title, headers, and rows. Columns behind the first are numbers, flush right, unless words says so.
type sheet struct {
	Title, Note string
	Headers     []string
	Rows        [][]string
	Words       bool
}

// sheets are the tables of a result.
func sheets(r study.Result) []sheet {
	bounds := sheet{Title: "Bounds", Headers: []string{"work", "want", "got", "met"}, Words: true}
	for _, b := range r.Bounds {
		bounds.Rows = append(bounds.Rows, []string{b.Work, b.Want, b.Got, met(b)})
	}
	idle := sheet{Title: "Idle sweeps of events, in buffers", Headers: []string{"events", "before any is due", "held rows after a drain", "sweep after it", "one reading of them"}}
	for _, i := range r.Idle {
		idle.Rows = append(idle.Rows, []string{count(i.Rows), count(int(i.Before)), count(i.Held), count(int(i.After)), count(int(i.Reading))})
	}
	owners := sheet{Title: "Owner lock, whole drains", Headers: []string{"rows an owner", "buffers, locked", "free", "WAL bytes, locked", "free", "time, locked to free"}}
	for _, o := range r.Owners {
		owners.Rows = append(owners.Rows, []string{count(o.PerOwner), count(int(o.Locked.Buffers)), count(int(o.Free.Buffers)), count(int(o.Locked.WAL)), count(int(o.Free.WAL)), fmt.Sprintf("%.2f", o.Time)})
	}
	first := sheet{Title: "First batch of jobs", Headers: []string{"subject", "index led by", "limit", "buffers", "WAL bytes", "ms"}}
	for _, f := range r.First {
		first.Rows = append(first.Rows, []string{f.Subject, f.Index, count(f.Limit), count(int(f.Buffers)), count(int(f.WAL)), fmt.Sprintf("%.1f", float64(f.Micros)/1000)})
	}
	load := sheet{Title: "pgbench at half its maximum, beside a drain", Headers: []string{"beside", "rate", "tps", "p50 ms", "p99 ms", "max ms", "seconds", "rows removed"}}
	for _, f := range r.Foreground {
		load.Rows = append(load.Rows, []string{f.Beside, fmt.Sprintf("%.0f", f.Rate), fmt.Sprintf("%.0f", f.TPS), fmt.Sprintf("%.1f", f.P50), fmt.Sprintf("%.1f", f.P99), fmt.Sprintf("%.1f", f.Max), fmt.Sprintf("%.1f", f.Over), count(f.Rows)})
	}
	all := []sheet{bounds, compared("Drains of events", "of one DELETE", r.Events), compared("Drains of jobs", "of one DELETE", r.Jobs), owners, idle, first}
	if r.Domain != nil {
		all = append(all, domain(*r.Domain)...)
	}
	all = append(all, load)
	return slices.DeleteFunc(all, func(s sheet) bool { return len(s.Rows) == 0 && s.Title != bounds.Title })
}

// domain are the tables of the domain events.
func domain(d study.Domain) []sheet {
	idle := sheet{Title: "Idle sweeps of domain events, in buffers", Headers: []string{"live", "of them held", "history", "deliveries"}}
	shapes := sheet{Title: "The same, other subjects", Headers: slices.Clone(idle.Headers)}
	for n, i := range d.Idle {
		first, next := i.BeforeVacuum()
		of := []string{count(i.Live()), count(i.Held), count(i.History), count(i.Deliveries)}
		row, other := slices.Clone(of), slices.Clone(of)
		for _, a := range i.Arms {
			if n == 0 {
				idle.Headers = append(idle.Headers, a.Arm)
			}
			row = append(row, count(int(a.Buffers)))
		}
		for _, a := range i.Shapes {
			if n == 0 {
				shapes.Headers = append(shapes.Headers, a.Arm)
			}
			other = append(other, count(int(a.Buffers)))
		}
		idle.Rows, shapes.Rows = append(idle.Rows, append(row, count(int(i.Total())), count(int(first)), count(int(next)))), append(shapes.Rows, other)
	}
	idle.Headers = append(idle.Headers, "together", "first before VACUUM", "next")
	records := sheet{Title: "What retention adds to work on domain events", Headers: []string{"work", "of", "WAL bytes without", "with", "more", "time, with to without", "us"}}
	for _, k := range d.Records {
		records.Rows = append(records.Rows, []string{
			k.Kind, k.Of, fmt.Sprintf("%.0f", k.PlainWAL()), fmt.Sprintf("%.0f", k.WholeWAL()), fmt.Sprintf("%+.1f %%", 100*(k.WholeWAL()/max(1, k.PlainWAL())-1)), fmt.Sprintf("%.2f", k.Time), fmt.Sprintf("%.1f", k.Micros),
		})
	}
	return []sheet{idle, shapes, records, compared("Drains of domain events", "of the first", d.Drains)}
}

func compared(title, of string, rows []study.Row) sheet {
	s := sheet{Title: title, Headers: []string{"subject", "limit", "batches", "trips", "buffers/row", "buffers/batch", "WAL/row", "WAL/batch", "rows/s", of, "batch p50 ms", "p99", "max"}}
	for _, r := range rows {
		limit := "all"
		if r.Limit > 0 {
			limit = count(r.Limit)
		}
		s.Rows = append(s.Rows, []string{
			r.Subject, limit, count(r.Batches), count(r.Trips), fmt.Sprintf("%.2f", r.BuffersPerRow), count(int(r.BuffersPerBatch)), fmt.Sprintf("%.1f", r.WALPerRow), count(int(r.WALPerBatch)),
			count(int(r.RowsPerSecond)), fmt.Sprintf("%.2f", r.OfFirst), fmt.Sprintf("%.1f", r.P50), fmt.Sprintf("%.1f", r.P99), fmt.Sprintf("%.1f", r.Max),
		})
	}
	return s
}

// met is yes, no, or "-" where there is nothing to meet.
func met(b study.Bound) string {
	switch {
	case b.Shown:
		return "-"
	case b.Met:
		return "yes"
	}
	return "no"
}

// count is a whole number with its thousands apart.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// about says where and how the figures came to be.
func about(r study.Result) string {
	server := "a server of the bench's own"
	if !r.Own {
		server = "a server with settings of its own"
	}
	return fmt.Sprintf("%s: %s form, %s, %s, %d cores, %s", r.Command, r.Size.Form, r.Server, server, r.Cores, r.When.Format("2006-01-02 15:04Z"))
}

// Tables prints the result for a terminal.
func Tables(w io.Writer, r study.Result) error {
	if _, err := fmt.Fprintln(w, about(r)); err != nil {
		return err
	}
	for _, s := range sheets(r) {
		if _, err := fmt.Fprintf(w, "\n%s\n", s.Title); err != nil {
			return err
		}
		if err := s.print(w); err != nil {
			return err
		}
	}
	return nil
}

func (s sheet) print(w io.Writer) error {
	var out strings.Builder
	align, pads := make(tw.Alignment, len(s.Headers)), make([]tw.Padding, len(s.Headers))
	for i := range s.Headers {
		align[i], pads[i] = tw.AlignRight, tw.Padding{Right: "  ", Overwrite: true}
		if i == 0 || s.Words {
			align[i] = tw.AlignLeft
		}
	}
	cells := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    tw.CellPadding{PerColumn: pads},
	}
	t := tablewriter.NewTable(&out,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{Borders: tw.BorderNone, Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone}})),
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells, Behavior: tw.Behavior{TrimSpace: tw.Off}}),
	)
	t.Header(s.Headers)
	if err := t.Bulk(s.Rows); err != nil {
		return err
	}
	if err := t.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
