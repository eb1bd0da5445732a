package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
)

const inboxOutbox = "inbox_outbox"

// policyPatience is how long is waited for what is recorded: a lock on it is another command's that agrees.
const policyPatience = 30 * time.Second

// inboxPolicy is the policy of the component inbox_outbox in one schema: what is recorded, and what the file makes of it.
// There is one for a database, so that two programs do not remove what the other one counts on.
type inboxPolicy struct {
	schema   string
	sweeps   []*inspected // over the tables of the component, those that are not refused
	given    inboxoutbox.Settings
	recorded retention.Policy
	entry    report.InboxPolicy
	err      error // why the windows cannot be in force, or why the policy was not read
}

// readPolicies holds the windows of the file to the recorded ones, for each inbox or outbox that is to be swept.
func (s *session) readPolicies(ctx context.Context, all []*inspected) {
	for _, c := range s.components {
		p := &inboxPolicy{schema: c.schema, entry: report.InboxPolicy{Schema: c.schema, Differences: []report.WindowChange{}, Due: []report.DueByReplacing{}}}
		windowed := false
		for _, in := range all {
			if c.name == inboxOutbox && s.componentOf(in.Table) == c && in.entry.Stop == "" {
				p.sweeps = append(p.sweeps, in)
				windowed = windowed || ledgerOf(in.Sweep) != nil
			}
		}
		if windowed && s.compare(ctx, p) {
			s.policies = append(s.policies, p)
		}
	}
}

// ledgerOf is the component's own sweep of the same table, where the policy says a window for it.
func ledgerOf(sw policy.Sweep) *policy.Sweep {
	for _, own := range retention.Sweeps(sw.Table.Schema, inboxoutbox.Settings{}) {
		if own.Table == sw.Table && !own.Expires {
			return &own
		}
	}
	return nil
}

// compare reads what is recorded and finds how the file stands to it; false where the file says no window.
func (s *session) compare(ctx context.Context, p *inboxPolicy) bool {
	ctx, cancel := context.WithTimeout(ctx, policyPatience)
	defer cancel()
	recorded, there, err := retention.ReadPolicy(ctx, s.pool, p.schema)
	if err != nil {
		p.is(report.NotRead, err)
		return true
	}
	p.recorded = recorded
	p.given = recorded.Fields.Settings().WithDefaults()
	said, err := p.take(s.file.Sweeps)
	if !said {
		return false
	}
	if there {
		p.entry.Fingerprint, p.entry.RecordedAt, p.entry.RecordedBy = &recorded.Fingerprint, &recorded.At, &recorded.By
	}
	switch {
	case err != nil:
		p.is(report.Unusable, err)
	case !there:
		p.is(report.Unrecorded, nil)
	case recorded.Fingerprint == p.given.Fingerprint():
		p.is(report.Same, nil)
	default:
		p.is(report.Different, nil)
	}
	if there {
		p.entry.Differences = changes(recorded.Fields.Differences(p.given.Fields()))
	}
	return true
}

func (p *inboxPolicy) is(a report.Agreement, err error) {
	p.entry.Agreement, p.entry.Error, p.err = a, errorOf(err), err
}

// take takes the windows of the file's sweeps over the inbox and the outbox into what is given. What no file can say stays
// as it is recorded; only an interval that is longer than a window is lowered to it.
func (p *inboxPolicy) take(sweeps []policy.Sweep) (said bool, err error) {
	shortest := map[string]policy.Window{}
	for _, sw := range sweeps {
		own := ledgerOf(sw)
		if sw.Table.Schema != p.schema || own == nil || sw.Shortest().IsNever() {
			continue
		}
		said = true
		switch {
		case sw.Expires || sw.Age != own.Age:
			return said, fmt.Errorf("sweep %s goes by %s, and a policy is about the time since %s; write age: %s", sw.Name, sw.Age, own.Age, own.Age)
		case sw.Shortest().IsAtOnce():
			return said, fmt.Errorf("%w: the window of %s is at_once, and the least is %s", inboxoutbox.ErrSettings, sw.Name, policy.FormatDuration(inboxoutbox.MinWindow))
		}
		if w, ok := shortest[own.Name]; !ok || sw.Shortest().Shorter(w) {
			shortest[own.Name] = sw.Shortest()
		}
	}
	for name, w := range shortest {
		if name == "inbox" {
			p.given.InboxWindow = w.Duration()
		} else {
			p.given.OutboxWindow = w.Duration()
		}
	}
	p.given.CleanupInterval = min(p.given.CleanupInterval, p.given.InboxWindow, p.given.OutboxWindow)
	return said, p.given.Check()
}

