//go:build unix

package failures

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
)

// TestDiskFull lets the disk of the server's log run full in mid-sweep: the server ends, and does not come up before there
// is room again. What was reported is gone then, what was not is there, and the next run takes it.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	s, srv := onOwn(t, 10, 3000, pgserver.Options{
		Durable:  true, // whole pages in the log, so that a sweep fills it
		InitArgs: []string{"--waldir=" + filepath.Join(disk, "wal"), "--wal-segsize=1"},
		Settings: []string{"min_wal_size=2MB", "max_wal_size=4MB", "wal_keep_size=0"},
	})
	s.db.Exec(t, "update jobs set pad = repeat('x', 1900)") // few rows a page
	s.db.Exec(t, "checkpoint")
	before := s.all
	filler := fillUp(t, disk)
	r := s.start(policy(durably)).must(t, 1)
	eventually(t, "the server has ended or answers no more", func() bool { return strings.Contains(srv.Log(), "No space left on device") })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.honest(before, r)
	s.stays(before, r)
	s.whole()
	if left := s.rows(); left.Jobs == 0 || r.Totals.Removed == 0 {
		t.Errorf("the disk did not run full in the middle: %+v are left, and %+v", left, r.Totals)
	}
	s.finish(policy(durably))
}

// smallDisk is a file system in memory. Without the right to mount one there is no disk to fill, and the test is skipped.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "prunectl-disk-") // not t.TempDir, which the server's user cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m,mode=1777", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here, so that no disk can be filled: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}

// fillUp leaves no room in the file system of dir, by a file.
func fillUp(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for size := 1 << 20; size > 0; {
		switch _, err := f.Write(make([]byte, size)); {
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, io.ErrShortWrite):
			size /= 2
		case err != nil:
			t.Fatal(err)
		}
	}
	return name
}
