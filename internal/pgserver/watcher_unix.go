//go:build unix

package pgserver

import (
	"io"
	"os/exec"
	"syscall"
)

// watch is what the watcher runs: it waits for the end of its input, which
// comes when the owner closes the pipe or dies, ends a server that still runs,
// and removes the folder. A server in immediate shutdown takes five seconds at
// most; the last loop is for files that its last children still write.
const watch = `
read -r _
pid=$(head -n 1 "$1/pg/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	n=0
	while kill -0 "$pid" 2>/dev/null && [ $n -lt 200 ]; do
		n=$((n+1))
		if [ $n -eq 150 ]; then kill -KILL "$pid" 2>/dev/null; fi
		sleep 0.05
	done
fi
n=0
while [ -e "$1" ] && [ $n -lt 20 ]; do
	n=$((n+1))
	rm -rf "$1" 2>/dev/null && [ ! -e "$1" ] && break
	sleep 0.05
done
`

// startWatcher starts the watcher of a folder; the returned function ends it.
// It runs in a session of its own, away from the terminal's signals, and holds
// none of our outputs open, so that nobody who reads them waits for it.
func startWatcher(dir string) (end func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", watch, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var in io.WriteCloser
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait() // its status says nothing that the folder does not
	}, nil
}
