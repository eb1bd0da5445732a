//go:build unix

package pgserver

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser is the user that runs the server where this process is root,
// since initdb and postgres refuse root.
func serverUser() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid > 0 {
			return uid, gid, true
		}
	}
	return 65534, 65534, true
}

// serverAttr puts a program into a process group of its own, so that a Ctrl-C
// at the terminal reaches this process alone, which then ends the server.
func serverAttr() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	setDeathSignal(a)
	if uid, gid, ok := serverUser(); ok {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return a
}

// chown gives a path to the server's user where that is not our own.
func chown(path string) error {
	if uid, gid, ok := serverUser(); ok {
		return os.Lchown(path, uid, gid)
	}
	return nil
}

// shutdown asks the server to end: at once and without a checkpoint, as after
// a crash, or else after rolling back what is open.
func (s *Server) shutdown(immediate bool) error {
	if immediate {
		return s.cmd.Process.Signal(syscall.SIGQUIT)
	}
	return s.cmd.Process.Signal(syscall.SIGINT)
}

// killGroup ends a program and all that it started.
func killGroup(cmd *exec.Cmd) error {
	return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
