package retention

import (
	"fmt"
	"strings"
	"time"

	"github.com/prunectl/prunectl/drain"
)

// String is the report for people: a line about the policy and one for each ledger, also
// where nothing was removed.
func (r CleanupReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "inbox_outbox in schema %s", quoted(r.Schema))
	if r.Policy.Fingerprint != "" {
		fmt.Fprintf(&b, ", policy %.12s recorded %s by %s", r.Policy.Fingerprint, r.Policy.At.Format(time.RFC3339), r.Policy.By)
	}
	for _, l := range r.Ledgers {
		b.WriteString("\n" + l.String())
	}
	return b.String()
}

// String is what was done to the ledger in one line.
func (l Ledger) String() string {
	d := l.Report
	parts := []string{fmt.Sprintf("%d removed", d.Removed)}
	if d.Locked > 0 {
		parts = append(parts, fmt.Sprintf("%d locked by others", d.Locked))
	}
	if d.Moved > 0 {
		parts = append(parts, fmt.Sprintf("%d changed by others", d.Moved))
	}
	if d.Stuck > 0 {
		parts = append(parts, fmt.Sprintf("%d that the database refuses to delete", d.Stuck))
	}
	if l.Counted {
		parts = append(parts, fmt.Sprintf("%s due left", l.Left))
		held := map[string]string{inbox: "not completed", outbox: "not delivered", leases: "in force"}[l.Name]
		text := fmt.Sprintf("%s %s", l.Held, held)
		if !l.Oldest.IsZero() {
			text += " (since " + l.Oldest.Format(time.RFC3339) + ")"
		}
		parts = append(parts, text)
		if l.Name != leases {
			parts = append(parts, fmt.Sprintf("%s within the window of %s", l.Within, l.Window))
		}
	} else {
		parts = append(parts, "what is left was not counted")
	}
	if d.Undated != nil && *d.Undated > 0 {
		parts = append(parts, fmt.Sprintf("%d without a usable time", *d.Undated))
	}
	return fmt.Sprintf("%s: %s; %s", l.Name, strings.Join(parts, ", "), l.why())
}

// why says what ended the sweep.
func (l Ledger) why() string {
	d := l.Report
	text := string(d.Stop)
	switch d.Stop {
	case drain.StopDrained:
		if d.Removed == 0 && d.Examined == 0 {
			text += ", for nothing was due"
		}
	case drain.StopCeiling, drain.StopBudget:
		text = fmt.Sprintf("not drained: %s of %s", d.Stop, d.StopBy)
	default:
		text = "not drained: " + string(d.Stop)
	}
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	if d.Stop == drain.StopRefused {
		return text
	}
	return fmt.Sprintf("%s; %d batches in %s through %s, cutoff %s", text, d.Batches, d.Elapsed.Round(time.Millisecond), l.Index, l.Cutoff)
}

// String is the agreement in one line, for people.
func (a Agreement) String() string {
	text := fmt.Sprintf("policy %.12s recorded %s by %s", a.Policy.Fingerprint, a.Policy.At.Format(time.RFC3339), a.Policy.By)
	switch a.Action {
	case Recorded:
		return "recorded: " + text
	case Replaced:
		return "replaced: " + text + "; " + spoken(a.Fields) + after(a.Due)
	}
	return "nothing to do: " + text
}

func after(due []Due) string {
	if len(due) == 0 {
		return ""
	}
	return "; " + spoken(due)
}
