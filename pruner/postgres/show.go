package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// Statement is one statement of a batch as it is sent, with placeholders for its values.
type Statement struct {
	Name string // "settings", "batch", "after"; in the parent form also "keys", "recheck", "child TABLE" and "parents"
	SQL  string
}

// Statements lists what a batch sends between BEGIN and COMMIT. A parent with more children than fit is emptied by
// statements like those of its tables, with a limit.
func (a *Arm) Statements() []Statement {
	if a.arm.Parents() {
		return a.parentStatements()
	}
	return []Statement{{"settings", a.settingsSQL().sql}, {"batch", a.statement(shape{}).sql}, {"after", a.afterSQL(shape{}).sql}}
}

// Explain is the plan of the arm's first batch, as EXPLAIN prints it under the batch's own settings. Nothing is executed.
func (a *Arm) Explain(ctx context.Context, c policy.Cutoff, limit int) (string, error) {
	if c.IsZero() {
		return "", fmt.Errorf("explain %s: its window is never, so it has no batch", a.arm.Name)
	}
	args := a.lookArgs(c, limit)
	args[argLook], args[argWhole] = strconv.Itoa(max(1, limit/firstLook)), strconv.Itoa(limit) // of the parent form
	var lines []string
	err := a.look(ctx, func(ctx context.Context, q query) (err error) {
		st := a.statement(shape{}).with(args)
		lines, err = all(ctx, q, "EXPLAIN "+st.sql, scanText, anys(st.args)...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("explain %s: %w", a.arm.Name, err)
	}
	return strings.Join(lines, "\n"), nil
}
