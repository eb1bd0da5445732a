package main

import (
	"context"
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
