package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/internal/report"
)

// agree settles the policy of each inbox and outbox before anything is removed: the file's is the recorded one, or becomes
// it. Where it is neither, the sweeps over that component are refused. The error ends the run: a yes is needed that nobody
// is there to give, and nothing was touched.
func (s *session) agree(ctx context.Context, f *sweepFlags) error {
	agreed := map[*inboxPolicy]bool{}
	for _, p := range s.policies {
		if p.entry.Agreement == report.Different && f.replacePolicy && p.shortens() {
			var err error
			if agreed[p], err = s.consent(ctx, p, f.yes); err != nil {
				return err
			}
		}
	}
	for _, p := range s.policies {
		switch {
		case p.err != nil:
			s.refusePolicy(ctx, p, p.err)
		case p.entry.Agreement == report.Same:
		case p.entry.Agreement == report.Different && (!f.replacePolicy || p.shortens() && !agreed[p]):
			s.refusePolicy(ctx, p, nil)
		default:
			s.record(ctx, p, retention.Options{Replace: f.replacePolicy, Yes: agreed[p]})
		}
	}
	return nil
}

// consent finds whether the rows that a shorter window makes due may go: by --yes, or by what a person answers.
func (s *session) consent(ctx context.Context, p *inboxPolicy, yes bool) (bool, error) {
	if yes {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, policyPatience)
	defer cancel()
	// Without a yes nothing is replaced: what becomes due is counted.
	_, err := retention.Agree(ctx, s.pool, p.schema, p.given, retention.Options{Replace: true})
	var needs *retention.NeedsYesError
	if !errors.As(err, &needs) {
		p.err = err
		return err == nil, nil // nil: somebody else was faster, and no window gets shorter any more
	}
	if !s.canAsk() {
		return false, usagef("%w", needs)
	}
	s.out.release()
	var due []string
	for _, d := range needs.Due {
		due = append(due, d.String())
	}
	return s.ask(s.interrupt.soft, fmt.Sprintf("inbox_outbox in %s: %s; %s. Replace the recorded policy? Only yes does: ", printable(p.schema), p.entry.Changes(), strings.Join(due, "; ")))
}

// record agrees on the policy in the database.
func (s *session) record(ctx context.Context, p *inboxPolicy, o retention.Options) {
	ctx, cancel := context.WithTimeout(ctx, policyPatience)
	defer cancel()
	a, err := retention.Agree(ctx, s.pool, p.schema, p.given, o)
	if err != nil {
		s.refusePolicy(ctx, p, err)
		return
	}
	p.recorded = a.Policy
	p.entry.Fingerprint, p.entry.RecordedAt, p.entry.RecordedBy = &a.Policy.Fingerprint, &a.Policy.At, &a.Policy.By
	switch a.Action {
	case retention.Recorded:
		p.is(report.Recorded, nil)
	case retention.Replaced:
		p.is(report.Replaced, nil)
		p.entry.Differences = changes(a.Fields)
		for _, d := range a.Due {
			p.entry.Due = append(p.entry.Due, report.DueByReplacing{Ledger: d.Ledger, Bounded: report.Bounded{Count: d.Rows.N, IsFloor: d.Rows.AtLeast}})
		}
		s.out.tell("inbox_outbox in %s: %s", printable(p.schema), p.entry.Replacement())
	default:
		p.is(report.Same, nil)
	}
}

// refusePolicy refuses the sweeps over the component. An error that is the database's, and no answer, fails them.
func (s *session) refusePolicy(ctx context.Context, p *inboxPolicy, err error) {
	var different *retention.DifferenceError
	if errors.As(err, &different) { // somebody else recorded it in between
		p.is(report.Different, nil)
		p.entry.Differences = changes(different.Fields)
		p.entry.Fingerprint, p.entry.RecordedAt, p.entry.RecordedBy = &different.Recorded.Fingerprint, &different.Recorded.At, &different.Recorded.By
	}
	c := report.Check{Check: "policy", Result: report.Refuse}
	switch {
	case p.entry.Agreement == report.Different && (err == nil || different != nil):
		c.Detail, c.Fix = p.difference()
	case p.entry.Agreement == report.Unusable || missesRight(err) || errors.Is(err, retention.ErrNotInstalled):
		c.Detail, c.Fix = s.obstacle(p, err)
	default:
		for _, in := range p.sweeps {
			in.fail(ctx, err)
			in.arms = nil
		}
		return
	}
	for _, in := range p.sweeps {
		c.Position = s.file.Position(in.Name, "window")
		in.refuse(c)
	}
}

// canAsk reports whether a person is there to answer.
func (a *app) canAsk() bool {
	return isTerminal(a.stdin) && isTerminal(a.out.stderr)
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// ask asks on the terminal. Anything but a yes is a no, and so is a signal.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	line, err := a.answer(ctx, question)
	return err == nil && strings.TrimSpace(line) == "yes", err
}

// askFor asks for a text to be typed. Only the line's end is cut from the answer: blanks count, and a line without an end is
// no answer.
func (a *app) askFor(ctx context.Context, question, text string) (bool, error) {
	line, err := a.answer(ctx, question)
	line, ended := strings.CutSuffix(line, "\n")
	return err == nil && ended && (line == text || line == text+"\r"), err
}

// answer is the line that a person types, with its end; what was typed before the end of the input where there is no more.
func (a *app) answer(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.out.stderr, question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		return line, nil
	case <-ctx.Done():
		fmt.Fprintln(a.out.stderr)
		return "", ctx.Err()
	}
}
