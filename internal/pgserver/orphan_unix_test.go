//go:build unix

package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const envOwner = "PGSERVER_TEST_OWNER"

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestMain is also the owner of a server that ends without stopping it.
func TestMain(m *testing.M) {
	way := os.Getenv(envOwner)
	if way == "" {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.dir, s.cmd.Process.Pid)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if way == "panic" {
		panic("on purpose")
	}
	os.Exit(0)
}

func TestNothingIsLeftByAnOwnerThat(t *testing.T) {
	for _, way := range []string{"panics", "exits", "is killed", "is interrupted"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(deadline(t), os.Args[0])
			cmd.Env = append(os.Environ(), envOwner+"="+strings.TrimSuffix(way, "s"))
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var dir string
			var pid int
			if _, err := fmt.Fscan(out, &dir, &pid); err != nil {
				t.Fatal(err)
			}
			if !alive(pid) {
				t.Fatal("the server does not run")
			}
			switch way {
			case "is killed":
				err = cmd.Process.Kill()
			case "is interrupted":
				err = cmd.Process.Signal(os.Interrupt)
			default:
				err = in.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for ctx := deadline(t); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
				if _, err := os.Stat(dir); err != nil && !alive(pid) {
					return
				}
			}
			t.Errorf("left behind: %s, or process %d", dir, pid)
		})
	}
}
