package report

import (
	"strings"

	"github.com/prunectl/prunectl/migrations/preflight"
)

// NotChecked is the state of a component whose preflight was not made.
const NotChecked preflight.State = "not checked"

// Component is what the preflight found of a component of ours in one schema.
type Component struct {
	preflight.Report
	Result Verdict `json:"result"` // Failed where the preflight could not be made
	Error  *Error  `json:"error"`  // why it was not made
}

// checkRows are the rows of a check: one that sums up, and one for each difference.
func (c Component) checkRows() [][]string {
	row := func(result Verdict, text string) []string {
		return []string{"component " + c.Component, "schema", string(result), oneLine(text)}
	}
	if c.Error != nil {
		return [][]string{row(c.Result, c.Error.Message)}
	}
	head, _, _ := strings.Cut(c.String(), "\n")
	result := c.Result
	if result == Warning {
		result = OK // the rows below are the warnings
	}
	rows := [][]string{row(result, head)}
	for _, f := range c.Findings {
		rows = append(rows, row(Verdict(f.Result), strings.TrimPrefix(f.String(), string(f.Result)+": ")))
	}
	return rows
}
