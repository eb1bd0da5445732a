package report

import (
	"encoding/json"
	"io"
)

// JSON writes the report as one document and a line feed.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // a statement's < stays readable
	return e.Encode(r)
}
