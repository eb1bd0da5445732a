package report

import (
	"fmt"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// Window is a window that a flag put in place of the policy file's.
type Window struct {
	Sweep    string `json:"sweep"`
	Seconds  int64  `json:"window_seconds"`
	Replaced int64  `json:"replaced_seconds"` // the file's
}

// String says which window is in force, and in place of which.
func (w Window) String() string {
	d := func(seconds int64) string { return policy.FormatDuration(time.Duration(seconds) * time.Second) }
	return fmt.Sprintf("%s: window %s by --window is in force, in place of the file's %s", w.Sweep, d(w.Seconds), d(w.Replaced))
}

func (r *Report) windowLines() []string {
	if r.Window == nil {
		return nil
	}
	return []string{r.Window.String()}
}
