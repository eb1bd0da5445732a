//go:build unix

package failures

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// point is a place of the wire at which the command is killed.
type point struct {
	batch   int  // after this many batches have begun
	message int  // and this many messages, of either side
	commit  bool // and at the next COMMIT, or its answer
	arrives bool // the message still does
}

func (pt point) String() string {
	return fmt.Sprintf("batch %d, message %d, at a commit %t, it arrives %t", pt.batch, pt.message, pt.commit, pt.arrives)
}

// TestKilled kills the command at random points of the wire, again and again over the same rows. After each kill no batch is
// there by half and nothing of the command is left on the server; the last run takes what is left, and the sum is exact.
func TestKilled(t *testing.T) {
	t.Parallel()
	rnd := random(t)
	s := onShared(t, *kills*100, *kills*150)
	p := s.through()
	var slowest time.Duration
	left, batches := s.all, 0
	for n := 1; n <= *kills; n++ {
		pt := point{batch: rnd.IntN(7), message: rnd.IntN(80), commit: rnd.IntN(3) == 0, arrives: rnd.IntN(2) == 0}
		if pt.batch == 0 {
			pt.message, pt.commit = 1+rnd.IntN(300), false // of the inspection, too
		}
		s.killAt(p, pt)
		slowest = max(slowest, s.quiet())
		batches = s.whole()
		now := s.rows()
		if gone := left.less(now); gone.Parents < 0 || gone.Children < 0 || gone.Jobs < 0 {
			t.Errorf("%s: rows came back: %+v after %+v", pt, now, left)
		}
		if left.less(now).Jobs%limit != 0 {
			t.Errorf("%s: %d jobs went; a batch is %d", pt, left.less(now).Jobs, limit)
		}
		if t.Failed() {
			t.Fatalf("killed at %s", pt)
		}
		left = now
	}
	if left.sum() == 0 || left == s.all {
		t.Errorf("%+v are left of %+v; the kills were not in the middle", left, s.all)
	}
	s.finish(policy(""))
	t.Logf("%d kills, %d batches of parents whole before them, %d rows gone before the last run; the server was quiet after %s at the latest", *kills, batches, s.all.less(left).sum(), slowest)
}

// killAt runs the command up to the point, and kills it there.
func (s *scene) killAt(p *proxy, pt point) {
	s.t.Helper()
	run := s.prepare(policy(""), nil)
	started, done := make(chan struct{}), false
	batches, messages := 0, 0
	p.on(func(m message) verdict {
		if done {
			return pass
		}
		if m.begins() {
			batches++
		}
		if batches >= pt.batch {
			messages++
		}
		if batches < pt.batch || messages < pt.message || pt.commit && !m.commits() && !m.committed() {
			return pass
		}
		<-started
		_ = run.cmd.Process.Kill()
		done = true
		if pt.arrives {
			return pass
		}
		return drop
	})
	func() {
		defer close(started)
		run.begin(s.t)
	}()
	if code := run.wait(s.t); code != -1 || run.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.t.Fatalf("the command ended by itself, with exit code %d, before %s\n%s", code, pt, run.stderr.String())
	}
	p.on(nil)
}
