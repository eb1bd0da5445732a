package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// surveyMax bounds what is read to say why rows are held.
const surveyMax = 100_000

// arm is the entry of an arm before anything was done.
func arm(sw policy.Sweep, a *postgres.Arm, now time.Time) report.Arm {
	spec := a.Spec()
	out := report.Arm{Arm: strings.TrimPrefix(spec.Name, sw.Name+" "), Index: a.Index()}
	if !spec.Window.IsNever() {
		seconds := spec.Window.Seconds()
		cutoff := spec.Window.Cutoff(now).Time()
		out.Window, out.Cutoff = &seconds, &cutoff
	}
	return out
}

// words are what the lines of the report for a person need to know of a sweep.
func words(sw policy.Sweep) report.Words {
	w := report.Words{Age: sw.Age, InForce: inForce(sw)}
	switch g := sw.Guard; {
	case g.None != "":
		w.Guard = fmt.Sprintf("nothing guards its rows: %q", g.None)
	case g.Owner != nil && g.Owner.Final:
		w.Guard = fmt.Sprintf("owner %s is read without a lock: the policy says that its terminal states are final", g.Owner.Table)
	case g.Owner != nil:
		w.Guard = fmt.Sprintf("owner %s is locked FOR SHARE", g.Owner.Table)
	}
	if sw.Guard.Owner != nil {
		w.Owner = sw.Guard.Owner.Table.String()
	}
	return w
}

// survey says why rows past their window are kept. It is asked beside the work, so a failure leaves it out.
func survey(ctx context.Context, in *inspected, now time.Time) {
	for _, a := range in.arms {
		spec := a.Spec()
		c := spec.Window.Cutoff(now)
		if c.IsZero() || !spec.CountsHeld() {
			continue
		}
		held, err := a.HeldBy(ctx, c, surveyMax)
		if err != nil {
			continue
		}
		for _, h := range held {
			in.entry.HeldBy = addHeld(in.entry.HeldBy, h)
		}
	}
}

func addHeld(to []report.HeldBy, h pruner.HeldBy) []report.HeldBy {
	out := report.HeldBy{Reason: h.Reason, Rows: h.Rows, Owners: h.Owners, Oldest: utc(h.Oldest)}
	if h.Value != "" {
		out.Value = &h.Value
	}
	at := slices.IndexFunc(to, func(o report.HeldBy) bool {
		return o.Reason == out.Reason && text(o.Value) == text(out.Value)
	})
	if at < 0 {
		return append(to, out)
	}
	same := &to[at]
	same.Rows += out.Rows
	same.Owners = nil // an owner may have rows in both arms
	if same.Oldest == nil || out.Oldest != nil && out.Oldest.Before(*same.Oldest) {
		same.Oldest = out.Oldest
	}
	return to
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// inForce are the values that a sweep goes by, written or not.
func inForce(sw policy.Sweep) string {
	window := sw.Window.String()
	if len(sw.ByState) > 0 {
		var each []string
		for _, w := range sw.ByState {
			each = append(each, w.State.String()+" "+w.Window.String())
		}
		window = strings.Join(each, ", ")
	}
	d := policy.FormatDuration
	var ceilings []string
	if c := sw.Ceiling.Rows; c < policy.NoCeiling {
		ceilings = append(ceilings, report.Number(c)+" rows")
	}
	if c := sw.Ceiling.Batches; c < policy.NoCeiling {
		ceilings = append(ceilings, report.Number(c)+" batches")
	}
	if c := sw.Ceiling.Time; c < policy.NoCeiling {
		ceilings = append(ceilings, d(c))
	}
	if len(ceilings) == 0 {
		ceilings = append(ceilings, "none")
	}
	parts := []string{
		"window " + window, "floor " + d(sw.Floor), "since " + sw.Since.Format(time.DateOnly),
		"batch " + report.Number(sw.Batch.Limit) + " in " + d(sw.Batch.Target),
		"ceiling " + strings.Join(ceilings, ", "),
		"timeouts " + d(sw.Timeouts.Statement) + " statement, " + d(sw.Timeouts.Lock) + " lock",
	}
	if sw.Pause > 0 {
		parts = append(parts, "pause "+d(sw.Pause))
	}
	if sw.Sync {
		parts = append(parts, "commit sync")
	} else {
		parts = append(parts, "commit async")
	}
	return strings.Join(parts, "; ")
}
