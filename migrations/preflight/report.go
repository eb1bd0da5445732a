package preflight

import (
	"fmt"
	"strings"
	"unicode"
)

// State is what is installed, in a word.
type State string

// The states. Only UpToDate is one to work with.
const (
	UpToDate     State = "up to date"             // the newest version, as its migrations made it
	NotInstalled State = "not installed"          // no version is recorded
	Pending      State = "pending"                // versions that this program knows are not recorded
	Newer        State = "newer than this binary" // a version is recorded that this program does not know; not compared
	Drift        State = "drift"                  // the newest version by the ledger, and something else in the catalog
)

// Verdict is the result of a finding.
type Verdict string

// The results of a finding.
const (
	Refused Verdict = "refused" // missing, different, or more and of effect
	Warning Verdict = "warning" // more, and without effect
)

// Version is one version of a component.
type Version struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
}

func (v Version) String() string { return fmt.Sprintf("%d %s", v.Number, v.Name) }

// Finding is one difference between what is installed and the contract.
type Finding struct {
	Result Verdict `json:"result"`
	// Kind is one of schema, table, column, constraint, index, trigger, function,
	// policy and rule.
	Kind string `json:"kind"`
	// Name is the object's, with its table's before it where it has one. It is not
	// quoted.
	Name string `json:"name"`
	// Aspect is what of the object differs, "" where it is missing or too many.
	Aspect string `json:"aspect,omitempty"`
	// Expected and Found are in the server's words where it has some.
	Expected string `json:"expected"`
	Found    string `json:"found"`
	// Do is what to do: a statement, or a sentence.
	Do string `json:"do"`
}

// what is the finding without what to do.
func (f Finding) what() string {
	of := ""
	if f.Aspect != "" {
		of = ", " + f.Aspect
	}
	return printable(fmt.Sprintf("%s %s%s: expected %s, found %s", f.Kind, f.Name, of, f.Expected, f.Found))
}

// String is the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s; %s", f.Result, f.what(), printable(f.Do))
}

// Report is what a check found.
type Report struct {
	Component string `json:"component"`
	Schema    string `json:"schema"`
	State     State  `json:"state"`
	// Installed is the newest version that the ledger records, nil where there is none.
	Installed *int `json:"installed"`
	// Known is the newest version that this program knows.
	Known int `json:"known"`
	// Pending are the known versions that are not recorded, oldest first.
	Pending []Version `json:"pending"`
	// Findings are the differences from the contract of the installed version, table
	// by table; none where the state is newer.
	Findings []Finding `json:"findings"`
}

// Err is nil where the component can be used as it is installed: the newest version,
// and no finding that is refused. Otherwise it is a *RefusedError, which wraps
// ErrNotInstalled, ErrPending or ErrNewer by the state, and ErrDrift where findings
// are refused.
func (r Report) Err() error {
	if r.State == UpToDate {
		return nil
	}
	return &RefusedError{Report: r}
}

// Warnings counts the findings that are not refused.
func (r Report) Warnings() int { return len(r.Findings) - r.refused() }

func (r Report) refused() int {
	n := 0
	for _, f := range r.Findings {
		if f.Result == Refused {
			n++
		}
	}
	return n
}

// String is the report for people: a line that sums up, and a line for each finding,
// without a line break at the end.
func (r Report) String() string {
	lines := []string{r.headline()}
	for _, f := range r.Findings {
		lines = append(lines, "  "+f.String())
	}
	return strings.Join(lines, "\n")
}

// headline says the state and what to do about it, on one line.
func (r Report) headline() string {
	s := fmt.Sprintf("component %s in schema %s: ", r.Component, printable(r.Schema))
	switch r.State {
	case NotInstalled:
		s += "not installed; run " + r.migrate()
	case Pending:
		var names []string
		for _, v := range r.Pending {
			names = append(names, v.String())
		}
		s += fmt.Sprintf("at version %d of %d, pending: %s; run %s", *r.Installed, r.Known, strings.Join(names, ", "), r.migrate())
	case Newer:
		s += fmt.Sprintf("at version %d, newer than this binary, which knows up to %d; use the newer one", *r.Installed, r.Known)
	case Drift:
		s += fmt.Sprintf("at version %d by its ledger, and not as the migrations made it", *r.Installed)
	case UpToDate:
		s += fmt.Sprintf("up to date, version %d", *r.Installed)
	}
	return s
}

// migrate is the command that installs what is missing.
func (r Report) migrate() string {
	s := "prunectl migrate up --component " + r.Component
	if r.Schema != contracts[r.Component].schema {
		s += " --schema '" + strings.ReplaceAll(printable(r.Schema), "'", `'\''`) + "'"
	}
	return s
}

// printable keeps a name or a definition on its line, and from the terminal's
// controls.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
