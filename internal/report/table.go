package report

import (
	"bytes"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// column is a column of a table: its header, and whether it is flush right, as numbers are.
type column struct {
	header string
	right  bool
}

// table prints rows under headers, with two blanks between columns and nothing else: it can be read by a person and cut
// by awk. No line ends in a blank.
func table(w io.Writer, columns []column, rows [][]string) error {
	var out bytes.Buffer
	align := make(tw.Alignment, len(columns))
	headers := make([]string, len(columns))
	pads := make([]tw.Padding, len(columns))
	for i, c := range columns {
		headers[i], align[i] = c.header, tw.AlignLeft
		if c.right {
			align[i] = tw.AlignRight
		}
		if i < len(columns)-1 {
			pads[i] = tw.Padding{Right: "  ", Overwrite: true}
		} else {
			pads[i] = tw.PaddingNone
		}
	}
	cells := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    tw.CellPadding{PerColumn: pads},
	}
	t := tablewriter.NewTable(&out,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells, Behavior: tw.Behavior{TrimSpace: tw.Off}}),
	)
	t.Header(headers)
	if err := t.Bulk(rows); err != nil {
		return err
	}
	if err := t.Render(); err != nil {
		return err
	}
	var trimmed strings.Builder
	for line := range strings.Lines(out.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n"))
		trimmed.WriteByte('\n')
	}
	_, err := io.WriteString(w, trimmed.String())
	return err
}
