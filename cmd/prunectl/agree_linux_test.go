package main

import (
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestAsked runs the command on a terminal: a shorter window asks, with how many rows become due by it, and only a yes
// replaces the policy. A signal is none, and neither is a terminal that only shows.
func TestAsked(t *testing.T) {
	const question = "inbox_outbox in inbox_outbox: inbox_window: recorded 20d, given 5d; 15 rows of inbox become due by it. Replace the recorded policy? Only yes does: "
	for _, c := range []struct {
		name, answer string
		args         string
		code         int
		left         string
	}{
		{"yes", "yes\n", "sweep --replace-policy", exitDone, "4 30 19 30 0 0"},
		{"yes in silence", "yes\n", "sweep --replace-policy -q", exitDone, "4 30 19 30 0 0"},
		{"no", "no\n", "sweep --replace-policy", exitRefused, "19 30 19 30 0 0"},
		{"a word that is none", "y\n", "sweep --replace-policy", exitRefused, "19 30 19 30 0 0"},
		{"the end", "\x04", "sweep --replace-policy", exitRefused, "19 30 19 30 0 0"},
		{"a signal", "", "sweep --replace-policy", exitSignal + int(syscall.SIGTERM), "19 30 19 30 0 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := inboxes.New(t)
			fillInbox(t, db, inboxOutbox)
			invocation{args: []string{"sweep"}, env: at(db), policy: inboxPolicyOf(inboxOutbox, "20d", "20d")}.run(t).must(t, exitDone)
			addJobs(t, db, 5)
			terminal, slave := openTerminal(t)
			r := invocation{args: strings.Fields(c.args), env: append(at(db), "TERM=xterm"), policy: inboxPolicyOf(inboxOutbox, "5d", "20d"), stdin: slave, stderr: slave}.start(t)
			_ = slave.Close()
			var shown locked
			var read sync.WaitGroup
			read.Go(func() { _, _ = io.Copy(&shown, terminal) })
			eventually(t, "it asks", func() bool { return strings.Contains(shown.String(), question) })
			if got := inboxLeft(t, db, inboxOutbox); got != "19 30 19 30 0 5" {
				t.Errorf("left before the answer: %s", got)
			}
			if c.answer == "" {
				r.signal(syscall.SIGTERM)
			} else if _, err := terminal.WriteString(c.answer); err != nil {
				t.Fatal(err)
			}
			o := r.wait()
			read.Wait()
			if !strings.HasPrefix(shown.String(), "database "+db.Name) {
				t.Errorf("nobody is told where it asks: %q", shown.String())
			}
			if o.code != c.code {
				t.Errorf("exit code %d instead of %d\n%s%s", o.code, c.code, o.stdout, shown.String())
			}
			if got := inboxLeft(t, db, inboxOutbox); got != c.left {
				t.Errorf("left: %s", got)
			}
		})
	}
	// Who cannot see the question is not asked.
	db := inboxes.New(t)
	fillInbox(t, db, inboxOutbox)
	invocation{args: []string{"sweep"}, env: at(db), policy: inboxPolicyOf(inboxOutbox, "20d", "20d")}.run(t).must(t, exitDone)
	_, slave := openTerminal(t)
	o := invocation{args: strings.Fields("sweep --replace-policy"), env: at(db), policy: inboxPolicyOf(inboxOutbox, "5d", "20d"), stdin: slave}.run(t).must(t, exitUsage)
	contains(t, o.stderr, "say yes to that (--yes)")
	_ = slave.Close()
}
