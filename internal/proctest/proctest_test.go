//go:build unix

package proctest_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/proctest"
)

// envBe makes the test binary a program that does as it says.
const envBe = "PROCTEST_BE"

func TestMain(m *testing.M) {
	switch os.Getenv(envBe) {
	case "quick":
		fmt.Println("on stdout")
		fmt.Fprintln(os.Stderr, "on stderr")
		os.Exit(7)
	case "asked":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("is at work")
		<-asked
		fmt.Println("has ended")
		os.Exit(0)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("is at work")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func be(what string) (*exec.Cmd, *proctest.Buffer) {
	cmd, out := exec.Command(os.Args[0]), &proctest.Buffer{}
	cmd.Env = append(os.Environ(), envBe+"="+what)
	cmd.Stdout = out
	return cmd, out
}

// failed is a test that may fail, and what it fails with.
type failed struct {
	testing.TB
	with string
}

func (f *failed) Helper() {}

func (f *failed) Fatalf(format string, args ...any) {
	f.with = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *failed) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// failure is what f fails its test with, "" for nothing.
func failure(t *testing.T, f func(t testing.TB)) string {
	tb, done := &failed{TB: t}, make(chan struct{})
	go func() { defer close(done); f(tb) }()
	<-done
	return tb.with
}

func wants(t *testing.T, got, want string) {
	t.Helper()
	if got == "" || !strings.Contains(got, want) {
		t.Errorf("the test fails with %q, which does not have %q", got, want)
	}
}

func TestExitCode(t *testing.T) {
	cmd, out := be("quick")
	var says proctest.Buffer
	cmd.Stderr = &says
	proctest.Start(t, cmd)
	if code := proctest.Wait(t, cmd, time.Minute); code != 7 || out.String() != "on stdout\n" || says.String() != "on stderr\n" {
		t.Errorf("exit code %d, %q, %q", code, out, &says)
	}
	wants(t, failure(t, func(t testing.TB) { proctest.Wait(t, cmd, time.Minute) }), "wait for ")
	wants(t, failure(t, func(t testing.TB) { proctest.Start(t, exec.Command("/none/such")) }), "start /none/such: ")
}

// TestSignals: what a program says is read while it runs, and it is told from one that ended by itself.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		be   string
		with syscall.Signal
		code int
		says string
	}{{"asked", syscall.SIGTERM, 0, "is at work\nhas ended\n"}, {"asked", syscall.SIGKILL, -1, "is at work\n"}} {
		cmd, out := be(c.be)
		proctest.Start(t, cmd)
		out.Await(t, "is at work", time.Minute)
		if err := cmd.Process.Signal(c.with); err != nil {
			t.Fatal(err)
		}
		if code := proctest.Wait(t, cmd, time.Minute); code != c.code || out.String() != c.says {
			t.Errorf("%v: exit code %d, %q", c.with, code, out)
		}
	}
}

// TestNoWaitIsForEver: one that does not end, and a word that does not come, fail their test; the first one is ended too.
func TestNoWaitIsForEver(t *testing.T) {
	cmd, out := be("deaf")
	proctest.Start(t, cmd)
	out.Await(t, "is at work", time.Minute)
	wants(t, failure(t, func(t testing.TB) { out.Await(t, "has ended", 20*time.Millisecond) }), "not within 20ms: \"has ended\" is printed; so far:\nis at work\n")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wants(t, failure(t, func(t testing.TB) { proctest.Wait(t, cmd, 200*time.Millisecond) }), " did not end within 200ms\nstdout: is at work\n")
	if cmd.ProcessState == nil {
		t.Error("it still runs")
	}
}

// TestOutputThatStaysOpen: a child that outlives its parent does not hold up the wait, and is not passed over.
func TestOutputThatStaysOpen(t *testing.T) {
	cmd, out := exec.Command("sh", "-c", "sleep 10 & echo ended"), &proctest.Buffer{}
	cmd.Stdout, cmd.WaitDelay = out, 200*time.Millisecond
	proctest.Start(t, cmd)
	wants(t, failure(t, func(t testing.TB) { proctest.Wait(t, cmd, time.Minute) }), "WaitDelay expired")
	other, _ := be("quick")
	proctest.Start(t, other)
	if other.WaitDelay <= 0 {
		t.Error("such a wait has no end")
	}
}

// TestNothingOutlivesItsTest: a process that its test left is killed and waited for.
func TestNothingOutlivesItsTest(t *testing.T) {
	cmd, out := be("deaf")
	t.Run("owner", func(t *testing.T) {
		proctest.Start(t, cmd)
		out.Await(t, "is at work", time.Minute)
	})
	if cmd.ProcessState == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// write writes a program that does this.
func write(t *testing.T, file, does string) {
	t.Helper()
	if err := os.WriteFile(file, []byte("package main\n\nfunc main() { "+does+" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBuild(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	write(t, source, `println("built")`)
	bin := proctest.Build(t, "hello", source)
	if out, err := exec.Command(bin).CombinedOutput(); err != nil || string(out) != "built\n" || filepath.Base(bin) != "hello" {
		t.Errorf("%s: %v\n%s", bin, err, out)
	}
	write(t, source, "nothing()")
	wants(t, failure(t, func(t testing.TB) { proctest.Build(t, "hello", source) }), "undefined: nothing")
}

// TestShared: it is built once for tests that overlap, again for one that comes later, and nothing of it stays.
func TestShared(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	program := proctest.Shared{Name: "hello", Package: source}
	write(t, source, "nothing()")
	wants(t, failure(t, func(t testing.TB) { program.Path(t) }), "undefined: nothing")
	write(t, source, `println("built")`)
	var last string
	for range 2 {
		t.Run("first", func(t *testing.T) {
			bin := program.Path(t)
			t.Run("second", func(t *testing.T) {
				if again := program.Path(t); again != bin {
					t.Errorf("%s and %s", bin, again)
				}
			})
			if out, err := exec.Command(bin).CombinedOutput(); err != nil || string(out) != "built\n" || bin == last {
				t.Errorf("%s: %v\n%s", bin, err, out)
			}
			last = bin
		})
		if _, err := os.Stat(filepath.Dir(last)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", last, err)
		}
	}
}