// shortens reports whether the file makes a window shorter than it is recorded.
func (p *inboxPolicy) shortens() bool {
	before := p.recorded.Fields.Settings().WithDefaults()
	return p.given.InboxWindow < before.InboxWindow || p.given.OutboxWindow < before.OutboxWindow
}

// checkPolicies adds to the sweeps over an inbox or an outbox how the file stands to the recorded policy.
func (s *session) checkPolicies(ctx context.Context) {
	for _, p := range s.policies {
		c := report.Check{Check: "policy", Result: report.OK}
		switch p.entry.Agreement {
		case report.Unrecorded:
			if !s.mayRecord(ctx, p) {
				s.refusePolicy(ctx, p, errMayNotRecord)
				continue
			}
			c.Detail = "no policy is recorded yet; the first sweep records this one"
		case report.Same:
			c.Detail = "the policy is that of the database, " + p.entry.By()
		case report.Different:
			c.Result = report.Warning
			c.Detail, c.Fix = p.difference()
		default:
			s.refusePolicy(ctx, p, p.err)
			continue
		}
		for _, in := range p.sweeps {
			if ledgerOf(in.Sweep) == nil {
				continue
			}
			one := c
			if one.Result != report.OK {
				one.Position = s.file.Position(in.Name, "window")
			}
			in.entry.Checks = append(in.entry.Checks, one)
		}
	}
}

// difference is what a file has other than the database, and what to do about it.
func (p *inboxPolicy) difference() (detail string, fix *string) {
	do := "write the recorded one into the file, or put the file's in its place with prunectl sweep --replace-policy"
	return "the database has another policy, " + p.entry.By() + ": " + p.entry.Changes(), &do
}

// obstacle is what keeps a policy from being agreed on, and what to do about it.
func (s *session) obstacle(p *inboxPolicy, err error) (detail string, fix *string) {
	if missesRight(err) {
		do := fmt.Sprintf("GRANT SELECT, INSERT, UPDATE ON %s TO %s", p.table(), pgx.Identifier{s.report.Database.Role}.Sanitize())
		return "the role may not read or record the policy of the database", &do
	}
	return err.Error(), nil
}

// table is where the policy is recorded.
func (p *inboxPolicy) table() string { return pgx.Identifier{p.schema, "settings"}.Sanitize() }

// errMayNotRecord is what the first sweep would fail with.
var errMayNotRecord = &pgconn.PgError{Code: insufficientPrivilege}

func (s *session) mayRecord(ctx context.Context, p *inboxPolicy) bool {
	var may bool
	err := s.pool.QueryRow(ctx, "SELECT has_table_privilege($1::text, 'INSERT')", p.table()).Scan(&may)
	return err == nil && may
}

const insufficientPrivilege = "42501"

func missesRight(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == insufficientPrivilege
}

func changes(all []inboxoutbox.Difference) []report.WindowChange {
	value := func(v string) *string {
		if v == "" {
			return nil
		}
		return &v
	}
	out := []report.WindowChange{}
	for _, d := range all {
		out = append(out, report.WindowChange{Setting: d.Setting, Recorded: value(d.Recorded), Given: value(d.Given)})
	}
	return out
}

// tellPolicies puts the policies into the report.
func (s *session) tellPolicies() {
	for _, p := range s.policies {
		s.report.Policies = append(s.report.Policies, p.entry)
		s.warned = s.warned || p.err != nil || p.entry.Agreement == report.Different
	}
}
