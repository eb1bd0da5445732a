package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLiveProgress runs the command with a terminal as its stderr: one line is redrawn in its place and taken away before
// anything else is printed, and no record is written.
func TestLiveProgress(t *testing.T) {
	terminal, slave := openTerminal(t)
	db := tables.New(t)
	addJobs(t, db, 200)
	slowDeletes(t, db, 2)
	in := invocation{args: []string{"sweep"}, env: append(at(db), "TERM=xterm"), policy: policyOf(with(jobsSweep, "batch: {limit: 50}")), stderr: slave}
	r := in.start(t)
	_ = slave.Close()
	shown, _ := io.ReadAll(terminal) // ends with an error when the command has let go of the terminal
	o := r.wait().must(t, exitDone)
	contains(t, o.stdout, "drained")
	contains(t, string(shown), "[1/1] jobs  50 removed", "batch 1 of 50 in", "\r")
	lacks(t, string(shown), "msg=")
	lines := strings.Split(strings.ReplaceAll(string(shown), "\r\n", "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "\x1b[2K\r") {
		t.Errorf("the line is left on the terminal: %q", last)
	}
	for _, line := range strings.Split(string(shown), "\r") {
		if strings.Contains(line, "[1/1]") && len(ansi.ReplaceAllString(line, "")) > 80 {
			t.Errorf("it would wrap on a terminal of 80 columns: %q", line)
		}
	}
}

var ansi = regexp.MustCompile(`\x1b\[\d*K`)

// openTerminal opens a pseudo-terminal of 80 columns.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
