//go:build unix

package failures

import (
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestNumberTakenByAnother loses a batch in a crash before its COMMIT arrives, and lets the first transaction after that
// commit before the command asks. Nothing of the batch is on disk, so that the other one has its number: that this number is
// committed says nothing of the batch.
func TestNumberTakenByAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		crash func(*scene, *pgserver.Server) *pgtest.DB // it returns where the server then is
	}{
		{"the server is started again", func(s *scene, srv *pgserver.Server) *pgtest.DB {
			srv.Kill(true)
			if err := srv.Restart(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
			return s.db
		}},
		{"the server recovers by itself", func(s *scene, srv *pgserver.Server) *pgtest.DB {
			victim := s.db.Conn(s.t)
			if err := syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL); err != nil {
				s.t.Fatal(err)
			}
			untilRecovered(s.t, srv)
			return s.db
		}},
		{"a standby takes over", func(s *scene, srv *pgserver.Server) *pgtest.DB {
			standby := databaseOf(ownStandby(s.t, srv))
			srv.Kill(true)
			standby.Exec(s.t, "select pg_promote()")
			return standby
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, srv := onOwn(t, 10, 300, lazily)
			p := s.through()
			batch, down, number := 0, make(chan struct{}), ""
			p.on(func(m message) verdict {
				if m.begins() {
					batch++
				}
				switch {
				case batch < 3:
				case m.atCommit && !m.fromServer:
					return swallow
				case m.atCommit && m.inFlight == 0 && !p.keeps:
					p.keeps = true // nobody asks before the number is taken
					close(down)
				}
				return pass
			})
			before := s.all
			run := s.start(alone("jobs", durably))
			<-down
			number = s.db.Text(t, "select backend_xid from pg_stat_activity where application_name = 'prunectl' and backend_xid is not null")
			s.db = c.crash(s, srv)
			if taken := s.db.Text(t, "select pg_current_xact_id()"); taken != number {
				t.Errorf("%s is the next transaction's number; the batch's was %s", taken, number)
			}
			p.redirect(t, s.db)
			p.tell()
			r := run.must(t, 1)
			s.quiet()
			s.honest(before, r)
			asked, answered := p.asks()
			t.Logf("asked %d, answered %v", asked, answered)
			if unknowns(r) != 1 || answered["committed"] == 0 {
				t.Errorf("%d unknown commits, answered %v", unknowns(r), answered)
			}
			s.dsn = s.db.DSN
			s.finish(policy(durably))
		})
	}
}
