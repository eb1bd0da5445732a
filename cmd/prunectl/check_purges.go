package main

import (
	"context"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// checkPurges asks the catalog about each purge that is meant. One that is refused, or cannot be looked at, does not stop
// the others.
func (s *session) checkPurges(ctx context.Context, strict bool) {
	for _, p := range s.purges {
		entry := report.NewPurgeCheck(p.Name)
		found, err := postgres.CheckPurge(ctx, s.db, p)
		switch {
		case err != nil && ctx.Err() != nil:
			entry.Stop = report.NotReached
		case err != nil:
			entry.Stop, entry.Error = report.Failed, errorOf(err)
		default:
			for _, c := range found.Checks {
				entry.Checks = append(entry.Checks, s.purgeFinding(p.Name, c))
				s.warned = s.warned || c.Result == postgres.Warning
				if c.Result == postgres.Refused || strict && c.Result == postgres.Warning {
					entry.Stop = report.Refused
				}
			}
		}
		s.report.Purges = append(s.report.Purges, entry)
	}
}

// purgeFinding is a finding of the catalog with its place in the policy file.
func (s *session) purgeFinding(purge string, c postgres.Check) report.Check {
	out := report.Check{Check: c.Name, Result: report.Verdict(c.Result), Detail: c.Detail}
	if c.Fix != "" {
		out.Fix = &c.Fix
	}
	if c.Result != postgres.OK {
		out.Position = s.file.PurgePosition(purge, c.Key)
	}
	return out
}
