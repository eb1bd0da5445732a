//go:build !unix

package pgserver

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

func serverAttr() *syscall.SysProcAttr { return nil }

func chown(string) error { return nil }

// shutdown goes through pg_ctl, which knows how to signal a server where the
// system has no signals.
func (s *Server) shutdown(immediate bool) error {
	signal := "INT"
	if immediate {
		signal = "QUIT"
	}
	_, err := run(context.Background(), s.home, filepath.Join(s.BinDir, program("pg_ctl")),
		"kill", signal, strconv.Itoa(s.cmd.Process.Pid))
	return err
}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
