//go:build unix

package failures

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/report"
)

// lazily has the server write its log to disk only when a commit waits for it, or after ten seconds: what a crash takes with
// it is then much and not little.
var lazily = pgserver.Options{Settings: []string{"wal_writer_delay=10s", "wal_writer_flush_after=1GB", "wal_buffers=32MB"}}

// TestServerCrashes stops the server as in a crash, in mid-sweep and while the command goes on to work, and starts it again.
// With commit: sync nothing that was reported as removed comes back. Otherwise batches may, whole, and the next run takes
// them.
func TestServerCrashes(t *testing.T) {
	t.Parallel()
	s, srv := onOwn(t, 0, 0, lazily)
	for range 2 {
		before, r := s.crash(srv, durably)
		s.honest(before, r)
		s.stays(before, r)
		s.whole()
		s.finish(policy(durably))
	}
	for range 3 { // a crash that comes just after the log was written brings nothing back
		before, r := s.crash(srv, "")
		back := r.Totals.Removed + r.Totals.Children - before.less(s.rows()).sum()
		s.whole()
		s.finish(policy(""))
		if t.Logf("without commit: sync %d rows that were reported as removed came back", back); back > 0 {
			return
		}
	}
	t.Errorf("nothing came back; so what commit: sync promises was not tried either")
}

// crash lets a sweep run into a crash of the server, in a batch after many, and is back when the server is.
func (s *scene) crash(srv *pgserver.Server, keys string) (rows, report.Report) {
	s.t.Helper()
	s.fill(800, 2000)
	before := s.all
	s.holder("children", 2011)
	run := s.start(policy(keys + lockWait))
	s.untilItWaits()
	srv.Kill(true)
	r := run.must(s.t, 1)
	if err := srv.Restart(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	left := s.rows()
	if left.Jobs == 0 || r.Totals.Removed == 0 {
		s.t.Errorf("the crash was not in the middle: %+v are left, and %+v", left, r.Totals)
	}
	return before, r
}

// stays holds that all that is reported as removed is gone.
func (s *scene) stays(before rows, r report.Report) {
	s.t.Helper()
	gone := before.less(s.rows())
	if said := r.Totals.Removed + r.Totals.Children; said > gone.sum() {
		s.t.Errorf("%d rows that were reported as removed came back", said-gone.sum())
	}
}

// untilRecovered waits until the server has ended every process of its own and taken connections again, after the death of
// one of them.
func untilRecovered(t *testing.T, srv *pgserver.Server) {
	t.Helper()
	eventually(t, "the server has recovered", func() bool {
		_, after, found := strings.Cut(srv.Log(), "reinitializing")
		return found && strings.Contains(after, "ready to accept connections")
	})
}
