//go:build unix

package failures

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// ownStandby is a standby that streams from the primary.
func ownStandby(t *testing.T, primary *pgserver.Server) *pgserver.Server {
	t.Helper()
	standby := pgtest.Own(t, pgserver.Options{StandbyOf: primary})
	eventually(t, "the standby has what there is", func() bool {
		return databaseOf(primary).Text(t, "select exists (select from pg_stat_replication where replay_lsn = pg_current_wal_lsn())") == "t"
	})
	return standby
}

// hostOf is a server as a further one of a connection string.
func hostOf(srv *pgserver.Server) string { return fmt.Sprintf(",127.0.0.1:%d", srv.Port) }

func stop(t *testing.T, pid int64) {
	t.Helper()
	if err := syscall.Kill(int(pid), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(int(pid), syscall.SIGCONT) }) // also where the test ends early: it could not be shut down
}

func goOn(t *testing.T, pid int64) {
	t.Helper()
	if err := syscall.Kill(int(pid), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
