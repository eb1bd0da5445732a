//go:build unix

package failures

import (
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/report"
)

// batchPID is the server's process that runs the batch which waits.
const batchPID = "select pid from pg_stat_activity where application_name = 'prunectl' and wait_event_type = 'Lock' and datname = current_database()"

// durably makes each commit wait for the disk.
const durably = "commit: sync\n"

// lockWait lets a batch wait for its row as long as the test needs.
const lockWait = "timeouts: {lock: 20s, statement: 40s}\n"

// TestBackendTerminated ends the batch's connection from another one, as an administrator does: the server says so, nothing
// is unknown, and the batch is not counted.
func TestBackendTerminated(t *testing.T) {
	t.Parallel()
	s := onShared(t, 300, 300)
	holder := s.holder("children", 2011)
	before := s.all
	run := s.start(policy(lockWait))
	s.untilItWaits()
	s.db.Exec(t, "select pg_terminate_backend(pid) from ("+batchPID+") b")
	r := run.must(t, 1)
	s.honest(before, r)
	sw := of(t, r, "parents")
	if unknowns(r) != 0 || sw.Stop != report.Failed || sw.Error == nil || sw.Error.SQLState == nil || *sw.Error.SQLState != "57P01" || sw.Removed == 0 {
		t.Errorf("%+v, %+v", sw, sw.Error)
	}
	if jobs := of(t, r, "jobs"); !jobs.Drained { // one that fails does not stop the other
		t.Errorf("%+v", jobs)
	}
	_ = holder.Close(t.Context())
	s.quiet()
	s.whole()
	s.finish(policy(""))
}

// TestBackendKilled kills the server's process that runs the batch. The server ends every connection, recovers by itself,
// and knows nothing of the batch; with commit: sync all that was reported stays gone.
func TestBackendKilled(t *testing.T) {
	t.Parallel()
	s, srv := onOwn(t, 300, 300, pgserver.Options{})
	s.holder("children", 2011)
	before := s.all
	run := s.start(policy(durably + lockWait))
	s.untilItWaits()
	pid := int(s.db.Int(t, batchPID))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := run.must(t, 1)
	untilRecovered(t, srv)
	s.honest(before, r)
	s.stays(before, r)
	if sw := of(t, r, "parents"); sw.Removed == 0 || sw.Stop != report.Failed {
		t.Errorf("%+v", sw)
	}
	s.quiet()
	s.whole()
	s.finish(policy(durably))
}
