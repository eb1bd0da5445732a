package report

import (
	"fmt"
	"strings"
	"time"
)

// Agreement is how the windows of a policy file stand to the policy that a database has recorded.
type Agreement string

// The agreements.
const (
	Same       Agreement = "same"       // they are the recorded ones
	Recorded   Agreement = "recorded"   // none were recorded before, and the file's were
	Replaced   Agreement = "replaced"   // the file's took the place of the recorded ones
	Unrecorded Agreement = "unrecorded" // none are recorded yet: a sweep records the file's
	Different  Agreement = "different"  // a sweep is refused, unless it replaces the recorded ones
	Unusable   Agreement = "unusable"   // they cannot be in force: a sweep is refused
	NotRead    Agreement = "not_read"   // the recorded policy could not be read
)

// Agreements lists every agreement.
func Agreements() []Agreement {
	return []Agreement{Same, Recorded, Replaced, Unrecorded, Different, Unusable, NotRead}
}

// InboxPolicy is the policy of the component inbox_outbox in one schema.
type InboxPolicy struct {
	Schema      string           `json:"schema"`
	Agreement   Agreement        `json:"agreement"`
	Fingerprint *string          `json:"fingerprint"` // of the policy that is recorded at the end; null where none is known
	RecordedAt  *time.Time       `json:"recorded_at"`
	RecordedBy  *string          `json:"recorded_by"`
	Differences []WindowChange   `json:"differences"` // between what was recorded and what the file says
	Due         []DueByReplacing `json:"due"`         // what a shorter window made due
	Error       *Error           `json:"error"`       // why it is unusable, or not read
}

// WindowChange is a setting whose value differs; null where it is not there.
type WindowChange struct {
	Setting  string  `json:"setting"`
	Recorded *string `json:"recorded"`
	Given    *string `json:"given"`
}

// DueByReplacing is how many rows of a table became due when a shorter window took the place of a longer one.
type DueByReplacing struct {
	Ledger string `json:"ledger"`
	Bounded
}

func (c WindowChange) String() string {
	say := func(v *string) string {
		if v == nil {
			return "not there"
		}
		return *v
	}
	return fmt.Sprintf("%s: recorded %s, given %s", c.Setting, say(c.Recorded), say(c.Given))
}

func (d DueByReplacing) String() string {
	return fmt.Sprintf("%s of %s due by it", d.words("row", "rows"), d.Ledger)
}

// Changes are the differences in words.
func (p InboxPolicy) Changes() string {
	var parts []string
	for _, d := range p.Differences {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

// Replacement says what was replaced, and what became due by it.
func (p InboxPolicy) Replacement() string {
	text := "the recorded policy is replaced: " + p.Changes()
	for _, d := range p.Due {
		text += "; " + d.String()
	}
	return text
}

// By says when the policy was recorded, and by whom.
func (p InboxPolicy) By() string {
	if p.RecordedAt == nil || p.RecordedBy == nil {
		return ""
	}
	return "recorded " + Stamp(*p.RecordedAt) + " by " + *p.RecordedBy
}

// policyLines say what is to be known of the policies: nothing where they agree.
func (r *Report) policyLines() []string {
	var lines []string
	for _, p := range r.Policies {
		if text := p.line(r.Command); text != "" {
			lines = append(lines, "inbox_outbox in "+p.Schema+": "+oneLine(text))
		}
	}
	return lines
}

func (p InboxPolicy) line(command string) string {
	switch {
	case p.Agreement == Recorded:
		return "the policy is recorded as that of this database"
	case p.Agreement == Replaced:
		return p.Replacement()
	case command == Sweeping || p.Agreement == Same || p.Agreement == Unrecorded:
		return "" // a sweep that is refused says why
	case p.Agreement == Different:
		return "the database has another policy, " + p.By() + ": " + p.Changes() + "; a sweep is refused without --replace-policy"
	case p.Error == nil:
		return ""
	case p.Agreement == Unusable:
		return "a sweep is refused: " + p.Error.Message
	}
	return "the policy was not read: " + p.Error.Message
}
