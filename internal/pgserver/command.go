package pgserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// newCommand prepares a program of the server's: as the server's user, in the
// server's folder, with a small environment of its own, so that neither the
// caller's PG* variables nor its locale reach the server.
func newCommand(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = serverAttr()
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PGTZ=UTC", "HOME=" + dir}
	for _, key := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot"} {
		if v, ok := os.LookupEnv(key); ok {
			cmd.Env = append(cmd.Env, key+"="+v)
		}
	}
	return cmd
}

// run runs a program to its end and returns what it printed.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	// The parent-death signal is sent when the thread that started the program
	// ends, so this goroutine keeps its thread until the program has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := newCommand(ctx, dir, name, args...).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("run %s: %w", name, ctx.Err())
	case os.IsPermission(err):
		return "", fmt.Errorf("run %s as the server's user (root is refused): %w; put the programs where that user can reach them", name, err)
	case err != nil:
		return "", fmt.Errorf("run %s: %w: %s", name, err, tail(string(out)))
	}
	return string(out), nil
}

// tail is the end of a program's output, where the reason stands.
func tail(s string) string {
	const most = 4000
	s = strings.TrimSpace(s)
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return s
}
