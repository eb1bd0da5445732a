//go:build unix

package failures

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
)

// waitsForStandby is a COMMIT of the command that waits for a standby.
const waitsForStandby = "select exists (select from pg_stat_activity where application_name = 'prunectl' and wait_event = 'SyncRep')"

// TestStandbyThatDoesNotAnswer sweeps a server whose commits wait for a standby that is not there. No setting of the server
// ends such a wait. With commit: sync the batch's own deadline does, and the server then says that the batch is committed;
// without it nothing waits.
func TestStandbyThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s, _ := onOwn(t, 60, 40, pgserver.Options{})
	p := s.through()
	s.db.Exec(t, "alter system set synchronous_standby_names = 'nobody'")
	s.db.Exec(t, "set synchronous_commit = local; select pg_reload_conf()")
	s.until("the setting holds", "select setting = 'nobody' from pg_settings where name = 'synchronous_standby_names'")

	before := s.all
	waited := false
	p.on(func(m message) verdict { // the batch's COMMIT is not answered by itself
		waited = waited || m.commits()
		return pass
	})
	run := s.start(alone("jobs", durably+"timeouts: {statement: 500ms, lock: 100ms}\n"))
	s.until("the COMMIT waits", waitsForStandby)
	if now := s.rows(); now != before {
		t.Errorf("%+v is to be seen while the COMMIT waits", now)
	}
	r := run.must(t, 0)
	s.honest(before, r)
	asked, answered := p.asks()
	if sw := of(t, r, "jobs"); !waited || asked == 0 || answered["committed"] != 1 || sw.Removed != 40 || !sw.Drained || sw.UnknownCommits != 0 {
		t.Errorf("asked %d times, answered %v; %+v", asked, answered, sw)
	}
	s.quiet()

	before = s.rows()
	r = s.start(alone("parents", "")).must(t, 0)
	s.honest(before, r)
	if left := s.rows(); left.Parents != 0 || r.Elapsed > 10 {
		t.Errorf("%+v are left after %f s", left, r.Elapsed)
	}
	if now, _ := p.asks(); now != asked {
		t.Errorf("without commit: sync an outcome was asked for")
	}
	s.quiet()
}

// TestFailover sweeps a primary with a synchronous standby, over a connection string that names both.
func TestFailover(t *testing.T) {
	t.Parallel()
	s, primary := onOwn(t, 400, 1500, pgserver.Options{})
	standby := ownStandby(t, primary)
	on := &scene{t: t, bin: s.bin, db: databaseOf(standby), dsn: standby.DSN("postgres"), all: s.all}
	s.db.Exec(t, "alter system set synchronous_standby_names = 'standby'")
	s.db.Exec(t, "set synchronous_commit = local; select pg_reload_conf()")
	s.until("the standby is waited for", "select exists (select from pg_stat_replication where sync_state = 'sync')")

	// A standby takes no deletes.
	refused := on.start(policy(""))
	r := refused.must(t, 1)
	refused.says(t, "read-only target: the server is a standby")
	if r.Error == nil || !strings.Contains(r.Error.Message, "read-only target: the server is a standby") || len(r.Sweeps) != 0 {
		t.Errorf("%+v", r)
	}

	both := strings.Replace(primary.DSN("postgres"), "/postgres?", hostOf(standby)+"/postgres?target_session_attrs=read-write&", 1)
	s.dsn, on.dsn = both, both

	// One that is held up holds up a COMMIT, and no longer than that.
	pid := on.db.Int(t, "select pid from pg_stat_activity where backend_type = 'walreceiver'")
	before := s.all
	stop(t, pid)
	run := s.start(alone("parents", durably))
	s.until("the COMMIT waits", waitsForStandby)
	goOn(t, pid)
	s.honest(before, run.must(t, 0))
	s.whole()
	if left := s.rows(); left.Parents != 0 {
		t.Errorf("%+v are left", left)
	}

	// The primary is lost in mid-sweep.
	before = s.rows()
	s.holder("jobs", 800)
	run = s.start(policy(durably + lockWait))
	s.untilItWaits()
	primary.Kill(true)
	on.db.Exec(t, "select pg_promote()")
	r = run.must(t, 1)
	on.honest(before, r)
	on.stays(before, r)
	if left := on.rows(); left.Jobs == 0 || r.Totals.Removed == 0 {
		t.Errorf("the failover was not in the middle: %+v are left, and %+v", left, r.Totals)
	}
	on.quiet()
	on.whole()

	// The next run finds the new primary.
	before = on.rows()
	r = on.start(policy(durably)).must(t, 0)
	on.honest(before, r)
	if left := on.rows(); left.sum() != 0 || r.Database == nil || r.Database.Port != standby.Port {
		t.Errorf("%+v are left, swept was %+v", left, r.Database)
	}
	on.quiet()
}
