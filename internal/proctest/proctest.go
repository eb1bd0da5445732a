package proctest

import (
	"errors"
	"os/exec"
	"testing"
	"time"
)

// outputDelay is how long output may stay open after its process has ended: by a child that outlives it.
const outputDelay = 30 * time.Second

// Start starts a process. When the test ends, it is killed if it still runs,
// and waited for if nobody has: by then no other goroutine may wait for it.
func Start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = outputDelay
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if cmd.ProcessState == nil {
			_ = cmd.Wait()
		}
	})
}

// Wait waits for the end of a process and returns its exit code, -1 where a
// signal ended it. One that runs on beyond patience is killed, and has failed
// the test: its end is never taken for one by somebody else's signal.
func Wait(t testing.TB, cmd *exec.Cmd, patience time.Duration) int {
	t.Helper()
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		t.Fatalf("%s did not end within %s%s", cmd.Path, patience, said(cmd))
	}
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatalf("wait for %s: %v%s", cmd.Path, err, said(cmd))
	}
	return cmd.ProcessState.ExitCode()
}

// said is what a process printed, as far as buffers took it.
func said(cmd *exec.Cmd) (text string) {
	if b, ok := cmd.Stdout.(*Buffer); ok {
		text += "\nstdout: " + b.String()
	}
	if b, ok := cmd.Stderr.(*Buffer); ok {
		text += "\nstderr: " + b.String()
	}
	return text
}
